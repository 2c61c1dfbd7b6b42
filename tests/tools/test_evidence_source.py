"""What the validators may look at."""

import hashlib
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from real_workspaces import real_workspace
from tool_doubles import PlainWorkspace

from artoo.contracts.changes import Change, ChangeKind, Node, PathClass, Trait
from artoo.ports.evidence import TRIAL_TEXTS, FileView
from artoo.ports.sandbox import Roots
from artoo.ports.workspace import Command, Ended, Workspace
from artoo.tools.context.evidence_source import MAX_TEXT_BYTES, WorkspaceEvidence
from artoo.tools.context.project_snapshot import ProjectLook
from artoo.workspace.changes.path_class import Places

Look = Callable[[PlainWorkspace], WorkspaceEvidence]


@pytest.fixture
def look(roots: Roots, places: Places) -> Look:
    def make(workspace: PlainWorkspace) -> WorkspaceEvidence:
        return WorkspaceEvidence(workspace, places, seconds=5)

    return make


async def test_files_are_seen_in_the_project_then_in_the_workspace(look: Look, roots: Roots) -> None:
    """Kind, size and text of a file, wherever the task may have put it."""
    source = look(PlainWorkspace(roots))
    (roots.workspace / "a.txt").write_text("w")
    digest = hashlib.sha256(b"w").hexdigest()
    assert await source.file("a.txt") == FileView(exists=True, size=1, text="w", sha256=digest)
    (roots.project / "a.txt").write_text("pp")
    assert await source.file("a.txt") == FileView(
        exists=True, size=2, text="pp", sha256=hashlib.sha256(b"pp").hexdigest()
    )
    assert await source.file(str(roots.project)) == FileView(exists=True, is_directory=True)


async def test_what_has_no_text_says_why(look: Look, roots: Roots) -> None:
    """Absent, broken, binary, huge, secret and special files have no text, and a problem."""
    source = look(PlainWorkspace(roots))
    project = roots.project
    (project / "broken").symlink_to("nowhere")
    (project / "binary").write_bytes(b"\0\1\2")
    with (project / "huge").open("wb") as file:
        file.truncate(MAX_TEXT_BYTES + 1)
    os.mkfifo(project / "pipe")
    (roots.home / ".ssh").mkdir()
    (roots.home / ".ssh" / "id").write_text("secret")
    (project / "innocent").symlink_to(roots.home / ".ssh" / "id")
    expected = {
        "broken": (False, "broken link"),
        "binary": (True, "not text"),
        "huge": (True, "larger than"),
        "pipe": (True, "a pipe"),
        "innocent": (False, "credentials"),
        "": (False, "not a path"),
        "a\0b": (False, "not a path"),
    }
    for name, (exists, problem) in expected.items():
        view = await source.file(name)
        assert (view.exists, view.text) == (exists, None), name
        assert problem.casefold() in (view.problem or "").casefold(), name
    for name in ("absent", "x" * 5_000):
        assert await source.file(name) == FileView(exists=False)  # which is no problem: nothing is there to be seen


async def test_a_check_may_write(look: Look, roots: Roots) -> None:
    """It builds what it tests, and its exit code counts; git's own files are nothing that it wrote."""

    def created(path: str, *traits: Trait, node: Node = Node.FILE) -> Change:
        return Change(kind=ChangeKind.CREATED, path=path, node=node, path_class=PathClass.PROJECT, traits=traits)

    made = (created("/p/out", node=Node.DIRECTORY), created("/p/out/a.txt"))
    build = await look(PlainWorkspace(roots, reported=made)).command("true")
    assert (build.exit_code, build.written) == (0, ("/p/out/", "/p/out/a.txt"))
    cache = await look(PlainWorkspace(roots, reported=(created("/p/.git/index", Trait.GIT_BOOKKEEPING),))).command(
        "true"
    )
    assert (cache.exit_code, cache.written) == (0, ())


async def bash(workspace: Workspace, script: str) -> Ended:
    """Run a script to its end."""
    ended = await workspace.run(Command(("bash", "-c", script)), 60)
    assert ended.status == "ok", ended
    return ended


ONLY_LINUX = pytest.mark.skipif(sys.platform != "linux", reason="the backends of Linux")


@ONLY_LINUX
async def test_evidence_is_of_the_workspace(roots: Roots, places: Places) -> None:
    """Checks see what the task did, the difference shows it, and a trial runs on the state that is given."""
    (roots.project / "a.txt").write_text("one\ntwo\n")
    async with real_workspace(roots) as workspace:
        before = await workspace.fork("before")
        source = WorkspaceEvidence(workspace, places, base=lambda: before)
        assert await source.difference() == ""
        await workspace.write(roots.project / "a.txt", b"one\n2\n")
        await bash(workspace, "printf '\\0\\1' > b.bin; echo x > gone; rm gone; mkdir d")
        assert (await source.file("a.txt")).text == "one\n2\n"
        assert (await source.command("grep -q 2 a.txt")).exit_code == 0
        looked = await source.command("touch made && test -f made")
        assert (looked.exit_code, looked.written) == (0, (str(roots.project / "made"),))
        told = (await source.difference()).splitlines()
        assert told[:2] == ["--- a.txt before", "+++ a.txt now"] and {"-two", "+2"} <= set(told)
        assert any(line.startswith("created: b.bin (2 bytes") for line in told) and "created: d/" in told
        cut = await source.difference(90)
        assert "cut here" in cut and len(cut) <= 90
        trial = await source.trial("bash", "cat a.txt; echo three > c.txt; rm a.txt")
        assert (trial.view.exit_code, trial.view.output) == (0, "one\ntwo\n")
        assert trial.files == {
            str(roots.project / "a.txt"): "",
            str(roots.project / "c.txt"): hashlib.sha256(b"three\n").hexdigest(),
        }
        assert {Path(path).name: text for path, text in trial.texts.items()} == {"c.txt": "three\n"}
        assert (await source.trial("python", "print(6 * 7)")).view.output == "42\n"
        left = await source.trial("bash", "printf %300000s > big; for i in {1..30}; do echo $i > n$i; done")
        assert (len(left.files), len(left.texts)) == (31, TRIAL_TEXTS - 1)
        assert str(roots.project / "big") in left.files.keys() - left.texts.keys()
        assert (await source.file("a.txt")).text == "one\n2\n"
    assert os.listdir(roots.project) == ["a.txt"]  # noqa: PTH208


@ONLY_LINUX
async def test_a_move_is_one_line(roots: Roots, places: Places) -> None:
    """Its content is neither lost nor new. Two like files have two targets; an empty one needs its own name."""
    for name, text in (("m.txt", "kept\n"), ("k.txt", "kept\n"), ("e.txt", ""), ("f.txt", "")):
        (roots.project / name).write_text(text)
    async with real_workspace(roots) as workspace:
        script = (
            "mkdir d; mv m.txt d/n.txt; mv k.txt d/k.txt; mv e.txt d/e.txt; mv f.txt d/g.txt; echo kept > d/o.txt"
        )
        await bash(workspace, script)
        told = (await WorkspaceEvidence(workspace, places).difference()).splitlines()
        moved = [line for line in told if line.startswith(("moved", "deleted"))]
        assert moved == [
            "moved: e.txt -> d/e.txt",
            "deleted: f.txt",
            "moved: k.txt -> d/k.txt",
            "moved: m.txt -> d/n.txt",
        ]
        assert [line for line in told if line.startswith("+")] == ["+++ d/g.txt now", "+++ d/o.txt now", "+kept"]


@ONLY_LINUX
async def test_what_stood_in_a_deleted_file_is_shown(roots: Roots, places: Places) -> None:
    """It stands nowhere else once it is gone: a text as far as there is room, of many files their names alone."""
    (roots.project / "oven.txt").write_text("bake at 350\nwait\n")
    (roots.project / "long.txt").write_text("a line of it\n" * 900)
    (roots.project / "b.bin").write_bytes(b"\x00\x01")
    for number in range(8):
        (roots.project / f"n{number}").write_text(f"number {number}\n")
    async with real_workspace(roots) as workspace:
        await bash(workspace, "rm oven.txt long.txt b.bin")
        told = (await WorkspaceEvidence(workspace, places).difference()).splitlines()
        assert told[:2] == ["deleted: b.bin", "deleted: long.txt"]
        at = told.index("deleted: oven.txt")
        assert told[at - 1].endswith("more lines of it are not shown ...]") and at < 200
        assert told[at + 2 :] == ["-bake at 350", "-wait"]
        await bash(workspace, "rm n*")
        told = (await WorkspaceEvidence(workspace, places).difference()).splitlines()
        assert len(told) == 11 and all(line.startswith("deleted: ") for line in told)


@ONLY_LINUX
async def test_a_new_directory_with_very_much_in_it_is_one_line(roots: Roots, places: Places) -> None:
    """An environment, or packages: whoever judges sees what was written by hand."""
    (roots.project / "zz.txt").write_text("before\n")
    async with real_workspace(roots) as workspace:
        packages = "mkdir -p env/lib && for each in $(seq 200); do echo code > env/lib/$each.py; done"
        await bash(workspace, f"{packages}; mkdir d; echo few > d/few.txt; echo now > zz.txt")
        told = (await WorkspaceEvidence(workspace, places).difference()).splitlines()
        headings = [line for line in told if line.startswith(("+++", "created"))]
        few = ["created: d/", "+++ d/few.txt now", "+++ zz.txt now"]
        assert headings == [*few, "created: env/ (201 paths in it, not shown)"]


@ONLY_LINUX
async def test_closed_places_are_called_what_they_are(roots: Roots, places: Places) -> None:
    """A start-up file that the task made is its own writing; one of the person is not, nor a credential.
    A directory is a name."""
    home = roots.home / ".artoo"
    home.mkdir()
    (home / "records").write_text("own\n")
    (roots.home / ".profile").write_text("person's\n")
    async with real_workspace(roots) as workspace:
        await bash(workspace, "echo made > ~/.bashrc; mkdir ~/.new; echo made > ~/.new/token")
        source = WorkspaceEvidence(workspace, places)
        closed = "in the closed part of the home, where credentials may be; not shown"
        told = (await source.difference()).splitlines()
        assert told == [
            "--- (nothing)",
            f"+++ {roots.home}/.bashrc now",
            "@@ -0,0 +1 @@",
            "+made",
            f"created: {roots.home}/.new/",
            f"created: {roots.home}/.new/token ({closed})",
        ]
        for name, text, problem in (
            (".bashrc", "made\n", None),
            (".new/token", None, closed),
            (".profile", None, closed),
            (".artoo/records", None, "artoo's own records, not shown"),
        ):
            seen = await source.file(f"~/{name}")
            assert (seen.text, seen.problem) == (text, problem)
            looked = await ProjectLook(roots, places, lambda: workspace.files).look(f"Look at ~/{name}.")
            assert (problem or "made") in looked.listing or name == ".artoo/records"  # that is not there inside


def _git(project: Path, *arguments: str) -> str:
    plain = {"GIT_CONFIG_NOSYSTEM": "1", "GIT_CONFIG_GLOBAL": os.devnull, "PATH": os.environ["PATH"]}
    who = ("-c", "user.name=a", "-c", "user.email=a@b.c")
    done = subprocess.run(["git", *who, *arguments], cwd=project, env=plain, check=True, capture_output=True)
    return done.stdout.decode().strip()


@ONLY_LINUX
async def test_a_commit_is_told_by_the_names_that_it_moved(roots: Roots, places: Places) -> None:
    """It changes none but git's own records, and whoever judges must not read that nothing was changed."""
    project = roots.project
    _git(project, "init", "--quiet", "--initial-branch=main")
    (project / "a.txt").write_text("one\n")
    _git(project, "add", ".")
    _git(project, "commit", "--quiet", "-m", "first")
    _git(project, "branch", "old")
    _git(project, "pack-refs", "--all")
    first = _git(project, "rev-parse", "HEAD")[:10]
    (project / "a.txt").write_text("two\n")
    (project / "b.txt").write_text("new\n")
    async with real_workspace(roots) as workspace:
        source = WorkspaceEvidence(workspace, places)
        commit = "git -c user.name=a -c user.email=a@b.c commit --quiet -m"
        two = f"git add a.txt && {commit} second && git add b.txt && {commit} third"
        run = await bash(workspace, f"{two} && git rev-parse HEAD && git branch -D old")
        third = run.stdout.text[:10]
        assert await source.difference() == (
            f"in .git: branch main moved from {first} to {third}; branch old removed (it was at {first})"
        )
        await bash(workspace, "git switch --quiet -c work && git tag v1")
        told = await source.difference()
        assert "HEAD moved from branch main to branch work" in told
        assert f"branch work made at {third}" in told and f"tag v1 made at {third}" in told
        assert (project / "b.txt").read_text() == "new\n" and _git(project, "rev-parse", "HEAD")[:10] == first


@ONLY_LINUX
async def test_what_somebody_else_changed_is_not_told_as_the_tasks(roots: Roots, places: Places) -> None:
    """Whoever judges, and whoever goes on, knows of a save meanwhile; of the task's own changes nothing is said."""
    git = "git -c user.name=u -c user.email=u@localhost"
    (roots.project / "list.txt").write_text("bread\n")
    (roots.project / "own.txt").write_text("own\n")
    _outside(roots, f"git init -q -b main .; git add .; {git} commit -qm base")
    async with real_workspace(roots) as workspace:
        await bash(workspace, "echo before >> own.txt")
        script = f"echo milk >> list.txt; echo x >> own.txt; echo new > new.txt; {git} commit -qm task list.txt"
        await bash(workspace, script)
        source = WorkspaceEvidence(workspace, places)
        look = ProjectLook(roots, places, lambda: workspace.files, workspace=workspace)
        assert "somebody" not in await source.difference() + (await look.look("go on")).changed
        _outside(roots, f"echo eggs >> list.txt; echo theirs > new.txt; {git} commit -qm person list.txt")
        told = (await source.difference()).splitlines()
        records, *files = [line for line in told if "somebody else" in line]
        assert records.startswith("in .git: branch main moved")
        assert [line.partition(":")[0] for line in files] == ["list.txt", "new.txt"]
        assert told[told.index(files[0]) + 1] == "--- list.txt before"
        others, git = [line for line in (await look.look("go on")).changed.splitlines() if "somebody else" in line]
        assert others.endswith(": list.txt, new.txt") and git.startswith("in .git: branch main moved")


def _outside(roots: Roots, script: str) -> None:
    subprocess.run(["bash", "-ec", script], cwd=roots.project, check=True)
