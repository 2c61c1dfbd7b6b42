"""The Auditor as a consumer of the stream: everything on record, statistics that survive, crashes that show."""

from __future__ import annotations

import asyncio
import subprocess
import sys
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from datetime import datetime, timedelta
from pathlib import Path

import pytest
from tapes import SCRIPTS, Tape, record
from trails import proved

from artoo.auditor import auditor as auditor_module
from artoo.auditor.auditor import Auditor
from artoo.auditor.chain import link_of
from artoo.auditor.layout import audit_directory, chains_in
from artoo.auditor.reading import earlier_reports, report_now
from artoo.bus.inprocess import InProcessBus
from artoo.bus.spool import SpoolingTap
from artoo.contracts.audit import AuditReport
from artoo.contracts.memory import MemoryRead
from artoo.contracts.roles import Role
from artoo.contracts.solution import Cost, FinalResult
from artoo.ports.clock import Clock
from artoo.runtime.app.system import SystemClock, UuidIds

NOTHING = MemoryRead(space="tool:glob", entity="env:local")
"""A record that nobody can object to."""

PROCESS = Path(__file__).with_name("audited_process.py")


@asynccontextmanager
async def auditing(
    home: Path, *, memory: int = 16_384, clock: Clock | None = None
) -> AsyncGenerator[tuple[Auditor, SpoolingTap]]:
    """An Auditor that runs beside the test."""
    with SpoolingTap(home / "spool", memory, name="audit") as spool:
        auditor = Auditor(home, spool, clock or SystemClock())
        async with asyncio.TaskGroup() as group:
            group.create_task(auditor.run())
            yield auditor, spool
            await auditor.flush()
            spool.finish()


def records(home: Path, kind: str) -> list[dict[str, object]]:
    """All records of one type, over all chains in order."""
    paths = [path for parts in chains_in(audit_directory(home)).values() for path in parts]
    links = [link_of(line) for path in paths for line in path.read_bytes().splitlines()]
    return [fields for link in links if link is not None and (fields := link.fields())["type"] == kind]


async def test_every_message_of_a_burst_is_on_record(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """20,000 messages at once, more than memory holds: each is in the trail, in order, and nothing waits."""
    monkeypatch.setattr(auditor_module, "LULL", auditor_module.LULL._replace(first=0.0))
    bus = InProcessBus(SystemClock(), UuidIds())
    port = bus.port(Role.PLANNER, "")
    said: list[str] = []
    async with auditing(tmp_path, memory=4_000) as (auditor, spool):
        detach = bus.attach(spool)
        for number in range(20_000):
            said.append(port.publish(NOTHING).id)
            if number % 1_024 == 0:
                await asyncio.sleep(0)
        detach()
        await auditor.flush()
        assert spool.lost == 0
    assert [record["id"] for record in records(tmp_path, "message")] == said
    assert proved(tmp_path).sound


async def test_what_is_lost_is_on_record_with_its_count(tmp_path: Path) -> None:
    """When memory and disk are full, the trail says how many messages it misses; the report does too."""
    bus = InProcessBus(SystemClock(), UuidIds())
    port = bus.port(Role.PLANNER, "")
    with SpoolingTap(tmp_path / "spool", 5, 0, name="audit") as spool:
        auditor = Auditor(tmp_path, spool, SystemClock())
        bus.attach(spool)
        for _ in range(12):
            port.publish(NOTHING)
        async with asyncio.TaskGroup() as group:
            group.create_task(auditor.run())
            report = await auditor.report()
            spool.finish()
    assert [record["count"] for record in records(tmp_path, "gap")] == [7]
    assert (report.messages_observed, report.messages_lost, report.findings) == (5, 7, {"loss": 1})


async def test_a_forged_message_is_on_record_and_in_the_report(tapes: dict[str, Tape], tmp_path: Path) -> None:
    """A finding stands in the trail beside the message that it is about, and in the report of its window."""
    forged = tapes["plain"].edit(FinalResult, cost=Cost())
    async with auditing(tmp_path) as (auditor, spool):
        for message in forged.messages:
            spool(message)
        report = await auditor.report()
    assert {record["rule"] for record in records(tmp_path, "finding")} == {"cost_understated"}
    assert len(report.boundary_violations) == report.findings["violation"] == len(records(tmp_path, "finding"))
    assert len(records(tmp_path, "report")) == 1


async def test_a_window_begins_anew_after_its_report(tapes: dict[str, Tape], tmp_path: Path) -> None:
    """What was reported is not reported again; retries, ends and the trend of the gap are in it."""
    async with auditing(tmp_path) as (auditor, spool):
        for message in (*tapes["corrected"].messages, *tapes["replanned"].messages):
            spool(message)
        first, second = await auditor.report(), await auditor.report()
    assert (first.tasks_observed, first.total_corrections, first.tasks_ended) == (2, 1, {"accept": 2})
    assert first.tool_health.logical_retries == 1
    assert [trend.trend for trend in first.gap_trends] == ["improving"]
    assert (second.tasks_observed, second.findings, second.window_start) == (0, {}, first.window_end)


async def test_the_window_survives_a_restart(tapes: dict[str, Tape], tmp_path: Path) -> None:
    """What one process saw and did not report, the next one reports with what it saw itself."""
    async with auditing(tmp_path) as (_, spool):
        for message in tapes["corrected"].messages:
            spool(message)
    async with auditing(tmp_path) as (auditor, spool):
        for message in tapes["judged"].messages:
            spool(message)
        report = await auditor.report()
    assert (report.tasks_observed, report.tasks_ended) == (2, {"accept": 2})
    assert report_now(tmp_path, report.window_end) is not None
    assert [each.tasks_observed for each in earlier_reports(tmp_path, 5)] == [2, 0]
    assert [len(earlier_reports(tmp_path, count)) for count in (0, 1, 2)] == [0, 1, 2]


class LateClock(SystemClock):
    """A clock that is ten minutes ahead."""

    def now(self) -> datetime:
        return super().now() + timedelta(minutes=10)


async def test_a_window_that_is_over_is_reported_by_itself(tapes: dict[str, Tape], tmp_path: Path) -> None:
    """Five minutes after the last report there is one, without anybody asking."""
    async with auditing(tmp_path) as (_, spool):
        for message in tapes["plain"].messages:
            spool(message)
    async with auditing(tmp_path, clock=LateClock()) as (_, spool):
        for message in tapes["judged"].messages:
            spool(message)
    (report,) = records(tmp_path, "report")
    found = AuditReport.model_validate(report["report"])
    assert (found.trigger, found.tasks_observed) == ("periodic", 2)


async def test_nothing_said_leaves_nothing(tmp_path: Path) -> None:
    """A process that says nothing makes no file."""
    async with auditing(tmp_path):
        pass
    assert not audit_directory(tmp_path).exists()


async def test_a_task_log_that_was_edited_or_cut_is_found(tmp_path: Path) -> None:
    """The trail holds how every task log stood: a byte that was changed, or a line that was cut, shows there."""
    await record(tmp_path, *SCRIPTS["plain"])
    home = tmp_path / "home"
    assert proved(home).sound
    (log,) = (home / "tasks").glob("*/log.jsonl")
    whole = log.read_bytes()
    log.write_bytes(whole.replace(b"wc -l", b"wc -c"))
    (problem,) = proved(home).problems
    assert (problem.file, problem.what) == (log, "changed")
    lines = whole.splitlines(keepends=True)
    log.write_bytes(b"".join(lines[:-1]))
    (problem,) = proved(home).problems
    assert (problem.file, problem.line, problem.what) == (log, len(lines), "cut")
    log.unlink()
    assert [problem.what for problem in proved(home).problems] == ["missing"]


def test_a_killed_process_leaves_a_chain_that_says_so(tmp_path: Path) -> None:
    """SIGKILL in the middle of a task: what was on record verifies, and the chain says that its process died."""
    home = tmp_path / "home"
    with subprocess.Popen([sys.executable, str(PROCESS), str(home)], stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == b"audited\n"
        process.kill()
    found = proved(home)
    assert found.sound
    assert [chain.ended for chain in found.chains] == ["died"]
