"""The review of a task on a real terminal."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from cli_terminal import CTRL_D, Terminal, terminal

ASK = "[a]pply all, [c]hoose, [k]eep for later, [d]iscard, [s]how again: "


def decided(screen: Terminal) -> tuple[str, list[str]]:
    """The end of a run with --json: what became of the difference, and the chosen paths."""
    screen.wait_for('"directive"')
    screen.end()
    line = next(line for line in screen.shown.splitlines() if line.startswith("{"))
    changes = json.loads(line)["changes"]
    return changes["state"], changes["applied"]


@pytest.mark.parametrize(
    ("keys", "said", "state"),
    [
        ("a\r", "approved: all of it", "applied"),
        (CTRL_D, "keep it for later", "pending"),
        ("d\ry\r", "discard it", "discarded"),
        ("d\rn\rk\r", "keep it for later", "pending"),
    ],
)
def test_decisions(tmp_path: Path, keys: str, said: str, state: str) -> None:
    """Apply, keep, and discard after a second yes; an empty line and the end of input keep."""
    with terminal("reviews", ["run", "--json", "tidy up"], tmp_path) as screen:
        screen.wait_for(ASK)
        for part in keys.removesuffix("\r").split("\r"):
            screen.send(part + ("\r" if part != CTRL_D else ""))
        screen.wait_for(said)
        assert decided(screen)[0] == state
        assert screen.as_before


def test_a_part_is_chosen_and_named_before_it_is_applied(tmp_path: Path) -> None:
    """A wrong name is said, what was chosen is listed, the rest is counted, and only a yes applies it."""
    with terminal("reviews", ["run", "--json", "tidy up"], tmp_path) as screen:
        screen.wait_for(ASK)
        screen.send("c\r")
        screen.wait_for("Which?")
        screen.send("9\r")
        screen.wait_for("not in the list: 9")
        screen.send("2\r")
        screen.wait_for("Apply these 1?")
        screen.wait_for("The rest (1) stays pending.")
        screen.send("y\r")
        screen.wait_for("approved: these 1; the rest stays pending")
        assert decided(screen) == ("partly", ["/home/me/project/src/a.py"])


def test_dangers_stand_before_the_question_below_long_diffs(tmp_path: Path) -> None:
    """The whole review is printed; the deletion and the hook are named again right before the question."""
    with terminal("reviews_much", ["run", "--json", "tidy up"], tmp_path) as screen:
        screen.wait_for(ASK)
        assert screen.shown.count("line 29") == 5
        before_question = screen.shown.split(ASK)[0].splitlines()[-4:]
        assert any("- 1 deleted  /home/me/project/docs/old.md" in line for line in before_question)
        hook = "! 1 runs later by itself  /home/me/project/.git/hooks/pre-commit"
        assert any(hook in line for line in before_question)
        screen.send("a\r")
        assert decided(screen)[0] == "applied"
        assert screen.as_before


def test_one_loss_among_hundreds_is_said_wherever_the_person_answers(tmp_path: Path) -> None:
    """One deletion beside 300 other lines: its name stands right above the question, each time that it is put."""
    with terminal("reviews_many", ["run", "--json", "tidy up"], tmp_path) as screen:
        screen.wait_for(ASK)
        screen.send("what\r")
        screen.wait_for("Answer with one of the letters")
        screen.wait_for(ASK, times=2)  # what is typed before it would stand above it
        screen.send("k\r")
        assert decided(screen)[0] == "pending"
        asked = screen.shown.split(ASK)[:-1]
        assert len(asked) == 2
        for before in asked:
            lines = before.splitlines()[-4:]
            assert any("- 1 deleted  /home/me/project/thesis.tex" in line for line in lines), lines
            assert any("! 300 runs later by itself" in line for line in lines), lines


def test_a_dumb_terminal_gets_all_lines(tmp_path: Path) -> None:
    """The whole review is written without colours."""
    environ = {"TERM": "dumb"}
    with terminal("reviews_much", ["run", "--json", "tidy up"], tmp_path, environ) as screen:
        screen.wait_for(ASK)
        assert screen.shown.count("line 29") == 5
        assert "\x1b[" not in screen.raw
        screen.send("k\r")
        assert decided(screen)[0] == "pending"


def test_a_narrow_terminal(tmp_path: Path) -> None:
    """The review works on 60 columns."""
    with terminal("reviews_much", ["run", "--json", "tidy up"], tmp_path, columns=60) as screen:
        screen.wait_for("again: ")  # the question's end, wherever its line was broken before
        screen.send("a\r")
        assert decided(screen)[0] == "applied"


def test_what_was_typed_before_is_no_answer(tmp_path: Path) -> None:
    """Keys that were pressed before the review came do not answer it."""
    with terminal("reviews", ["run", "--json", "tidy up"], tmp_path, pause=0.3) as screen:
        screen.send("a\r")
        screen.wait_for(ASK)
        screen.send("k\r")
        assert decided(screen)[0] == "pending"
