"""`artoo sandbox` and `artoo undo`: one command under the gate, and back."""

from __future__ import annotations

import asyncio
import json
import re
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from artoo.tasklog.lock import TaskLock
from overlay_here import overlay_backend

Run = Callable[..., "subprocess.CompletedProcess[str]"]


@pytest.fixture(autouse=True)
def backend(project: Path) -> None:
    """The machine's backend, found once."""
    asyncio.run(overlay_backend(project.parent / ".artoo"))


def test_what_is_not_agreed_to_waits(artoo: Run, project: Path) -> None:
    """Without a terminal the review is shown, the file is whole, it waits with exit code 4, and apply does it."""
    (project / "a.txt").write_text("old\n")
    ended = artoo("sandbox", "--", "echo new > a.txt; echo said")
    assert (ended.returncode, ended.stdout) == (4, "said\n")
    assert "~ edited  a.txt (4 B > 4 B; " in ended.stderr
    assert "      -old\n      +new\nkeep (nobody)\n" in ended.stderr
    assert "apply it: artoo apply " in ended.stderr
    assert (project / "a.txt").read_text() == "old\n"
    assert "artoo sandbox -- 'echo new > a.txt; echo said'" in artoo("diff").stdout
    assert artoo("apply").returncode == 0
    assert (project / "a.txt").read_text() == "new\n"


def test_a_policy_permits_and_undo_puts_back(artoo: Run, project: Path) -> None:
    """--allow answers; the list names the act; undo restores, and refuses what was changed since."""
    (project / "a.txt").write_text("old a\n")
    (project / "b.txt").write_text("old b\n")
    ended = artoo("sandbox", "--allow", "edits *.txt", "--", "echo new | tee a.txt > b.txt; echo x > c.txt")
    assert ended.returncode == 0, ended.stderr
    assert (project / "b.txt").read_text() == "new\n"
    [task] = json.loads(artoo("undo", "--list", "--json").stdout)
    assert task["paths"] == 3
    (project / "b.txt").write_text("changed since\n")
    undone = artoo("undo", task["task_id"][:13], "--json")
    report = json.loads(undone.stdout)
    assert undone.returncode == 1
    assert set(report["restored"]) == {f"{project}/a.txt", f"{project}/c.txt"}
    assert [one["path"] for one in report["refused"]] == [f"{project}/b.txt"]
    assert (project / "a.txt").read_text() == "old a\n"
    assert (project / "b.txt").read_text() == "changed since\n"
    assert not (project / "c.txt").exists()


def test_what_came_back_and_what_went_is_told_apart(artoo: Run, project: Path) -> None:
    """What the task made is removed, what it took away is put back; of many the first are named and all counted."""
    for number in range(14):
        (project / f"{number:02}.txt").write_text(f"{number}\n")
    assert artoo("sandbox", "--", "mkdir new && mv *.txt new/").returncode == 4
    assert artoo("apply").returncode == 0
    undone = artoo("undo", "--yes")
    assert undone.returncode == 0, undone.stderr
    back = [f"restored  {number:02}.txt" for number in range(12)]
    gone = ["removed   new", *(f"removed   new/{number:02}.txt" for number in range(11))]
    asked, *told = undone.stdout.splitlines()
    assert asked == "asked for: artoo sandbox -- 'mkdir new && mv *.txt new/'"
    assert told == [*back, "restored  2 more", *gone, "removed   3 more"]
    assert sorted(path.name for path in project.iterdir()) == [f"{number:02}.txt" for number in range(14)]


def test_what_git_brought_over_is_one_line(artoo: Run, project: Path) -> None:
    """For each change of a repository."""
    git = "git -c user.name=u -c user.email=u@example.invalid"
    subprocess.run(["bash", "-ec", f"git init -q; {git} commit -q --allow-empty -m one"], cwd=project, check=True)
    script = f"echo n > n; git add n; {git} commit -qm task; git init -q other"
    ran = artoo("sandbox", "--", script)
    assert ran.returncode in (0, 4), ran.stderr
    assert ran.returncode == 0 or artoo("apply").returncode == 0
    undone = artoo("undo", "--yes")
    assert undone.returncode == 0, undone.stderr
    lines = [re.sub(r"\d+", "N", line) for line in undone.stdout.splitlines()[1:]]
    assert lines == [
        "restored  .git (master: N commit: task)",
        "restored  other/.git (new repository: N commits)",
        "removed   n",
        "removed   other",
    ]


def test_what_a_start_has_put_back_is_not_unknown(artoo: Run, project: Path) -> None:
    """An undo that was cut is ended by the start that is to repeat it: it is told, and told again."""
    (project / "a.txt").write_text("old\n")
    assert artoo("sandbox", "--allow", "edits *.txt", "--", "echo new > a.txt").returncode == 0
    [record] = [path.parent for path in (project.parent / ".artoo" / "undo").glob("*/*/manifest.json")]
    (record / "undoing.json").write_bytes((record / "manifest.json").read_bytes())
    task = record.parent.name.replace("%2E", ".")
    for _ in range(2):
        ended = artoo("undo", task)
        assert (ended.returncode, ended.stderr) == (0, "")
        assert " was undone already, " in ended.stdout
    assert (project / "a.txt").read_text() == "old\n"
    assert artoo("undo", "nobody").returncode == 2


def test_a_damaged_journal_hides_no_other_task(artoo: Run, project: Path) -> None:
    """It is named, by itself and in the list; every other task is listed and put back, and new ones run."""
    for name in ("one", "two", "three"):
        assert artoo("sandbox", "--", f"echo {name} > {name}.txt").returncode == 0
    journals = sorted((project.parent / ".artoo" / "undo").glob("*/*/manifest.json"))
    first, damaged, third = [json.loads(path.read_text())["task_id"] for path in journals]
    journals[1].write_bytes(journals[1].read_bytes()[:10])
    listed = artoo("undo", "--list", "--json")
    assert (listed.returncode, [one["task_id"] for one in json.loads(listed.stdout)]) == (0, [first, third])
    assert f"the manifest {journals[1]} cannot be read" in listed.stderr
    named = artoo("undo", damaged)
    assert named.returncode == 2 and str(journals[1]) in named.stderr
    assert artoo("undo", first).returncode == 0
    assert artoo("sandbox", "--", "echo four > four.txt").returncode == 0
    assert sorted(path.name for path in project.iterdir()) == ["four.txt", "three.txt", "two.txt"]


def test_a_running_task_is_not_put_back(artoo: Run, project: Path, tmp_path: Path) -> None:
    """While a task runs, undoing it is refused with the reason; afterwards it works."""
    assert artoo("sandbox", "--", "echo x > a.txt").returncode == 0
    [task] = json.loads(artoo("undo", "--list", "--json").stdout)
    with TaskLock(tmp_path / "home" / ".artoo", task["task_id"]):
        ended = artoo("undo", task["task_id"])
        assert ended.returncode == 2
        assert "is still running" in ended.stderr
        assert (project / "a.txt").exists()
    assert artoo("undo", task["task_id"]).returncode == 0
    assert not (project / "a.txt").exists()


def test_the_commands_own_exit_code(artoo: Run) -> None:
    """Several words are a program and its arguments; its exit code comes through, a timeout is 124."""
    assert artoo("sandbox", "--", "sh", "-c", "exit 7").returncode == 7
    assert artoo("sandbox", "--", "echo", "a  b").stdout == "a  b\n"
    assert artoo("sandbox", "--seconds", "0.5", "--", "sleep 30").returncode == 124


def test_mistakes(artoo: Run) -> None:
    """A policy that cannot be read, and a task that is not there, are usage errors."""
    assert artoo("sandbox", "--allow", "everything", "--", "true").returncode == 2
    ended = artoo("undo", "nothing")
    assert ended.returncode == 2
    assert "artoo undo --list" in ended.stderr
    assert "Nothing can be undone" in artoo("undo", "--list").stdout


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGKILL])
def test_a_command_that_is_interrupted_leaves_its_changes_in_the_workspace(
    artoo: Run, project: Path, number: signal.Signals
) -> None:
    """Nothing of them is in the project; they are shown, and one command discards them."""
    argv = [sys.executable, "-m", "artoo", "sandbox", "--", "echo x > made; echo here; sleep 60"]
    with subprocess.Popen(argv, cwd=project, stdin=subprocess.DEVNULL, stderr=subprocess.PIPE) as running:
        until = time.monotonic() + 60
        while not list((project.parent / ".artoo" / "workspaces").rglob("made")) and time.monotonic() < until:
            time.sleep(0.05)
        running.send_signal(number)
        assert running.wait(30) == (-number if number is signal.SIGKILL else 130)
    waiting = json.loads(artoo("status", "--json").stdout)["changes_waiting"]
    assert [sorted(one["commands"]) for one in waiting] == [["apply", "diff", "discard"]]
    assert "+ new  made" in artoo("diff").stdout and not list(project.iterdir())
    assert artoo("discard", "--yes").returncode == 0
    assert json.loads(artoo("status", "--json").stdout)["changes_waiting"] == [] and not list(project.iterdir())


def test_without_a_task_undo_names_the_latest_here_and_puts_nothing_back(artoo: Run, project: Path) -> None:
    """Without a terminal it is refused with the command to type; --yes is consent; elsewhere nothing is meant."""
    for name in ("one", "two"):
        assert artoo("sandbox", "--", f"echo {name} > {name}.txt").returncode == 0
    _, latest = json.loads(artoo("undo", "--list", "--json").stdout)
    refused = artoo("undo")
    assert (refused.returncode, refused.stdout) == (2, "")
    assert re.search(rf"artoo undo {latest['task_id'][:10]}", refused.stderr)
    assert (project / "two.txt").exists()
    assert artoo("undo", "--yes").returncode == 0
    assert [path.name for path in project.iterdir()] == ["one.txt"]
    elsewhere = project.parent / "elsewhere"
    elsewhere.mkdir()
    argv = [sys.executable, "-m", "artoo", "undo", "--yes"]
    other = subprocess.run(argv, cwd=elsewhere, capture_output=True, text=True, check=False)
    assert other.returncode == 2 and "artoo undo --list" in other.stderr
    assert (project / "one.txt").exists()


def test_the_list_names_a_command(artoo: Run) -> None:
    """What a command by itself changed at once is listed with the command, though it has no log; and a word that is
    an id, and no file, is never taken for a path."""
    assert artoo("sandbox", "--", "echo new > made.txt").returncode == 0
    assert "artoo sandbox -- 'echo new > made.txt'" in artoo("undo", "--list").stdout
    assert artoo("sandbox", "--", "echo newer > made.txt").returncode == 4
    refused = artoo("diff", "01a21bcd-422f")
    assert refused.returncode == 2 and "no pending changes of a task '01a21bcd-422f'" in refused.stderr


def test_the_first_line_of_a_script_asks_for_hosts(artoo: Run, project: Path) -> None:
    """As in a task; together with --network it is one question, and without a yes nothing runs."""
    ended = artoo("sandbox", "--network", "b.example", "--", "# artoo hosts: a.example\ntouch made")
    assert ended.returncode == 1 and not (project / "made").exists()
    assert "a.example:443" in ended.stderr and "b.example:443" in ended.stderr
    wrong = artoo("sandbox", "--", "# artoo hosts: http://a.example/\ntrue")
    assert wrong.returncode == 2 and "http://a.example/" in wrong.stderr


@pytest.mark.parametrize(
    ("command", "way"),
    [
        (("curl -sS http://127.0.0.1:9/",), "# artoo hosts: pypi.org localhost:8000"),
        (("curl", "-sS", "http://127.0.0.1:9/"), "--network pypi.org --network localhost:8000"),
    ],
)
def test_a_command_without_a_network_is_told_its_own_way_to_ask(
    artoo: Run, command: tuple[str, ...], way: str
) -> None:
    """A script by its first line, a program with arguments by an option: it has no line."""
    ended = artoo("sandbox", "--", *command)
    assert ended.returncode != 0
    assert ended.stderr.rstrip().splitlines()[-1].endswith(way) or f"as in: {way}\n" in ended.stderr
