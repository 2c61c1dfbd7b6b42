"""`artoo run`: what it passes on, what it prints, how it ends."""

from __future__ import annotations

import io
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from cli_standin import StandIn
from cli_terminal import PROGRAM

from artoo.cli.display import run_task as running
from artoo.cli.display.task_state import TaskView
from artoo.cli.main import main
from artoo.cli.results.result_view import ResultText
from artoo.contracts.codec import decode
from artoo.contracts.settling import ApplyMode
from artoo.contracts.solution import Directive, FinalResult, StoppedBy, UnmetCriterion
from artoo.runtime.app.run_options import Budgets, RunOptions


def play(monkeypatch: pytest.MonkeyPatch, story: str) -> StandIn:
    """Makes `artoo` run with this story."""
    runtime = StandIn(story)
    monkeypatch.setattr(running, "open_runtime", runtime)
    return runtime


def test_options_reach_the_runtime(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Every option of the command line is in the RunOptions of the task."""
    runtime = play(monkeypatch, "accepted")
    arguments = [
        "run",
        "--workspace",
        str(tmp_path / "out"),
        "--project",
        str(tmp_path),
        "--strict",
        "--strict-roles",
    ]
    arguments += ["--allow", "overwrite out/*.csv", "--allow", "delete tmp/*", "--no-memory"]
    picture = tmp_path / "shot.png"
    picture.write_bytes(b"\x89PNG")
    arguments += ["--image", str(picture)]
    arguments += ["--apply", "edits", "--check", "pytest -q", "--check", "ruff check", "--verify"]
    arguments += ["--budget", "seconds=2.5,calls=7", "--budget", "tokens=5000", "count", "files"]
    assert main(arguments) == 0
    assert runtime.requests == [
        (
            "count files",
            (),
            RunOptions(
                workspace=tmp_path / "out",
                project=tmp_path,
                apply=ApplyMode.EDITS,
                allow=("overwrite out/*.csv", "delete tmp/*"),
                checks=("pytest -q", "ruff check"),
                images=(picture,),
                verify=True,
                budgets=Budgets(seconds=2.5, calls=7, tokens=5000),
                strict=True,
                strict_roles=True,
                memory=False,
            ),
        )
    ]
    assert runtime.closed


def test_verify_takes_no_value(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    """A command after it would become a part of the request, without a word."""
    runtime = play(monkeypatch, "accepted")
    assert main(["run", "Fix the test", "--verify", "pytest -q"]) == 2
    assert "--check" in capsys.readouterr().err and not runtime.requests
    assert main(["run", "Fix", "the", "test", "--verify"]) == 0


@pytest.mark.parametrize(
    ("story", "code"),
    [("accepted", 0), ("gaps", 0), ("abandoned", 1), ("no_model", 3), ("unreachable", 3), ("endings_missing", 1)],
)
def test_exit_codes(story: str, code: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """0 when done, with gaps or without; 1 when abandoned; 3 when no model answers."""
    play(monkeypatch, story)
    assert main(["run", "do it"]) == code


def test_result_for_a_person_names_what_is_missing(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Standard output holds the answer, every unmet criterion with reason and role, next moves, and the cost."""
    play(monkeypatch, "gaps")
    main(["run", "write the table"])
    shown = capsys.readouterr().out
    assert shown.startswith("The table is written.\n")
    assert "\nJudged, not checked. Some criteria are not met.\n" in shown
    assert "✗ rows are sorted: row 3 is before row 2 (accountable: executor)" in shown
    assert "→ sort the rows" in shown
    assert shown.rstrip().splitlines()[-1].startswith("task 0198f000-0000 · 1 round · ")


def test_an_abandoned_task_tells_each_thing_once() -> None:
    """Why it stopped, every unmet criterion with its reason, and what could come next: each in one place."""
    unmet = (
        UnmetCriterion(criterion="sorted", reason="row 3"),
        UnmetCriterion(criterion="a header", reason="none"),
    )
    result = FinalResult(
        task_id="t",
        summary="",
        directive=Directive.ABANDON,
        unmet=unmet,
        next_moves=("sort it", "add a header"),
        stopped_by=StoppedBy.TIME,
        detail="300 s",
    )
    shown = ResultText(result, TaskView(), "t").lines()
    assert shown.startswith("The task could not be completed: the time budget is spent (300 s).\n\nNot met\n")
    assert shown.count("row 3") == shown.count("sort it") == 1
    assert "✗ a header: none (accountable: planner)" in shown
    assert "→ add a header" in shown


def test_progress_and_result_are_apart(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    """Progress goes to standard error, the result to standard output; a Chinese task is shown in Chinese."""
    play(monkeypatch, "chinese")
    main(["run", "统计文件并写报告"])
    captured = capsys.readouterr()
    assert "第 1 轮: 2 个子任务" in captured.err
    assert "失败：没有写入任何文件" in captured.err
    assert "→ 方法不对：换一种方法" in captured.err
    assert "Ω" not in captured.err
    assert captured.out.startswith("报告已写好")
    assert "新建： /workspace/报告.md" in captured.out
    assert "2 轮 · 5 次模型调用" in captured.out
    assert "第 1 轮" not in captured.out


def test_json_is_one_object(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    """`--json` prints exactly one JSON object, on one line, with all that a program needs."""
    play(monkeypatch, "gaps")
    assert main(["run", "--json", "write the table"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert len(lines) == 1
    result = json.loads(lines[0])
    assert set(result) == {
        "status",
        "directive",
        "answer",
        "output",
        "unmet",
        "stopped_by",
        "withheld",
        "changes",
        "assurance",
        "decided",
        "open",
        "amended",
        "facts",
        "pending",
        "went_out",
        "loss",
        "cost",
        "task_id",
        "replans",
        "resumable",
    }
    assert (result["status"], result["directive"], result["stopped_by"]) == ("success", "success", None)
    assert (result["assurance"], result["pending"]) == ("judged", None)
    assert result["unmet"][0]["criterion"] == "rows are sorted"
    assert result["answer"].startswith("The table is written.")
    assert "a,b" in result["answer"]


def test_events_are_the_whole_stream(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    """`--events` prints every message as a line that can be read back, then the result."""
    play(monkeypatch, "accepted")
    assert main(["run", "--events", "count"]) == 0
    *messages, last = capsys.readouterr().out.splitlines()
    envelopes = [decode(line) for line in messages]
    assert envelopes[0].kind == "UserRequest"
    assert isinstance(envelopes[-1].payload, FinalResult)
    assert json.loads(last)["directive"] == "accept"


def test_the_request_may_come_from_standard_input(monkeypatch: pytest.MonkeyPatch) -> None:
    """`-` reads the request, however many lines it has."""
    runtime = play(monkeypatch, "accepted")
    monkeypatch.setattr(
        sys, "stdin", io.TextIOWrapper(io.BytesIO("第一行\nsecond line\n".encode()), encoding="utf-8")
    )
    assert main(["run", "-"]) == 0
    assert runtime.requests[0][0] == "第一行\nsecond line"


@pytest.mark.parametrize("given", [b"", b"  \n", b"\xff\xfe", b"x" * 300_000])
def test_unusable_standard_input_is_a_usage_error(given: bytes, monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing, bytes that are no text, and a request without end are refused."""
    runtime = play(monkeypatch, "accepted")
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(given), encoding="utf-8"))
    assert main(["run", "-"]) == 2
    assert runtime.requests == []


def test_a_permission_that_names_nothing_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    """`--allow everything` is not a permission."""
    runtime = play(monkeypatch, "accepted")
    assert main(["run", "--allow", "everything", "count"]) == 2
    assert runtime.requests == []


@pytest.mark.parametrize("budget", ["seconds", "minutes=3", "calls=0", "calls=1.5", "tokens=many", "seconds=inf"])
def test_a_budget_that_means_nothing_is_refused(budget: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """A wrong budget ends with 2 before anything starts."""
    runtime = play(monkeypatch, "accepted")
    assert main(["run", "--budget", budget, "count"]) == 2
    assert runtime.requests == []


def test_a_reader_that_goes_away_ends_the_run_quietly(home: Path) -> None:
    """When nobody reads standard output any more, artoo stops without a traceback."""
    reader, writer = os.pipe()
    os.close(reader)
    ended = subprocess.run(
        [sys.executable, str(PROGRAM), "accepted", "run", "--events", "count"],
        stdin=subprocess.DEVNULL,
        stdout=writer,
        stderr=subprocess.PIPE,
        env={**os.environ, "ARTOO_HOME": str(home)},
        text=True,
        check=False,
    )
    os.close(writer)
    assert ended.returncode == 130
    assert "Traceback" not in ended.stderr
    assert "BrokenPipe" not in ended.stderr


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="only Linux has a file that is always full")
def test_a_full_disk_under_the_progress_is_not_the_tasks_end(home: Path) -> None:
    """How far it is cannot be told, but it goes on, and its result and its code are what they are."""
    with Path("/dev/full").open("wb") as full:
        ended = subprocess.run(
            [sys.executable, str(PROGRAM), "accepted", "run", "count"],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=full,
            env={**os.environ, "ARTOO_HOME": str(home), "PYTHONUNBUFFERED": ""},
            text=True,
            check=False,
        )
    assert ended.returncode == 0
    assert "1 round" in ended.stdout


def test_output_that_is_not_utf_8_still_shows_the_result(home: Path) -> None:
    """An ASCII terminal gets `?` instead of an encoding error."""
    ended = subprocess.run(
        [sys.executable, str(PROGRAM), "chinese", "run", "-v", "count"],
        stdin=subprocess.DEVNULL,
        capture_output=True,
        env={**os.environ, "ARTOO_HOME": str(home), "PYTHONIOENCODING": "ascii"},
        text=True,
        check=False,
    )
    assert ended.returncode == 0
    assert "? 0.12" in ended.stderr
