"""`artoo diff`, `apply` and `discard` on a real terminal: dangers are named and asked about once more."""

from __future__ import annotations

from pathlib import Path

import pytest
from cli_terminal import CTRL_C, CTRL_D, terminal
from pending_cases import waits

HARMLESS = "sed -i s/old/new/ a.txt"
DANGEROUS = "sed -i s/old/new/ a.txt; rm gone.txt"


@pytest.fixture
def project(project: Path) -> Path:
    """With two files."""
    (project / "a.txt").write_text("old\n")
    (project / "gone.txt").write_text("here\n")
    return project


@pytest.fixture
def home(project: Path) -> Path:
    """artoo's own directory."""
    return project.parent / ".artoo"


def test_what_undo_can_put_back_is_applied_without_another_question(project: Path, home: Path) -> None:
    """Typing `artoo apply` is the yes to edits."""
    waits(home, project.parent, project, HARMLESS)
    with terminal("accepted", ["apply", "0198"], home) as screen:
        screen.wait_for("artoo undo 0198")
        assert screen.end() == 0
    assert (project / "a.txt").read_text() == "new\n"


@pytest.mark.parametrize(("keys", "code", "there"), [("y\r", 0, False), (CTRL_D, 1, True)])
def test_a_deletion_is_named_and_asked_about(project: Path, home: Path, keys: str, code: int, there: bool) -> None:
    """The review is shown with the deletion by name; only a yes applies it."""
    waits(home, project.parent, project, DANGEROUS)
    with terminal("accepted", ["apply", "0198"], home) as screen:
        screen.wait_for("- deleted  gone.txt")
        screen.wait_for("[y]es, [N]o: ")
        assert "tidy up" in screen.shown
        screen.send(keys)
        assert screen.end() == code
    assert (project / "gone.txt").exists() == there


def test_a_name_with_many_blanks_stays_one_line(project: Path, home: Path) -> None:
    """Above the question and among what was done: its further rows are marked, and look like no line of artoo's."""
    name = f"gone{' ' * 90}+ new  fine.txt"
    (project / name).write_text("mine\n")
    waits(home, project.parent, project, f"rm '{name}'")
    with terminal("accepted", ["apply", "0198"], home) as screen:
        screen.wait_for("[y]es, [N]o: ")
        assert "↳ + new  fine.txt" in screen.shown
        screen.send("y\r")
        screen.wait_for("artoo undo 0198")
        assert screen.shown.count("↳ + new  fine.txt") >= 2
        assert screen.end() == 0


def test_ctrl_c_at_the_question_is_an_end(project: Path, home: Path) -> None:
    """It ends the command at once, and what is typed after it settles nothing."""
    waits(home, project.parent, project, DANGEROUS)
    with terminal("accepted", ["apply", "0198"], home) as screen:
        screen.wait_for("[y]es, [N]o: ")
        screen.send(CTRL_C)
        assert screen.end() == 130
    assert (project / "gone.txt").exists()
    with terminal("accepted", ["diff"], home) as screen:
        screen.wait_for("- deleted  gone.txt")
        assert screen.end() == 0


def test_without_an_id_the_latest_is_named_and_asked_about(project: Path, home: Path) -> None:
    """Nobody applies what they have not seen: the request and the changes stand above the question."""
    waits(home, project.parent, project, HARMLESS, request="mend a.txt")
    with terminal("accepted", ["apply"], home) as screen:
        screen.wait_for("mend a.txt")
        screen.wait_for("~ edited  a.txt")
        screen.wait_for("[y]es, [N]o: ")
        screen.send("y\r")
        assert screen.end() == 0
    assert (project / "a.txt").read_text() == "new\n"


@pytest.mark.parametrize(("keys", "code"), [("y\r", 0), ("n\r", 1)])
def test_discarding_is_asked_about(project: Path, home: Path, keys: str, code: int) -> None:
    """What is discarded is gone, so it is asked once more."""
    waits(home, project.parent, project, DANGEROUS)
    with terminal("accepted", ["discard", "0198"], home) as screen:
        screen.wait_for("Discard all changes of this task?")
        screen.send(keys)
        assert screen.end() == code
    with terminal("accepted", ["diff"], home) as screen:
        screen.wait_for("Nothing is pending." if code == 0 else "- deleted  gone.txt")
        assert screen.end() == 0


def test_the_conversation_has_these_commands(project: Path, home: Path) -> None:
    """/diff, /apply, /discard and /undo settle what waits without leaving."""
    waits(home, project.parent, project, DANGEROUS)
    with terminal("accepted", [], home) as screen:
        screen.wait_for("artoo>")
        for command, shown in (
            ("/diff 0198 gone.txt", "- deleted  gone.txt"),
            ("/apply 0198 a.txt", "Applied: a.txt"),
            ("/discard 0198 --yes", "Discarded"),
            ("/undo --list", ": artoo undo 0198"),
            ("/undo", "Undo this? [y]es, [N]o: "),
        ):
            screen.wait_for_prompt()
            screen.send(f"{command}\r")
            screen.wait_for(shown)
        screen.send("\r")
        screen.wait_for_prompt()
        screen.send(CTRL_D)
        assert screen.end() == 0
    assert (project / "a.txt").read_text() == "new\n"
    assert (project / "gone.txt").exists()


@pytest.mark.parametrize(("keys", "code", "text"), [("y\r", 0, "old\n"), ("\r", 1, "new\n")])
def test_undo_without_a_task_asks_about_the_latest(
    project: Path, home: Path, keys: str, code: int, text: str
) -> None:
    """It is named with its paths; only a clear yes puts it back."""
    waits(home, project.parent, project, HARMLESS)
    with terminal("accepted", ["apply", "0198", "--yes"], home) as screen:
        assert screen.end() == 0
    with terminal("accepted", ["undo"], home) as screen:
        screen.wait_for("a.txt")
        screen.wait_for("Undo this? [y]es, [N]o: ")
        screen.send(keys)
        assert screen.end() == code
    assert (project / "a.txt").read_text() == text


def test_ctrl_c_at_the_question_of_a_command_keeps_what_it_made(project: Path, home: Path) -> None:
    """As a task's does: it said nothing, and what waited was called a command that was cut off before its end."""
    with terminal("accepted", ["sandbox", "--", "rm gone.txt"], home) as screen:
        screen.wait_for("[s]how again: ")
        screen.send(CTRL_C)
        screen.wait_for("apply it: artoo apply")
        assert screen.end() == 4
    assert (project / "gone.txt").exists()
    with terminal("accepted", ["status"], home) as screen:
        screen.wait_for("1 deleted, since")
        screen.end()
        assert "artoo sandbox -- 'rm gone.txt'" in screen.shown and "cut off" not in screen.shown
