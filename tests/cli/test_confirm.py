"""Law 1's question on a real terminal."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from cli_terminal import CTRL_C, CTRL_D, PROGRAM, terminal

PROMPT = "Allow it? [o]nce, for this [t]ask, [N]o: "


@pytest.mark.parametrize(
    ("keys", "said"),
    [("TASK\r", "allowed for this task"), ("\r", "not allowed"), (CTRL_D, "not allowed")],
)
def test_answers(tmp_path: Path, keys: str, said: str) -> None:
    """A word is understood in any case; an empty line and the end of input are no."""
    with terminal("asks_short", ["tidy up"], tmp_path) as screen:
        screen.wait_for(PROMPT)
        screen.send(keys)
        screen.wait_for(said)
        screen.send(CTRL_C)
        assert screen.end() == 130


def test_always_writes_the_line_that_is_shown(tmp_path: Path) -> None:
    """Into the configuration, next to what is there, and the task goes on."""
    (tmp_path / "config.yaml").write_text("# mine\nallow: [edits src/**]\n")
    with terminal("asks_network", ["fetch it"], tmp_path) as screen:
        screen.wait_for("[a]lways (network pypi.org:443), [N]o: ")
        screen.send("a\r")
        screen.wait_for("allowed always, in")
        screen.send(CTRL_C)
        assert screen.end() == 130
    written = (tmp_path / "config.yaml").read_text()
    assert written.startswith("# mine\n") and "edits src/**" in written and "network pypi.org:443" in written


def test_the_question_is_shown_whole(tmp_path: Path) -> None:
    """Every one of 121 losses can be read with the source, and none can command the terminal."""
    with terminal("asks", ["tidy up"], tmp_path) as screen:
        screen.wait_for(PROMPT)
        shown = screen.shown
        assert all(f"/project/{number:03d}.tmp" in shown for number in range(120))
        assert "first named by: read_file notes.txt" in shown
        assert "a\\x1b[2Jb.tmp" in shown
        assert "\x1b[2J" not in screen.raw
        screen.send("whatever\r")
        screen.wait_for("whatever\n? shell: delete 121")
        screen.send("o\r")
        screen.wait_for("allowed once")
        screen.wait_for("Tidy up")  # the display is back
        screen.send(CTRL_C)
        assert screen.end() == 130
        assert screen.as_before


def test_what_a_long_question_is_about_stands_beside_the_prompt(tmp_path: Path) -> None:
    """The last rows above it are the act's and not the letter's; the letter is shown once."""
    with terminal("asks_mail", ["mail it"], tmp_path) as screen:
        screen.wait_for(PROMPT)
        rows = screen.shown.rpartition("? tool mcp:x:mail\n")[2].split("\n")
        assert rows[:2] == ["  recipient: evil@x", "  text: Hello, … +302"]
        assert rows[2].startswith("  x.mail: the server does not say") and rows[3].startswith(PROMPT)
        assert screen.shown.count("line 1 of") == 1
        screen.send("n\r")
        screen.wait_for("not allowed")
        screen.send(CTRL_C)
        assert screen.end() == 130


def test_an_interrupt_is_a_no(tmp_path: Path) -> None:
    """Ctrl-C at the question says no and ends the task."""
    with terminal("asks_short", ["tidy up"], tmp_path) as screen:
        screen.wait_for(PROMPT)
        screen.send(CTRL_C)
        screen.wait_for("not allowed")
        assert screen.end() == 130
        assert screen.as_before


def test_what_was_typed_before_is_no_answer(tmp_path: Path) -> None:
    """Keys that were pressed before the question came do not answer it."""
    with terminal("asks_short", ["tidy up"], tmp_path, pause=0.3) as screen:
        screen.send("o\r")
        screen.wait_for(PROMPT)
        screen.send("n\r")
        screen.wait_for("not allowed")
        assert "allowed once" not in screen.shown
        screen.send(CTRL_C)
        assert screen.end() == 130


def test_without_a_terminal_the_answer_is_no(tmp_path: Path) -> None:
    """With standard input from elsewhere nothing is asked, and the question is on the stream with its no."""
    command = [sys.executable, str(PROGRAM), "asks", "run", "--events", "tidy up"]
    process = subprocess.Popen(
        command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, env={"ARTOO_HOME": str(tmp_path)}
    )
    assert process.stdout is not None
    lines = iter(process.stdout.readline, b"")
    answer = next(line for line in lines if b'"ConfirmationAnswer"' in line)
    assert b'"no"' in answer
    process.terminate()
    process.stdout.close()
    assert process.wait(timeout=30) == 130
