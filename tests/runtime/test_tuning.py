"""Proposals from logs of real tasks: what is read, what is proposed, and that nothing changes unaccepted."""

from __future__ import annotations

import json
import shlex
import shutil
from pathlib import Path

import pytest
from tuned_tasks import TYPE, run_tasks

from artoo.cli.main import main
from artoo.contracts.solution import Directive, StoppedBy
from artoo.runtime.config.loader import load_config
from artoo.runtime.config.model import Config, Control
from artoo.runtime.tuning.records import EndedTask, read_logs, record_of
from artoo.tasklog.layout import task_directory, tasks_directory
from artoo.tasklog.reader import TaskLogReader


async def hopeless_logs(home: Path, count: int = 40) -> Config:
    """The log of a task that never finds its last criterion, as often as if it had been run again and again."""
    (result,) = await run_tasks(home, Control(delta=0.0), hopeless=True)
    assert result.stopped_by in (StoppedBy.COST, StoppedBy.REPLANS)
    for number in range(1, count):
        shutil.copytree(task_directory(home, result.task_id), tasks_directory(home) / f"copy-{number}")
    return Config().at_home(home)


async def test_a_log_is_read_as_rounds(tmp_path: Path) -> None:
    """Each decision with what was met and the calls so far; the type is the slug of the intent."""
    (result,) = await run_tasks(tmp_path, Control(delta=0.0))
    (record,) = read_logs(tmp_path, 10).records
    assert record.type == TYPE
    assert [step.taken.value for step in record.steps] == ["break_symmetry", "accept"]
    assert [step.met for step in record.steps] == [0.8, 1.0]
    assert record.steps[-1].calls == result.cost.llm_calls
    assert [step.by_law for step in record.steps] == [True, False]


async def test_a_log_that_has_no_end_is_left_out(tmp_path: Path) -> None:
    """And it is counted, with why; so is one that cannot be read."""
    (result,) = await run_tasks(tmp_path, Control())
    stream = list(TaskLogReader(task_directory(tmp_path, result.task_id)).envelopes())
    assert isinstance(record_of(stream), EndedTask)
    assert record_of(stream[:-3]) == "has not ended"
    bad = tasks_directory(tmp_path) / "bad"
    shutil.copytree(task_directory(tmp_path, result.task_id), bad)
    for part in bad.glob("*.jsonl"):
        part.write_bytes(part.read_bytes() + b"torn\n")
    assert dict(read_logs(tmp_path, 10).left_out) == {"cannot be read": 1}


async def test_what_is_proposed_is_accepted_by_a_command(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Forty tasks went on in vain: a higher δ saves their calls, known from the logs alone. Nothing changes until
    the command that is shown is run; then tasks of this type end by it.
    """
    await hopeless_logs(tmp_path)
    monkeypatch.setenv("ARTOO_HOME", str(tmp_path))
    file = tmp_path / "config.yaml"
    file.write_text("# mine\ncontrol:\n  delta: 0.0  # whole or not at all\n")
    before = file.read_text()
    assert main(["config", "tune"]) == 0
    shown = capsys.readouterr().out
    assert main(["tune", "--json"]) == 0
    (proposal,) = json.loads(capsys.readouterr().out)
    assert (proposal["type"], proposal["name"], proposal["before"], proposal["value"]) == (TYPE, "delta", 0.0, 0.2)
    assert proposal["met"] == [0.0, 0.0, 0.0] and proposal["calls"][0] < 0 < proposal["gain"][1]
    assert proposal["accept"] in shown and "delta 0.2 instead of 0" in shown
    assert file.read_text() == before
    assert main(shlex.split(proposal["accept"])[1:]) == 0
    control = load_config().control
    assert (control.delta, control.by_type[TYPE].delta) == (0.0, 0.2)
    (result,) = await run_tasks(tmp_path, control, hopeless=True)
    assert (result.directive, result.replans) == (Directive.SUCCESS, 0)
