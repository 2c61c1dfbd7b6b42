"""`artoo diff`, `apply`, `discard` and `status`: what waits is settled in another process."""

from __future__ import annotations

import asyncio
import json
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest
from pending_cases import FIRST, SECOND, waits

from artoo.cli.results.pending_view import settling_commands
from artoo.contracts.settling import Settled
from artoo.runtime.changes.pending_changes import Pending

Run = Callable[..., "subprocess.CompletedProcess[str]"]
Wait = Callable[..., None]

CHANGE = "sed -i s/old/new/ a.txt; rm gone.txt; mkdir -p sub; echo made > sub/made.txt"


@pytest.fixture
def project(project: Path) -> Path:
    """With two files."""
    (project / "a.txt").write_text("old\n")
    (project / "gone.txt").write_text("here\n")
    return project


@pytest.fixture
def wait(project: Path) -> Wait:
    """Makes a task whose changes wait."""

    def make(command: str = CHANGE, **more: str) -> None:
        home = project.parent
        assert waits(home / ".artoo", home, project, command, **more).state == "pending"

    return make


def test_diff_shows_what_waits_and_changes_nothing(artoo: Run, wait: Wait, project: Path) -> None:
    """The request, counts, every change with its diff, and the commands; the files are as they were."""
    wait()
    ended = artoo("diff")
    assert ended.returncode == 0, ended.stderr
    assert ended.stdout.startswith("0198f000-1111  tidy up\n  1 deleted, 1 edited, ")
    assert "- deleted  gone.txt (5 B)\n" in ended.stdout
    assert "      -old\n      +new\n" in ended.stdout
    assert (
        "apply it: artoo apply 0198f000-1111; discard it: artoo discard 0198f000-1111; kept until" in ended.stdout
    )
    assert (project / "a.txt").read_text() == "old\n"


def test_a_new_directory_with_a_crowd_in_it_is_one_line(artoo: Run, wait: Wait) -> None:
    """How many are in it, and the command that shows them; what needs a yes stands by itself, as do few files."""
    made = "mkdir -p 'my env/lib'; for each in $(seq 60); do echo code > \"my env/lib/$each.py\"; done"
    wait(f"{CHANGE}; {made}; echo x > 'my env/lib/site.pth'")
    shown = artoo("diff").stdout
    assert "  + new  my env/ (60 new files; see them: artoo diff 0198f000-1111 'my env')\n" in shown
    assert "60.py" not in shown and "my env/lib/\n" not in shown
    assert "! runs later by itself  my env/lib/site.pth" in shown
    assert "+ new  sub/made.txt (5 B)\n      @@ -0,0 +1 @@\n      +made\n" in shown
    assert artoo("diff", "0198", "my env").stdout.count("+code\n") == 60


def test_an_environment_is_one_line_though_many_of_its_files_start_by_themselves(artoo: Run, wait: Wait) -> None:
    """The line has the class of these files; a few of them have a line each."""
    wait("mkdir -p env/lib; for each in $(seq 60); do echo x > env/lib/$each.py; echo x > env/lib/$each.pth; done")
    shown = artoo("diff").stdout
    about = "120 new files; 60 of them may start by themselves later; see them: artoo diff 0198f000-1111 env"
    assert f"  ! runs later by itself  env/ ({about})\n" in shown
    assert ".pth" not in shown and "60.py" not in shown
    assert "! runs later by itself  env/lib/60.pth" in artoo("diff", "0198", "env").stdout


def test_apply_and_undo(artoo: Run, wait: Wait, project: Path) -> None:
    """All of it takes effect, is told by name, and undo puts it back, naming the request."""
    wait()
    ended = artoo("apply", "0198")
    assert ended.returncode == 0, ended.stderr
    assert (project / "a.txt").read_text() == "new\n"
    assert not (project / "gone.txt").exists()
    assert (project / "sub" / "made.txt").read_text() == "made\n"
    assert "Made: sub/made.txt" in ended.stdout and "Removed: gone.txt\n" in ended.stdout
    assert "undo it: artoo undo 0198f000-1111" in ended.stdout
    assert artoo("diff").stdout == "Nothing is pending.\n"
    assert artoo("undo", "0198").returncode == 0
    assert (project / "a.txt").read_text() == "old\n"
    assert (project / "gone.txt").read_text() == "here\n"
    assert not (project / "sub").exists()


def test_a_part_is_applied_and_the_rest_waits(artoo: Run, wait: Wait, project: Path) -> None:
    """A path, then a directory with what is in it; what is left still waits, and can be discarded."""
    wait()
    part = artoo("apply", "0198", "a.txt")
    assert part.returncode == 0 and part.stdout.startswith("Applied: a.txt\n")
    assert "Pending your approval: 1 deleted, 1 new\n" in part.stdout
    assert (project / "a.txt").read_text() == "new\n"
    assert (project / "gone.txt").exists()
    assert json.loads(artoo("apply", FIRST, "sub", "--json").stdout)["state"] == "partly"
    assert (project / "sub" / "made.txt").exists()
    shown = artoo("diff", "0198").stdout
    assert "gone.txt" in shown
    assert "a.txt" not in shown
    ended = artoo("discard", "0198")
    assert ended.returncode == 0
    assert (
        ended.stdout
        == "Discarded the pending changes. What was applied before stays; undo it: artoo undo 0198f000-1111\n"
    )
    assert (project / "gone.txt").read_text() == "here\n"
    assert artoo("diff", "--json").stdout == "null\n"


def test_a_path_alone_is_one_of_the_latest(artoo: Run, wait: Wait, project: Path) -> None:
    """`artoo apply PATH`, as `artoo diff PATH`: what begins no id is a path."""
    wait()
    assert artoo("apply", "a.txt").returncode == 0
    assert (project / "a.txt").read_text() == "new\n"
    assert (project / "gone.txt").exists()
    wrong = artoo("apply", "nothing.txt")
    assert (wrong.returncode, "'nothing.txt' is neither a pending task nor a path" in wrong.stderr) == (2, True)


def test_what_may_be_a_task_or_a_path_is_not_guessed(artoo: Run, wait: Wait, project: Path) -> None:
    """A folder may be called as all ids begin: nothing is done, and either can be said."""
    wait("mkdir 01; echo made > 01/made.txt; echo new > a.txt")
    for command in ("diff", "apply"):
        either = artoo(command, "01")
        assert either.returncode == 2
        assert "'01' begins a task's id and is a path of it; for the path: ./01, for the task: 0198f000-1111" in (
            either.stderr
        )
    dropped = artoo("discard", "01")
    assert (dropped.returncode, "dropped as a whole, for the task: 0198f000-1111" in dropped.stderr) == (2, True)
    assert artoo("diff", "019").returncode == 0
    assert artoo("apply", "./01").returncode == 0
    assert (project / "01" / "made.txt").read_text() == "made\n"
    assert (project / "a.txt").read_text() == "old\n"
    assert artoo("apply", "0198f000-1").returncode == 0
    assert (project / "a.txt").read_text() == "new\n"


def test_the_name_that_is_shown_is_enough(artoo: Run, wait: Wait, project: Path) -> None:
    """Also beside tasks that were applied before: each command that is told can be typed as it stands."""
    wait("echo one > a.txt", task_id=FIRST)
    assert "undo it: artoo undo 0198f000-1111\n" in artoo("apply", "0198").stdout
    wait("rm gone.txt", task_id=SECOND)
    assert "artoo apply 0198f000-2222" in artoo("status").stdout
    assert "undo it: artoo undo 0198f000-2222\n" in artoo("apply", "gone.txt").stdout
    assert artoo("undo", "0198f000-2222").returncode == 0
    assert (project / "gone.txt").exists()


def test_discard_leaves_every_byte(artoo: Run, wait: Wait, project: Path) -> None:
    """Nothing of it is left, and nothing of the person's is changed."""
    wait()
    assert json.loads(artoo("discard", "0198", "--json").stdout)["state"] == "discarded"
    assert sorted(path.name for path in project.iterdir()) == ["a.txt", "gone.txt"]
    assert (project / "a.txt").read_text() == "old\n"
    assert artoo("apply", "0198").returncode == 2


def test_a_conflict_shows_both_versions_and_the_rest_can_be_applied(artoo: Run, wait: Wait, project: Path) -> None:
    """What the person changed meanwhile stays; without --rest nothing is applied, with it all else."""
    wait()
    (project / "a.txt").write_text("mine\n")
    shown = artoo("diff").stdout
    assert "In conflict, so not applied" in shown
    assert "      -mine\n      +new\n" in shown
    assert "apply it: artoo apply 0198f000-1111 --rest; " in shown
    refused = artoo("apply", "0198")
    assert refused.returncode == 1
    assert "Nothing was applied: in conflict with what is there now: a.txt (" in refused.stdout
    assert "apply it: artoo apply 0198f000-1111 --rest" in refused.stdout
    assert (project / "gone.txt").exists()
    rest = artoo("apply", "0198", "--rest")
    assert rest.returncode == 0 and "Pending your approval" not in rest.stdout
    assert "1 in conflict with later changes" in rest.stdout
    assert (project / "a.txt").read_text() == "mine\n"
    assert not (project / "gone.txt").exists()
    assert artoo("discard", "0198").returncode == 0
    assert (project / "a.txt").read_text() == "mine\n"


def test_where_only_a_conflict_is_left_nothing_is_offered_that_can_only_refuse(
    artoo: Run, wait: Wait, project: Path
) -> None:
    """Each command says that what is there stays and what can be done; put back, it is no conflict."""
    wait("rm a.txt; echo made > made.txt")
    (project / "a.txt").write_text("mine\n")
    hint = "your version stays; copy parts of the task's version by hand: artoo diff 0198f000-1111"
    assert "artoo apply 0198f000-1111 --rest" in artoo("apply", "0198", "a.txt").stdout
    assert hint in artoo("apply", "0198", "--rest").stdout
    shown = artoo("status").stdout
    assert "\n      1 in conflict with later changes, since " in shown
    assert "\n      artoo diff 0198f000-1111, artoo discard 0198f000-1111\n" in shown
    [waiting] = json.loads(artoo("status", "--json").stdout)["changes_waiting"]
    assert (waiting["conflicts"], sorted(waiting["commands"])) == (1, ["diff", "discard"])
    assert "pending your approval" not in waiting["reason"]
    assert waiting["reason"].endswith("; your version stays") and "artoo" not in waiting["reason"]
    looked = artoo("diff").stdout
    assert "      - your version; the task deleted the file\n      @@ -1 +0,0 @@\n      -mine\n" in looked
    assert hint in looked
    for typed in ((), ("--rest",), ("a.txt",)):
        refused = artoo("apply", "0198", *typed)
        assert (refused.returncode, "Nothing was applied" in refused.stdout, hint in refused.stdout) == (
            1,
            True,
            True,
        )
    cut = Pending(FIRST, 0.0, 0.0, "tidy up", conflicts=1, cut_off=True)
    assert settling_commands(cut, "0198")["resume"] == "artoo resume 0198"
    (project / "a.txt").unlink()
    looked = artoo("diff").stdout
    assert "The task changed nothing." in looked and "apply it" not in looked
    (project / "a.txt").write_text("old\n")
    assert artoo("apply", "0198").returncode == 0 and not (project / "a.txt").exists()


def test_tasks_are_named_by_the_beginning_of_their_id(artoo: Run, wait: Wait, project: Path) -> None:
    """The latest without an id, a path of it, a unique beginning; a common one and a wrong path are 2."""
    wait("echo one > a.txt", task_id=FIRST, request="the first")
    wait("rm gone.txt", task_id=SECOND, request="the second")
    assert "the second" in artoo("diff").stdout
    assert "the second" in artoo("diff", "gone.txt").stdout
    assert "the first" in artoo("diff", "0198f000-1111").stdout
    common = artoo("apply", "0198")
    assert common.returncode == 2
    assert "2 tasks begin with '0198': 0198f000-1111, 0198f000-2222" in common.stderr
    for settling in ("apply", "discard"):
        refused = artoo(settling)
        assert (refused.returncode, "2 tasks are pending; name one" in refused.stderr) == (2, True)
        told = " ".join(artoo(settling, "--help").stdout.split())
        assert "Without a terminal, TASK may be left out only if a single task is pending" in told
    wrong = artoo("apply", "0198f000-1111", "gone.txt")
    assert wrong.returncode == 2
    assert "'gone.txt' is neither a pending task nor a path" in wrong.stderr
    assert artoo("apply", "0198f000-2222").returncode == 0
    assert artoo("apply").returncode == 0
    assert (project / "a.txt").read_text() == "one\n"


def test_status_names_what_waits(artoo: Run, wait: Wait) -> None:
    """Since when, until when, what it would change, and the commands; the same for programs."""
    assert "no pending changes" in artoo("status").stdout
    wait()
    shown = artoo("status").stdout
    assert "pending changes:\n  0198f000-1111  tidy up\n      1 deleted, 1 edited, " in shown
    assert "artoo diff 0198f000-1111, artoo apply 0198f000-1111, artoo discard 0198f000-1111" in shown
    [waiting] = json.loads(artoo("status", "--json").stdout)["changes_waiting"]
    assert (waiting["task_id"], waiting["request"], waiting["counts"]["deletion"]) == (FIRST, "tidy up", 1)
    assert waiting["since"] < waiting["expires_at"]
    assert waiting["commands"]["apply"] == f"artoo apply {FIRST}"


@pytest.mark.parametrize("typed", [("apply", FIRST, ""), ("apply", "/"), ("discard", "")])
def test_an_empty_word_names_neither_a_task_nor_everything(
    artoo: Run, wait: Wait, project: Path, typed: tuple[str, ...]
) -> None:
    """A script whose variable was not set has agreed to nothing: exit 2, and all of it still waits."""
    wait()
    ended = artoo(*typed)
    assert (ended.returncode, ended.stdout) == (2, ""), ended.stderr
    assert (project / "gone.txt").exists()
    assert (project / "a.txt").read_text() == "old\n"
    assert FIRST[:13] in artoo("status").stdout


@pytest.mark.parametrize(("act", "words"), [("apply", "undo it: artoo undo"), ("discard", "Discarded")])
def test_an_act_that_a_ctrl_c_comes_too_late_for_is_told(
    artoo: Run, project: Path, wait: Wait, monkeypatch: pytest.MonkeyPatch, act: str, words: str
) -> None:
    """It takes effect as a whole all the same, so the person learns of it, and how to take it back."""
    wait()
    real = getattr(Pending, act)

    async def interrupted(self: Pending, *arguments: object, **more: object) -> Settled:
        running = asyncio.all_tasks()
        waiting = running - {asyncio.current_task()} or running  # the command's own, as Ctrl-C cancels it
        asyncio.get_running_loop().call_soon(lambda: [each.cancel() for each in waiting])
        return await real(self, *arguments, **more)

    monkeypatch.setattr(Pending, act, interrupted)
    ended = artoo(act, "0198")
    assert ended.returncode == 0 and words in ended.stdout
    assert (project / "gone.txt").exists() == (act == "discard")
