"""Proposals from logs of real tasks: what is read, what is proposed, and that nothing changes unaccepted."""

from __future__ import annotations

import json
import shutil
import stat
from datetime import UTC, datetime
from pathlib import Path

import pytest
from tuned_tasks import TYPE, run_tasks

from artoo.cli.main import main
from artoo.contracts.solution import Directive, StoppedBy
from artoo.runtime.config.loader import load_config
from artoo.runtime.config.model import Config, Control
from artoo.runtime.tuning.keeping import Proposal, Tuning, accept, revoke
from artoo.runtime.tuning.records import Record, read_logs, record_of
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
    assert isinstance(record_of(stream), Record)
    assert record_of(stream[:-3]) == "has not ended"
    bad = tasks_directory(tmp_path) / "bad"
    shutil.copytree(task_directory(tmp_path, result.task_id), bad)
    for part in bad.glob("*.jsonl"):
        part.write_bytes(part.read_bytes() + b"torn\n")
    assert dict(read_logs(tmp_path, 10).left_out) == {"cannot be read": 1}


async def test_what_is_proposed_is_accepted_and_revoked(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Forty tasks went on in vain: a higher δ saves their calls, known from the logs alone. Nothing changes until
    it is accepted; then tasks of this type end by it; and it can be taken back.
    """
    await hopeless_logs(tmp_path)
    monkeypatch.setenv("ARTOO_HOME", str(tmp_path))
    file = tmp_path / "config.yaml"
    file.write_text("# mine\ncontrol:\n  delta: 0.0  # whole or not at all\n")
    before = file.read_text()
    assert main(["tune", "--json"]) == 0
    (proposal,) = json.loads(capsys.readouterr().out)
    assert (proposal["type"], proposal["name"], proposal["before"], proposal["value"]) == (TYPE, "delta", 0.0, 0.2)
    assert proposal["met"] == [0.0, 0.0, 0.0] and proposal["calls"][0] < 0 < proposal["gain"][1]
    assert file.read_text() == before
    number = str(proposal["number"])
    assert main(["tune", "accept", number]) == 0
    control = load_config().control
    assert (control.delta, control.by_type[TYPE].delta) == (0.0, 0.2)
    (result,) = await run_tasks(tmp_path, control, hopeless=True)
    assert (result.directive, result.replans) == (Directive.SUCCESS, 0)
    assert main(["tune", "accept", number]) == 2
    assert main(["tune", "list"]) == 0
    assert f"{number}: accepted" in capsys.readouterr().out
    assert main(["tune", "revoke", number]) == 0
    assert file.read_text() == before


async def test_a_proposal_for_what_is_not_so_any_more_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """It was judged against other numbers; so was what is to be taken back."""
    await hopeless_logs(tmp_path)
    monkeypatch.setenv("ARTOO_HOME", str(tmp_path))
    file = tmp_path / "config.yaml"
    file.write_text("control:\n  delta: 0.0\n")
    assert main(["tune"]) == 0
    assert "delta 0.2 instead of 0" in capsys.readouterr().out
    file.write_text("control:\n  delta: 0.1\n")
    assert main(["tune", "accept", "1"]) == 2
    assert "run `artoo tune` again" in capsys.readouterr().err
    file.write_text("control:\n  delta: 0.0\n")
    assert main(["tune", "accept", "1"]) == 0
    file.write_text(f"control:\n  by_type:\n    {TYPE}:\n      delta: 0.4\n")
    assert main(["tune", "revoke", "1"]) == 2
    assert "was changed since" in capsys.readouterr().err


def proposed(home: Path, type_: str, name: str, before: float, value: float) -> None:
    """As `artoo tune` would have left it."""
    nothing = (0.0, 0.0, 0.0)
    at = datetime(2026, 1, 1, tzinfo=UTC)
    proposal = Proposal(
        number=1, type=type_, name=name, before=before, value=value, tasks=40, different=9, known=9,
        met=nothing, calls=nothing, gain=nothing, worth=100, at=at,
    )  # fmt: skip
    (home / "tuning.json").write_text(Tuning(last=1, proposals=(proposal,)).model_dump_json())


def test_the_configuration_stays_its_owners(tmp_path: Path) -> None:
    """Who may read it, and a link that leads to it, are what they were after an acceptance and its end."""
    real, linked = tmp_path / "dotfiles" / "artoo.yaml", tmp_path / "config.yaml"
    real.parent.mkdir()
    real.write_text("control:\n  kill_after: 2\n")
    real.chmod(0o600)
    linked.symlink_to(real)
    proposed(tmp_path, "", "kill_after", 2, 3)
    accept(tmp_path, 1, datetime(2026, 1, 2, tzinfo=UTC))
    assert linked.is_symlink() and real.read_text() == "control:\n  kill_after: 3\n"
    assert stat.S_IMODE(real.stat().st_mode) == 0o600
    revoke(tmp_path, 1)
    assert real.read_text() == "control:\n  kill_after: 2\n"
