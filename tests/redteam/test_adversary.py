"""An adversary: nothing of its attempts takes effect outside of the workspace without being asked about.

The attempts of one table run in one task, each below a directory of its own. An attempt failed only if the very
path that would take effect is among the changes, and asks, and the user's files are as they were, byte by byte.
"""

from __future__ import annotations

import asyncio
import os
import shlex
import shutil
import subprocess
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path

import pytest
from adversary import (
    CARRIES,
    CARRIES_NOTHING,
    FORMS,
    GIT_ACTS,
    GIT_FILES,
    GIT_SETTINGS,
    LOADED,
    NOTES,
    SECRET_FILES,
    STARTED_NAMES,
    TOKENS,
    InGit,
    Planted,
)

sys.path.insert(0, str(Path(__file__).parents[1] / "workspace"))
sys.path.insert(0, str(Path(__file__).parents[1] / "tools"))
from gate_world import Person
from task_world import World, make_world, overlay
from tool_doubles import StillClock

from artoo.contracts.changes import path_bytes
from artoo.contracts.plan import MustNot
from artoo.contracts.settling import ApplyMode, ChangeClass, Ending, Settled
from artoo.ports.workspace import Command
from artoo.sandbox.backends.copying import CopyBackend
from artoo.testing.asking import AskPerson
from artoo.tools.approval.ask_first import Asking, never
from artoo.tools.approval.gate import Gate
from artoo.tools.builtin.web_search import Hit, Search
from artoo.tools.core.registry import Registry
from artoo.tools.provenance.taint import Origins
from artoo.tools.settlement.settler import Settler

_WHO = {f"GIT_{role}_{what}": "u@example.invalid" for role in ("AUTHOR", "COMMITTER") for what in ("NAME", "EMAIL")}
_NAMES = [
    Planted(one, f"mkdir -p {shlex.quote(os.path.dirname(one) or '.')}; echo > {shlex.quote(one)}")
    for one in STARTED_NAMES
]
_ORDINARY = Planted("notes.txt", "echo > notes.txt")
"""Is among every table, and silent: without it, all attempts would pass where everything asks."""
File = tuple[str, int, bytes | str]
_NOT_IN_COPIES = "setxattr"
"""Attributes of files cannot be set in copies: the system call is refused there."""


@pytest.fixture(params=["overlay", "copy"])
def world(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> World:
    """A home of either kind, with settings of git in the environment."""
    made = make_world(tmp_path, overlay() if request.param == "overlay" else CopyBackend("landlock"))
    for name, value in {**_WHO, "HOME": str(made.home), "GIT_CONFIG_NOSYSTEM": "1"}.items():
        monkeypatch.setenv(name, value)
    return made


def _user_runs(script: str, where: Path) -> None:
    done = subprocess.run(["bash", "-ec", script], cwd=where, env=os.environ, capture_output=True, check=False)
    assert done.returncode == 0, (script, done.stderr)


def _files(top: Path) -> Iterator[File]:
    """Everything below a directory: paths, modes, and contents or targets."""
    for directory, directories, files in os.walk(top):
        for name in sorted([*directories, *files]):
            path = os.path.join(directory, name)
            is_link = os.path.islink(path)
            content = os.readlink(path) if is_link else Path(path).read_bytes() if os.path.isfile(path) else ""
            yield path, os.lstat(path).st_mode, content


def _task_runs(world: World, scripts: Mapping[int, str], task_id: str = "t") -> tuple[Settled, set[int]]:
    """Run each script in its directory, settle with no one to ask, and return which scripts failed too."""
    parts = [
        f"bash -ec {shlex.quote(f'cd n{number}; {one}')} > /dev/null < /dev/null || echo {number}"
        for number, one in scripts.items()
    ]

    async def work() -> tuple[Settled, set[int]]:
        workspace = world.open(task_id)
        try:
            ended = await workspace.run(Command(("bash", "-c", "\n".join(parts))), 120)
        finally:
            await workspace.close()
        settler = Settler(workspace, world.artoo_home, mode=ApplyMode.NEW)
        settled = await settler.settle(Ending(task_id=task_id, directive="accept"), None)
        return settled, set(map(int, ended.stdout.text.split()))

    return asyncio.run(work())


@pytest.mark.parametrize("table", [_NAMES[::8], LOADED, FORMS[::2]], ids=["names", "loaded", "forms"])
def test_no_planted_file_of_a_sample_is_silent(world: World, table: Sequence[Planted]) -> None:
    """Each asks by itself, whatever the others do, and nothing is there afterwards that was not before."""
    _no_planted_file_is_silent(world, table)


@pytest.mark.torture
@pytest.mark.parametrize("table", [_NAMES, FORMS], ids=["names", "forms"])
def test_no_planted_file_is_silent(world: World, table: Sequence[Planted]) -> None:
    """All of them."""
    _no_planted_file_is_silent(world, table)


def _no_planted_file_is_silent(world: World, planted: Sequence[Planted]) -> None:
    table = (*planted, _ORDINARY)
    for number, one in enumerate(table):
        (world.project / f"n{number}").mkdir()
        _user_runs(one.setup or ":", world.project / f"n{number}")
    before = list(_files(world.project))
    settled, failed = _task_runs(world, {number: one.task for number, one in enumerate(table)})
    assert settled.state == "pending"
    assert list(_files(world.project)) == before
    silent = {
        os.fsdecode(path_bytes(one.path)) for one in settled.changes if one.change_class is ChangeClass.SILENT
    }
    known = {os.fsdecode(path_bytes(one.path)) for one in settled.changes}
    for number, one in enumerate(table):
        path = f"{world.project}/n{number}/{one.effect}"
        if number in failed:
            assert isinstance(world.backend, CopyBackend) and _NOT_IN_COPIES in one.task, one
        else:
            assert path in known and (path in silent) == (one is _ORDINARY), one


_REPOSITORY = """
git init -q -b main .; git remote add origin https://e.invalid/x; echo a > a.txt; mkdir src; echo > src/app.py
git add .; git commit -qm one; git branch side; echo b >> a.txt; git commit -qam two
git checkout -q side; echo s > s.txt; git add .; git commit -qm side; git checkout -q main; git tag v1
echo w > a.txt; git stash -q
"""
_IN_GIT = (
    *(InGit(f"git config {one.split(' ', 1)[0]} {shlex.quote(one.split(' ', 1)[1])}") for one in GIT_SETTINGS),
    *(InGit(f"mkdir -p $(dirname .git/{one}); echo x >> .git/{one}") for one in GIT_FILES),
    *GIT_ACTS,
)


def _no_git_act_is_silent(world: World, table: Sequence[InGit]) -> None:
    """Each asks or is in conflict; or it changes nothing of the user's, byte by byte, when it is settled alone."""
    (world.home / "template").mkdir()
    _user_runs(_REPOSITORY, world.home / "template")
    for number, one in enumerate(table):
        shutil.copytree(world.home / "template", world.project / f"n{number}", symlinks=True)
        _user_runs(f"git status > /dev/null; {one.setup or ':'}", world.project / f"n{number}")
    before = list(_files(world.project))
    settled, failed = _task_runs(world, {number: one.task for number, one in enumerate(table)})
    assert settled.state == "pending"
    assert list(_files(world.project)) == before
    asks = [one.path for one in settled.changes if one.change_class is not ChangeClass.SILENT]
    asks += [one.path for one in settled.conflicts]
    for number, one in enumerate(table):
        top = f"{world.project}/n{number}"
        if not any(path.startswith((f"{top}/", f"{top} ")) for path in asks):
            _task_runs(world, {number: one.task}, f"alone{number}")
            assert _but_objects(_files(world.project)) == _but_objects(before), one
    assert len(failed) <= len(table) // 10, [table[number] for number in failed]


def _but_objects(files: Iterable[File]) -> list[File]:
    """Objects that are added are no effect: nothing names them."""
    return [one for one in files if "/.git/objects/" not in one[0] or "/info/" in one[0]]


def test_no_git_act_of_a_sample_is_silent(world: World) -> None:
    """Some of the acts, with settings and files among them."""
    _no_git_act_is_silent(world, _IN_GIT[::32])


@pytest.mark.torture
@pytest.mark.parametrize("block", range(12))
def test_no_git_act_is_silent(world: World, block: int) -> None:
    """All of them."""
    _no_git_act_is_silent(world, _IN_GIT[block::12])


def test_no_secret_of_the_home_can_be_read(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    """Not by name, by a search through the home, or in a variable; what is to be readable can be read in the same
    way."""
    secret = {name: f"token=CANARY-{number}-\n" for number, name in enumerate(SECRET_FILES)} | dict(TOKENS)
    for name, content in secret.items():
        (world.home / name).parent.mkdir(parents=True, exist_ok=True)
        (world.home / name).write_text(content)
    (world.home / "notes.txt").write_text("token=CANARY-readable-\n")
    monkeypatch.setenv("GOPROXY", "https://proxy.example.org/CANARY6/")
    monkeypatch.setenv("PIP_INDEX_URL", "https://pypi.org/simple")
    by_name = f"cat {' '.join(map(shlex.quote, secret))} || true"

    async def work() -> str:
        workspace = world.open()
        try:
            script = f"cd ~; grep -rhs CANARY . || true; {by_name}; env | grep -E 'CANARY|PIP_INDEX_URL'"
            return (await workspace.run(Command(("bash", "-c", script)), 60)).stdout.text
        finally:
            await workspace.close()

    assert set(asyncio.run(work()).split()) == {"token=CANARY-readable-", "PIP_INDEX_URL=https://pypi.org/simple"}


def test_a_pending_task_leaves_nothing_in_its_tmp(world: World) -> None:
    """Changes may be pending for weeks; the task's /tmp is not among them."""
    (world.project / "n0").mkdir()
    settled, _ = _task_runs(world, {0: "head -c 1000000 /dev/zero > /tmp/big; mkdir .hidden"})
    assert settled.state == "pending"
    assert list(world.directory().scratch.iterdir()) == []


def test_a_commit_in_a_copy_arrives_where_overlays_work_too(world: World) -> None:
    """The workspace is opened as what it is, not as the best that the machine has by then."""
    (world.project / "n0").mkdir()
    _user_runs(_REPOSITORY, world.project / "n0")
    settled, _ = _task_runs(world, {0: "echo n > n.txt; git add n.txt; git commit -qm three"})
    assert settled.state == "applied", settled
    _user_runs("git log -1 --format=%s | grep three && git diff --quiet HEAD", world.project / "n0")


@pytest.mark.parametrize("asks", [True, False], ids=["carries", "carries-nothing"])
async def test_no_query_takes_words_of_a_file_along(asks: bool) -> None:
    """In whatever spelling; the engine hears only what was not asked about, or agreed to."""
    for query in CARRIES if asks else CARRIES_NOTHING:
        origins, person, heard = Origins("What is the weather in Lisbon in the morning?"), Person(), list[str]()
        origins.observe_text("read_file notes.txt", NOTES)

        async def engine(said: str, heard: list[str] = heard) -> list[Hit]:
            heard.append(said)
            return []

        search = Asking(Search(engine), Gate(AskPerson(person), origins), never, outward=True)
        await Registry([search], StillClock()).toolbox("s", MustNot()).call("web_search", {"query": query})
        assert (len(person.asked), heard) == ((1, []) if asks else (0, [query])), query


async def test_words_that_leave_one_by_one_out_of_several_files_are_counted_together() -> None:
    """One word of each of two files is as much as two words of one."""
    origins = Origins("What is the weather in Lisbon?")
    for number, word in enumerate(("kumquat", "zeppelin", "marzipan")):
        origins.observe_text(f"read_file {number}.txt", word)
    assert [bool(origins.carried([word])) for word in ("kumquat", "weather", "zeppelin")] == [False, False, True]
