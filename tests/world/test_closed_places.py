"""The hidden part of a home is closed to commands and to tools alike, by one rule, on every tier."""

from __future__ import annotations

import asyncio
import os
import subprocess
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pytest
from sandbox_world import World, first, require_tier

from artoo.ports.sandbox import Opened, Roots, Sandbox
from artoo.ports.world import Program
from artoo.world import restricted
from artoo.world.classify import Places
from artoo.world.closed import closed_paths
from artoo.world.opening import views_in
from artoo.world.reachable import ReachableFiles
from artoo.world.union import RealFiles

_KNOWN_TEXT = """
.ssh/id_rsa .aws/credentials .netrc .claude/.credentials.json .claude.json .gemini/oauth_creds.json
.codex/auth.json .local/share/opencode/auth.json .config/github-copilot/hosts.json .kaggle/kaggle.json
.huggingface/token .cache/huggingface/token .docker/config.json .m2/settings.xml .gradle/gradle.properties
.sbt/.credentials .ivy2/.credentials .nuget/NuGet/NuGet.Config .bundle/config .databrickscfg
.snowflake/connections.toml .fly/config.yml .config/heroku/config.json .local/share/heroku/token
.config/doctl/config.yaml .config/hcloud/cli.toml .terraformrc .config/ngrok/ngrok.yml .ngrok2/ngrok.yml
.authinfo .authinfo.gpg .msmtprc .fetchmailrc .smbcredentials .config/filezilla/sitemanager.xml
.purple/accounts.xml .config/Signal/config.json .config/discord/x .config/Slack/Cookies
.local/share/TelegramDesktop/x .config/keepassxc/keepassxc.ini .bash_history .zsh_history .psql_history
.mysql_history .python_history .librewolf/p/logins.json .zen/p/logins.json .waterfox/p/logins.json
.config/microsoft-edge/Default/Cookies .var/app/com.brave.Browser/config/x snap/brave/common/x
.config/Code/User/globalStorage/state.vscdb .config/Cursor/User/globalStorage/state.vscdb .step/x
.config/syncthing/key.pem .config/nordvpn/x .minikube/profiles/x/client.key .rustup/x
.config/sops/age/keys.txt .ansible/vault_pass .vault_pass.txt .env .config/rclone/rclone.conf
.config/gcloud/x .config/stripe/config.toml .config/configstore/x.json .firebase/x
.wrangler/config/default.toml .vercel/auth.json .local/share/com.vercel.cli/auth.json .netlify/config.json
.supabase/access-token .expo/state.json .pulumi/credentials.json .config/pulumi/x .oci/config .Renviron
.config/himalaya/config.toml .thunderbird/x .mozilla/x .gnupg/x .wallet.dat .config/solana/id.json
.near-credentials/x .electrum/x .monero/x .config/Exodus/x
"""
KNOWN = _KNOWN_TEXT.split()
"""Places of credentials, profiles and histories that are known."""

_UNKNOWN_TEXT = """
.acme-cloud/session .config/some-new-agent/oauth.json .local/share/some-new-agent/store.db
.local/state/x/journal .cache/some-agent/cookies.sqlite .pgpass .my.cnf .git-credentials
.config/git/credentials .boto .s3cfg .npmrc .yarnrc.yml .cargo/credentials.toml .cargo/credentials .cargo/env
.gem/credentials .nvmrc.secret .pyenv-token .local/token .local/bin.secret .local/share/man.key
.rustup/toolchains.secret .config .X11-unix/x .ICEauthority .Xauthority .gitconfig.local .profile .bashrc
.zshrc .viminfo .lesshst .node_repl_history .sqlite_history .rediscli_history .dbshell .kube/config .k9s/x
.helm/x .azure/msal_token_cache.json .vscode/argv.json .vscode-server/data/x .cursor/mcp.json
.jupyter/jupyter_server_config.json .ipython/profile_default/history.sqlite
.local/share/jupyter/runtime/kernel.json .local/share/keyrings/login.keyring .pki/nssdb/key4.db
.java/.userPrefs/x .android/adbkey .android/debug.keystore .ethereum/keystore/x .bitcoin/wallet.dat
.config/chromium/Default/Cookies .mozilla/firefox/p/key4.db .password-store/x.gpg
Library/Keychains/login.keychain-db Library/Cookies/Cookies.binarycookies Library/Mail/x library/mail/x
AppData/Roaming/x appdata/Local/x snap/firefox/common/x .ssh-backup/id .SSH/id ..hidden/x ...x .\u200bssh/id
"""
UNKNOWN = _UNKNOWN_TEXT.split()
"""Others, of which nobody's list knows: what a rule has to close that knows no names."""

_OPEN_TEXT = """
docs/thesis.txt notes.txt project/.env.example project/.git/config project/.github/workflows/x.yml
other/.git/HEAD .local/bin/tool .local/lib/python3.11/site-packages/m.py .cargo/bin/cargo
.rustup/toolchains/x/bin/rustc .nvm/nvm.sh .pyenv/shims/python .config/git/ignore artoo_workspace/.hidden
"""
OPEN = _OPEN_TEXT.split()


def lay(home: Path, names: Sequence[str]) -> list[str]:
    """Files with a canary in them; those whose place another took are left out."""
    made: list[str] = []
    for name in names:
        place = home / name
        try:
            place.parent.mkdir(parents=True, exist_ok=True)
            place.write_text(f"CANARY {name}\n")
        except (FileExistsError, IsADirectoryError, NotADirectoryError):
            continue
        made.append(name)
    return made


def any_tier(name: str, world: World) -> Sandbox:
    require_tier(name)
    world.artoo_home.mkdir(mode=0o700, exist_ok=True)
    candidate = first(name, world.artoo_home)
    return candidate.build(candidate.stage_homes)


def readable(sandbox: Sandbox, world: World, names: Sequence[str], roots: Roots | None = None) -> set[str]:
    """Those of the names that a command can read the canary of."""
    listed = "\n".join(names) + "\n"
    script = 'cd ~ || exit 9; while IFS= read -r one; do grep -sq CANARY "$one" && echo "$one"; done; true'
    request = replace(world.bash(script, read_only=True), stdin=listed.encode(), roots=roots or world.roots)
    run = asyncio.run(sandbox.look(request))
    assert run.exit_code == 0, run.stderr.text
    return set(run.stdout.text.splitlines())


@pytest.mark.parametrize("tier", ["bubblewrap", "namespaces", "landlock"])
def test_commands_read_nothing_that_is_hidden(tier: str, world: World) -> None:
    """Of known and of unknown hidden places no command reads a byte, on any tier; documents it reads."""
    sandbox = any_tier(tier, world)
    hidden, plain = lay(world.home, KNOWN + UNKNOWN), lay(world.home, OPEN)
    assert len(hidden) > 140
    assert readable(sandbox, world, hidden + plain) == set(plain)


@pytest.mark.parametrize("name", KNOWN + UNKNOWN)
def test_tools_read_nothing_that_is_hidden(name: str, world: World) -> None:
    """For the tools that read files themselves, the same places are not there."""
    files = ReachableFiles(RealFiles(), Places.of(world.roots, world.artoo_home))
    if lay(world.home, [name]):
        assert files.at(world.home / name) is None


@pytest.mark.parametrize("name", OPEN)
def test_tools_read_documents_and_programs(name: str, world: World) -> None:
    """Documents, the project with its dot names, programs: open."""
    lay(world.home, [name])
    files = ReachableFiles(RealFiles(), Places.of(world.roots, world.artoo_home))
    assert files.at(world.home / name) == world.home / name


@pytest.mark.parametrize("tier", ["bubblewrap", "namespaces", "landlock"])
def test_links_and_detours_lead_nowhere(tier: str, world: World) -> None:
    """A link to a hidden place, a hidden link to a document place, a way through `..`: the place is what counts."""
    sandbox = any_tier(tier, world)
    lay(world.home, [".ssh/id", "vault/aws/credentials", "docs/a"])
    (world.home / "docs" / "k").symlink_to(world.home / ".ssh")
    (world.home / ".aws").symlink_to(world.home / "vault" / "aws")
    ways = [
        "docs/k/id",
        "docs/../.ssh/id",
        ".aws/credentials",
        "vault/aws/credentials",
        "project/../.ssh/id",
        "docs/a",
    ]
    assert readable(sandbox, world, ways) == {"docs/a"}


@pytest.mark.parametrize("tier", ["bubblewrap", "namespaces", "landlock"])
def test_a_policy_opens_what_it_names(tier: str, world: World) -> None:
    """`read` opens one place with all below it, and nothing beside."""
    sandbox = any_tier(tier, world)
    lay(world.home, [".config/app/settings", ".config/app2/settings", ".bashrc", ".profile"])
    opened = Opened((world.home / ".config" / "app", world.home / ".bashrc"))
    roots = replace(world.roots, opened=opened)
    names = [".config/app/settings", ".config/app2/settings", ".bashrc", ".profile"]
    assert readable(sandbox, world, names, roots) == {".config/app/settings", ".bashrc"}
    places = Places.of(roots, world.artoo_home)
    assert [places.is_closed(os.fsencode(world.home / name)) for name in names] == [False, True, False, True]


def test_a_project_in_the_hidden_part_is_open(world: World) -> None:
    """Who stands in `~/.dotfiles` may work there, also where a hidden name of the home leads to it."""
    lay(world.home, [".dotfiles/bashrc", ".dotfiles/.env"])
    (world.home / ".bashrc").symlink_to(world.home / ".dotfiles" / "bashrc")
    roots = replace(world.roots, project=world.home / ".dotfiles")
    closed = closed_paths(roots, world.artoo_home)
    assert not any((world.home / ".dotfiles" / "bashrc").is_relative_to(path) for path in closed)
    assert not Places.of(roots, world.artoo_home).is_closed(os.fsencode(world.home / ".dotfiles" / ".env"))


@pytest.mark.skipif(os.geteuid() != 0, reason="what only root could read is the kernel's to close for others")
@pytest.mark.parametrize("tier", ["bubblewrap", "namespaces", "landlock"])
@pytest.mark.parametrize(
    "place", ["/etc/shadow", "/etc/gshadow", "/etc/ssl/private", "/root/.bashrc", "/root/.profile"]
)
def test_root_reads_what_everybody_may(tier: str, place: str, world: World) -> None:
    """As root, a command and the tools see what another user of the machine would see."""
    if not os.path.lexists(place):
        pytest.skip(f"there is no {place} here")
    sandbox = any_tier(tier, world)
    run = asyncio.run(sandbox.look(world.bash(f"cat {place} 2>/dev/null | wc -c; ls {place}/ 2>/dev/null | wc -l")))
    assert run.stdout.text.split() == ["0", "0"]
    assert Places.of(world.roots, world.artoo_home).is_closed(os.fsencode(place))


@pytest.mark.parametrize("tier", ["bubblewrap", "namespaces"])
async def test_what_becomes_hidden_later_is_closed(tier: str, world: World) -> None:
    """A hidden place that the person makes while a task works is closed to its next command, whatever its view has.

    Also where a command has put a file, a directory or a link of its own by then; what such a link leads to in the
    view stays as it is.
    """
    sandbox = any_tier(tier, world)
    lay(world.home, ["docs/a", ".ssh/id", "notes.txt"])
    view = views_in(sandbox, world.artoo_home)("task-1", world.roots)
    made = "cd ~; mkdir .own .both .turned; echo x | tee .own/x .both/x .turned/x .file .other; ln -s docs .link"
    names = [f"{one}/secret" for one in (".new", ".own", ".both", ".link", ".ssh", "docs")] + [".file", ".late"]

    async def read() -> set[str]:
        listed = " ".join(names)
        script = (
            f"cd ~; for one in {listed}; do grep -sq CANARY $one && echo $one; done; cat docs/a notes.txt | wc -l;"
            "grep -s x .own/x .both/x .turned/x .file .other; true"
        )
        run = await view.run(Program(("bash", "-c", script)))
        assert run.exit_code == 0, run.stderr.text
        return set(run.stdout.text.split())

    own = {f"{one}:x" for one in (".own/x", ".both/x", ".turned/x", ".file", ".other")}
    first_run = await view.run(Program(("bash", "-c", made)))
    assert first_run.exit_code == 0, first_run.stderr.text
    assert await read() == {"2", *own}
    lay(world.home, [*names[:5], ".file", ".late", ".turned"])
    (world.home / ".other").mkdir()
    seen = await read()
    await view.close()
    assert not seen & {*names, *own}
    if tier == "bubblewrap":
        assert seen == {"2"}


@pytest.mark.skipif(os.geteuid() != 0, reason="only root is kept from what others may not read")
def test_a_closed_place_that_has_gone_is_not_closed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A file that vanishes between the look-up and a command ends no command: nothing could be laid over it."""
    secret = tmp_path / "place" / "secret"
    secret.parent.mkdir(mode=0o755)
    secret.touch(mode=0o600)

    def found(turn: int) -> tuple[str, ...]:
        return (str(secret),)

    monkeypatch.setattr(restricted, "_found", found)
    assert restricted.restricted() == (str(secret),)
    secret.unlink()
    assert restricted.restricted() == ()


@pytest.mark.skipif(os.geteuid() != 0, reason="only root is kept from what others may not read")
def test_a_directory_of_closed_things_is_one_place(tmp_path: Path) -> None:
    """Hundreds of files that only root may read cost a command one place; what everybody may read stays open."""
    for name, modes in {"all": (0o600, 0o600), "mixed": (0o600, 0o644), "none": ()}.items():
        (tmp_path / name / "deep").mkdir(parents=True)
        for number, mode in enumerate(modes):
            (tmp_path / name / "deep" / str(number)).touch(mode=mode)
            (tmp_path / name / str(number)).touch(mode=mode)
    tmp_path.chmod(0o755)
    found = set(restricted.restricted_in((str(tmp_path),)))
    assert found == {str(tmp_path / place) for place in ("all", "mixed/0", "mixed/deep/0")}


@pytest.mark.parametrize("tier", ["bubblewrap", "namespaces", "landlock"])
def test_a_home_over_which_no_view_lies_is_closed_too(tier: str, world: World) -> None:
    """A home below /tmp in which another file system is mounted is shown read-only, and its hidden part is not."""
    sandbox = any_tier(tier, world)
    lay(world.home, [".netrc", "docs/a"])
    (world.home / "disk").mkdir()
    done = subprocess.run(["mount", "-t", "tmpfs", "none", str(world.home / "disk")], check=False)
    if done.returncode:
        pytest.skip("nothing can be mounted here")
    try:
        assert readable(sandbox, world, [".netrc", "docs/a"]) == {"docs/a"}
    finally:
        subprocess.run(["umount", str(world.home / "disk")], check=True)
