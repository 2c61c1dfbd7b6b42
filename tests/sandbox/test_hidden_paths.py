"""Commands read the visible part of a home and programs; everything else is closed, by every name that it has."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Generator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from pathlib import Path

import pytest
from living import USER_NAMESPACE, World, mounted_disk

from artoo.ports.sandbox import Opened
from artoo.sandbox.protocols import Layout
from artoo.sandbox.reading.hidden_paths import Closed, hidden_paths, restricted_in
from plain_user import as_plain_user

_KNOWN_TEXT = """
.ssh/id_rsa .aws/credentials .netrc .claude/.credentials.json .claude.json .gemini/oauth_creds.json
.codex/auth.json .local/share/opencode/auth.json .config/github-copilot/hosts.json .kaggle/kaggle.json
.huggingface/token .cache/huggingface/token .docker/config.json .m2/settings.xml .gradle/gradle.properties
.terraformrc .authinfo .msmtprc .smbcredentials .config/filezilla/sitemanager.xml .config/Signal/config.json
.local/share/TelegramDesktop/x .config/keepassxc/keepassxc.ini .bash_history .zsh_history .python_history
.config/microsoft-edge/Default/Cookies .var/app/com.brave.Browser/config/x snap/brave/common/x .rustup/x .env
.config/Code/User/globalStorage/state.vscdb .config/sops/age/keys.txt .config/gcloud/x .config/configstore/x.json
.thunderbird/x .mozilla/x .gnupg/x .wallet.dat .config/solana/id.json .config/Exodus/x
"""
KNOWN = _KNOWN_TEXT.split()
"""Places of credentials, profiles and histories that are known."""

_UNKNOWN_TEXT = """
.acme-cloud/session .config/some-new-agent/oauth.json .local/share/some-new-agent/store.db
.local/state/x/journal .cache/some-agent/cookies.sqlite .pgpass .my.cnf .git-credentials
.config/git/credentials .gitconfig .config/git/config .condarc .pip/pip.conf .config/pip/pip.conf
.config/uv/uv.toml .pyenv/versions/3.11/envs/app/pip.conf .pyenv/versions/miniconda3/.condarc
.rbenv/versions/3.3/etc/gemrc .asdf/installs/ruby/3.3/etc/gemrc .asdf/installs/python/3.12/pip.conf
.local/share/pipx/venvs/tool/pip.conf .volta/tools/image/node/22/etc/npmrc
.boto .s3cfg .npmrc .yarnrc.yml .cargo/credentials.toml .cargo/credentials .cargo/env
.gem/credentials .nvmrc.secret .pyenv-token .local/token .local/bin.secret .local/share/man.key
.rustup/toolchains.secret .config .X11-unix/x .ICEauthority .Xauthority .gitconfig.local .profile .bashrc
.zshrc .viminfo .kube/config .azure/msal_token_cache.json .vscode-server/data/x .cursor/mcp.json .android/adbkey
.local/share/keyrings/login.keyring .pki/nssdb/key4.db .ethereum/keystore/x .password-store/x.gpg
Library/Keychains/login.keychain-db library/mail/x AppData/Roaming/x appdata/Local/x snap/firefox/common/x
.ssh-backup/id .SSH/id ..hidden/x ...x .\u200bssh/id
"""
UNKNOWN = _UNKNOWN_TEXT.split()
"""Others, which no list knows: a rule has to close them that knows no names."""

_OPEN_TEXT = """
docs/thesis.txt notes.txt project/.env.example project/.git/config project/.github/workflows/x.yml
other/.git/HEAD .local/bin/tool .local/lib/python3.11/site-packages/m.py .cargo/bin/cargo
.rustup/toolchains/x/bin/rustc .nvm/nvm.sh .pyenv/shims/python .config/git/ignore artoo_workspace/.hidden
"""
OPEN = _OPEN_TEXT.split()


def lay(home: Path, names: Sequence[str]) -> list[str]:
    """Make files with a canary in them; those whose place another took are left out."""
    made: list[str] = []
    for name in names:
        place = home / name
        try:
            place.parent.mkdir(parents=True, exist_ok=True)
            place.write_text(f"CANARY {name}\n", encoding="utf-8")
        except (FileExistsError, IsADirectoryError, NotADirectoryError):
            continue
        made.append(name)
    return made


async def readable(world: World, names: Sequence[str], opened: tuple[Path, ...] = ()) -> set[str]:
    """Return those of the names of which a command can read the canary."""
    script = 'cd ~ || exit 9; while IFS= read -r one; do grep -sq CANARY "$one" && echo "$one"; done; true'

    def with_opened(layout: Layout) -> Layout:
        return replace(layout, roots=replace(layout.roots, opened=Opened(opened)))

    async with world.sandbox(with_opened) as commands:
        return set((await commands.says(script, stdin="".join(f"{one}\n" for one in names).encode())).splitlines())


def is_closed(world: World, path: Path) -> bool:
    """Ask the rule for tools and the one for commands, which must agree."""
    covered = any(path.is_relative_to(one) for one in hidden_paths(world.roots, world.artoo_home))
    assert covered is (Closed.of(world.roots).covers(str(path)) or path.is_relative_to(world.artoo_home)), path
    return covered


async def test_nothing_hidden_can_be_read(world: World) -> None:
    """Of known and unknown hidden places no command and no tool reads a byte; documents and programs are open."""
    hidden, plain = lay(world.home, KNOWN + UNKNOWN), lay(world.home, OPEN)
    assert len(hidden) > 90
    assert await readable(world, hidden + plain) == set(plain)
    assert all(is_closed(world, world.home / name) for name in hidden)
    assert not any(is_closed(world, world.home / name) for name in plain)


async def test_links_and_detours_lead_nowhere(world: World) -> None:
    """A link to a hidden place, a hidden link to documents, a way through `..`: where it leads is what counts."""
    lay(world.home, [".ssh/id", "vault/aws/credentials", "docs/a"])
    (world.home / "docs" / "k").symlink_to(world.home / ".ssh")
    (world.home / ".aws").symlink_to(world.home / "vault" / "aws")
    ways = ["docs/k/id", "docs/../.ssh/id", ".aws/credentials", "vault/aws/credentials", "project/../.ssh/id"]
    assert await readable(world, [*ways, "docs/a"]) == {"docs/a"}


async def test_a_policy_opens_what_it_names(world: World) -> None:
    """`read` opens one place with everything below it, and nothing next to it."""
    names = [".config/app/settings", ".config/app2/settings", ".bashrc", ".profile"]
    lay(world.home, names)
    opened = (world.home / ".config" / "app", world.home / ".bashrc")
    assert await readable(world, names, opened) == {".config/app/settings", ".bashrc"}


def test_a_project_in_the_hidden_part_is_open(world: World) -> None:
    """A user can work in `~/.dotfiles`, also where a hidden name of the home leads to it."""
    lay(world.home, [".dotfiles/bashrc", ".dotfiles/.env"])
    (world.home / ".bashrc").symlink_to(world.home / ".dotfiles" / "bashrc")
    roots = replace(world.roots, project=world.home / ".dotfiles")
    closed = hidden_paths(roots, world.artoo_home)
    assert not any((world.home / ".dotfiles" / "bashrc").is_relative_to(path) for path in closed)


def test_copies_in_artoos_home_can_be_left_visible(world: World) -> None:
    """Then everything next to the way to them is hidden instead of the whole."""
    lay(world.artoo_home, ["log", "workspaces/t/copy/0/a", "workspaces/t/notes", "workspaces/u/copy/0/a"])
    closed = hidden_paths(world.roots, world.artoo_home, visible=(world.artoo_home / "workspaces/t/copy",))
    within = {path for path in closed if path.startswith(str(world.artoo_home))}
    names = ("log", "workspaces/t/notes", "workspaces/u")
    assert within == {str(world.artoo_home / name) for name in names}


@pytest.mark.skipif(os.geteuid() != 0, reason="what only root could read is the kernel's to close for others")
async def test_root_reads_what_everybody_may(world: World) -> None:
    """As root, commands and tools see what another user of the machine would see."""
    places = ["/etc/shadow", "/etc/gshadow", "/etc/ssl/private", "/root/.bashrc", "/root/.profile"]
    there = [place for place in places if os.path.lexists(place)]
    async with world.sandbox() as commands:
        for place in there:
            assert await commands.says(f"cat {place} 2>&- | wc -c; ls {place}/ 2>&- | wc -l") == "0\n0\n"
    assert all(Closed.of(world.roots).covers(place) for place in there)


async def test_what_becomes_hidden_later_is_closed_by_the_next_sandbox(world: World) -> None:
    """Whatever the task has made at its place or above: its own files stay, and the upper directory as it was."""
    lay(world.home, ["docs/a", ".ssh/id", "notes.txt", ".gone/x", ".again/x", ".kept/x"])
    made = "cd ~; mkdir .own .both .turned; echo x | tee .own/x .both/x .turned/x .file .other; ln -s docs .link"
    names = [f"{one}/secret" for one in (".new", ".own", ".both", ".link", ".ssh", "docs", ".gone")]
    async with world.sandbox(_open(world, ".gone", ".again")) as commands:
        await commands.says(f"{made}; rm -r .gone .again; mkdir .again")
    lay(world.home, [*names[:5], ".gone/secret", ".again/secret", ".file", ".late", ".turned"])
    (world.home / ".other").mkdir()
    names += [".file", ".late", ".again/secret"]
    before = _tree(world.upper)
    async with world.sandbox() as commands:
        listed = " ".join(names)
        assert (
            await commands.says(f"cd ~; for one in {listed}; do grep -sq CANARY $one && echo $one; done; true")
            == ""
        )
        assert await commands.says("cd ~; cat docs/a notes.txt | wc -l; grep -s x .own/x .file; true") == "2\n"
    assert _tree(world.upper) == before


def _open(world: World, *names: str):
    def change(layout: Layout) -> Layout:
        return replace(layout, roots=replace(layout.roots, opened=Opened(tuple(world.home / one for one in names))))

    return change


def _tree(place: Path) -> list[str]:
    return sorted(str(path) for path in place.rglob("*"))


@pytest.mark.skipif(os.geteuid() != 0, reason="only root is kept from what others may not read")
def test_a_directory_of_closed_things_is_one_place(tmp_path: Path) -> None:
    """Hundreds of files that only root may read are one mount; what everybody may read stays open."""
    for name, modes in {"all": (0o600, 0o600), "mixed": (0o600, 0o644), "none": ()}.items():
        (tmp_path / name / "deep").mkdir(parents=True)
        for number, mode in enumerate(modes):
            (tmp_path / name / "deep" / str(number)).touch(mode=mode)
            (tmp_path / name / str(number)).touch(mode=mode)
    tmp_path.chmod(0o755)
    found = set(restricted_in((str(tmp_path),)))
    assert found == {str(tmp_path / place) for place in ("all", "mixed/0", "mixed/deep/0")}


@contextmanager
def bound(source: Path, place: Path) -> Generator[Path]:
    """Mount `source` at `place`, too."""
    place.mkdir(parents=True, exist_ok=True)
    done = subprocess.run(["mount", "--bind", source, place], capture_output=True, text=True, check=False)
    if done.returncode:
        pytest.skip(f"nothing can be mounted here: {done.stderr.strip()}")
    try:
        yield place
    finally:
        subprocess.run(["umount", "-l", place], check=True)


async def test_the_hidden_part_is_closed_by_every_name(world: World, tmp_path: Path) -> None:
    """Another mount of the home, outside, in the project or in the home, of all of it or a part, opens nothing."""
    lay(world.home, [".aws/credentials", ".netrc", ".artoo/log", "docs/a", ".cloud/deep/key"])
    places = [tmp_path / "out", world.project / "in", world.home / "mnt" / "home"]
    with ExitStack() as mounted:
        for place in places:
            mounted.enter_context(bound(world.home, place))
        mounted.enter_context(bound(world.home / ".aws", tmp_path / "part"))
        mounted.enter_context(bound(world.home / ".cloud" / "deep", world.home / "deep"))
        hidden = [".aws/credentials", ".netrc", ".artoo/log", ".cloud/deep/key"]
        secret = [str(place / name) for place in (world.home, *places) for name in hidden]
        secret += [str(tmp_path / "part/credentials"), str(world.home / "deep/key")]
        plain = [str(place / "docs/a") for place in places]
        assert all(Path(one).read_text(encoding="utf-8").startswith("CANARY") for one in (*secret, *plain))
        seen = await readable(world, [*secret, *plain])
        assert seen <= set(plain) and str(world.home / "mnt/home/docs/a") in seen
        hidden_set = hidden_paths(world.roots, world.artoo_home)
        assert all(any(Path(one).is_relative_to(path) for path in hidden_set) for one in secret)
        assert not any(is_closed(world, Path(one)) for one in plain)


async def test_a_home_that_no_overlay_covers_is_closed_too(world: World) -> None:
    """A home in which another file system is mounted is read-only for some users, and its hidden part is closed."""
    lay(world.home, [".netrc", "docs/a"])
    (world.home / "disk").mkdir()
    with mounted_disk(world.home / "disk"):
        covered = world.backend.roots_to_cover(world.roots)
        assert (world.home in covered) is not USER_NAMESPACE
        async with world.sandbox() as commands:
            assert await commands.says("cd ~; cat docs/a; cat .netrc 2>&-; true") == "CANARY docs/a\n"


def test_all_of_this_holds_for_a_plain_user() -> None:
    """Some of these tests again, as a user without any rights."""
    as_plain_user(Path(__file__), only="nothing_hidden or links_and_detours")
