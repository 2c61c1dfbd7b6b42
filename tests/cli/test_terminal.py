"""The command line on a real terminal of 80 columns."""

from __future__ import annotations

from pathlib import Path

import pytest
from cli_terminal import CTRL_C, CTRL_D, HIDE_CURSOR, SHOW_CURSOR, Terminal, terminal


def left_clean(screen: Terminal) -> bool:
    """The cursor is shown, and echo and line editing are on."""
    return screen.as_before and screen.raw.rfind(SHOW_CURSOR) >= screen.raw.rfind(HIDE_CURSOR)


def test_live_progress_is_redrawn_in_place(tmp_path: Path) -> None:
    """A terminal sees subtasks and what comes next while the task runs, then the result."""
    with terminal("chinese", ["统计文件并写报告"], tmp_path, pause=0.08) as screen:
        screen.wait_for("第 1 轮 · 2 个子任务")
        screen.wait_for("shell: find src -type f")
        screen.wait_for("→ 方法不对：换一种方法")
        screen.wait_for("报告已写好，共有 23 个文件。")
        assert screen.end() == 0
        assert left_clean(screen)
        assert "\x1b[1A" in screen.raw  # it went back up to redraw


def test_no_colour_means_no_escape_sequences(tmp_path: Path) -> None:
    """With NO_COLOR nothing but text reaches the terminal."""
    with terminal("accepted", ["how many files?"], tmp_path, {"NO_COLOR": "1"}) as screen:
        assert screen.end() == 0
        assert "\x1b" not in screen.raw
        assert "There are 23 Python files." in screen.shown
        assert "artoo: round 1: 1 subtask\n" in screen.shown


def test_one_interrupt_ends_honestly(tmp_path: Path) -> None:
    """Ctrl-C once asks the task to stop, shows what was reached, and exits with 130."""
    with terminal("endless", ["wait for me please"], tmp_path) as screen:
        screen.wait_for("choosing a step")
        screen.send(CTRL_C)
        screen.wait_for("The task could not be completed")
        assert screen.end() == 130
        assert left_clean(screen)


def test_an_interrupt_asks_for_a_message_and_the_task_goes_on(tmp_path: Path) -> None:
    """Ctrl-C interrupts the turn of a task that can be steered; the line that is typed then reaches it."""
    with terminal("steered", ["wait for me please"], tmp_path) as screen:
        screen.wait_for("I am thinking")
        screen.wait_for("look around")
        screen.send(CTRL_C)
        screen.wait_for("What should be different?")
        screen.send("only the tests\r")
        screen.wait_for("heard: (held), only the tests")
        assert screen.end() == 0
        assert left_clean(screen)


def test_a_second_interrupt_ends_a_held_task(tmp_path: Path) -> None:
    """Ctrl-C at the question for a message ends the task."""
    with terminal("steered", ["wait for me please"], tmp_path) as screen:
        screen.wait_for("I am thinking")
        screen.send(CTRL_C)
        screen.wait_for("What should be different?")
        screen.send(CTRL_C)
        screen.wait_for("heard: (held)")
        assert screen.end() == 0


def test_lines_typed_while_a_task_runs_steer_it(tmp_path: Path) -> None:
    """The input line of a conversation stays open; the model's words appear above it as they come."""
    with terminal("steered", [], tmp_path) as screen:
        screen.wait_for("artoo>")
        screen.send("wait for me please\r")
        screen.wait_for("I am thinking")
        screen.wait_for("type to steer")
        screen.send("only the tests\r")
        screen.wait_for("heard: only the tests")
        screen.send("/quit\r")
        assert screen.end() == 0
        assert left_clean(screen)


@pytest.mark.parametrize("story", ["deaf", "stuck"])
def test_two_interrupts_exit_at_once(tmp_path: Path, story: str) -> None:
    """A task that does not stop when asked, or whose clean-up hangs, is left; the terminal is as before."""
    with terminal(story, ["wait for me please"], tmp_path) as screen:
        screen.wait_for("choosing a step")
        screen.send(CTRL_C)
        screen.wait_for("Ctrl-C again exits at once")
        screen.send(CTRL_C)
        assert screen.end() == 130
        assert left_clean(screen)
        assert "Traceback" not in screen.shown


def test_hostile_output_cannot_command_the_terminal(tmp_path: Path) -> None:
    """An escape sequence in a tool's output is written out, not sent."""
    with terminal("gaps", ["write the table"], tmp_path) as screen:
        assert screen.end() == 0
        assert "\x1b]0;gotcha" not in screen.raw
        assert "\\x1b]0;gotcha" in screen.shown


def test_conversation(tmp_path: Path) -> None:
    """A conversation answers requests, knows its slash commands, refuses unknown ones, and ends at Ctrl-D."""
    with terminal("accepted", [], tmp_path) as screen:
        screen.wait_for("artoo>")
        screen.send("/help\r")
        screen.wait_for("/audit")
        screen.send("/nope\r")
        screen.wait_for("There is no command /nope")
        screen.send("how many files?\r")
        screen.wait_for("There are 23 Python files.")
        screen.wait_for_prompt()
        screen.send("half a line" + CTRL_C)
        screen.send(CTRL_D)
        assert screen.end() == 0
        assert left_clean(screen)
    assert (tmp_path / "history").stat().st_mode & 0o077 == 0


@pytest.mark.parametrize(
    ("declared", "said"), [("true", "image: shot.png"), ("false", "is not shown to the model")]
)
def test_a_pasted_image_is_told(tmp_path: Path, declared: str, said: str) -> None:
    """A line says that it is shown, or that no model takes images and which setting says so."""
    (tmp_path / "shot.png").write_bytes(b"\x89PNG\r\n\x1a\n")
    endpoint = {"OPENAI_BASE_URL": "http://127.0.0.1:9/v1", "OPENAI_MODEL": "eyes"}
    with terminal("accepted", [], tmp_path, {**endpoint, "ARTOO_MODELS__BRAIN__IMAGES": declared}) as screen:
        screen.wait_for("artoo>")
        screen.send(f"what is this? {tmp_path}/shot.png\r")
        screen.wait_for(said)
        screen.wait_for("There are 23 Python files.")
        screen.send("/quit\r")
        assert screen.end() == 0


def test_interrupt_in_a_conversation_stops_the_task_only(tmp_path: Path) -> None:
    """Ctrl-C during a task of a conversation ends that task; the conversation goes on."""
    with terminal("endless", [], tmp_path, {"LANG": "zh_CN.UTF-8"}) as screen:
        screen.wait_for("/help 查看命令")
        screen.wait_for("artoo>")
        screen.send("wait for me please\r")
        screen.wait_for("choosing a step")
        screen.send(CTRL_C)
        screen.wait_for("The task could not be completed")
        screen.send("/quit\r")
        assert screen.end() == 0
        assert left_clean(screen)
