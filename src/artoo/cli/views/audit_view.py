"""The text and JSON of the Auditor's reports, verifications and replay proofs."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import asdict
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from artoo.auditor.verify import Verification
from artoo.cli.display.sanitize import one_line
from artoo.contracts.audit import AuditReport

if TYPE_CHECKING:  # not imported above, because a replay loads every role
    from artoo.runtime.replay.replay import Proof

JsonObject = dict[str, object]
_LINE = 200


def report_lines(report: AuditReport) -> list[str]:
    """Return the lines of a report, with one topic per line. Topics without findings are left out."""
    return list(_report(report))


def _report(report: AuditReport) -> Iterator[str]:
    span = f"{_time(report.window_start)} to {_time(report.window_end)} UTC"
    yield f"{report.trigger} report, {span}"
    ended = ", ".join(f"{name} {count}" for name, count in report.tasks_ended.items())
    yield f"tasks: {report.tasks_observed}" + (f" ({ended})" if ended else "")
    health = report.tool_health
    yield f"messages: {report.messages_observed}; tool calls: {health.calls}, failed: {health.failed_calls}"
    retries = f"{health.logical_retries} logical, {health.environmental_retries} environmental"
    yield f"corrections: {report.total_corrections} ({retries}); failed executions: {health.execution_failures}"
    if report.correction_trends:
        moved = ", ".join(f"{count} {trend}" for trend, count in report.correction_trends.items())
        yield f"corrected subtasks by how their gap moved: {moved}"
    if report.accountable:
        yield f"accountable for failures: {', '.join(f'{who} {n}' for who, n in report.accountable.items())}"
    for trend in report.gap_trends:
        moved = " → ".join(f"{distance:.2f}" for distance in trend.distances)
        yield f"gap of {trend.task_id}: {trend.trend} (D {moved})"
    yield from _list("boundary violations", report.boundary_violations, report.findings.get("violation", 0))
    yield from _list("anomalies", report.anomalies, report.findings.get("anomaly", 0))
    yield from _list("drift", report.drift_alerts, report.findings.get("drift", 0))
    yield from _list("losses", report.losses, report.findings.get("loss", 0))
    if report.messages_dropped:
        yield f"messages that slow subscribers missed: {report.messages_dropped}"
    if report.messages_lost:
        yield f"messages that the Auditor missed: {report.messages_lost}"
    if report.forgotten:
        yield f"more than the Auditor keeps: {report.forgotten} messages, tasks and findings"
    if not report.findings:
        yield "nothing was found wrong"


def _list(name: str, lines: Sequence[str], count: int) -> Iterator[str]:
    if not count:
        return
    yield f"{name}: {count}"
    yield from (f"  {one_line(line)[:_LINE]}" for line in lines)
    if count > len(lines):
        yield f"  and {count - len(lines)} more"


def verification_lines(found: Verification) -> list[str]:
    """Return lines with the chains that were checked, every problem, and the properties that cannot be proved."""
    records = sum(chain.records for chain in found.chains)
    messages = sum(chain.messages for chain in found.chains)
    lines = [
        f"{len(found.chains)} chains, {records} records, {messages} messages, {found.task_logs} task log files"
    ]
    for chain in found.chains:
        if chain.ended == "died":
            torn = ", in the middle of a line" if chain.torn else ""
            lines.append(f"chain {chain.chain}: its process died{torn}; whole up to record {chain.records}")
        elif chain.ended == "running":
            lines.append(f"chain {chain.chain}: is being written now")
        if chain.lost or chain.reason:
            lines.append(f"chain {chain.chain}: {chain.lost} records could not be written: {chain.reason}")
        if chain.missed:
            lines.append(f"chain {chain.chain}: {chain.missed} messages were lost before the Auditor saw them")
    for problem in found.problems:
        place = f"{problem.file}" + (f", line {problem.line}" if problem.line is not None else "")
        lines.append(f"{problem.what}: {place}: {problem.detail}")
    lines += [
        "not proved: that this home is not an older copy of itself, and that nothing with your rights rewrote it",
        f"to prove that later, keep this elsewhere: artoo audit verify --head {found.head.count}:{found.head.hash}",
    ]
    if not found.sound:
        lines.append("NOT WHOLE")
    elif found.unrecorded:
        lines.append(f"nothing that was recorded is missing or was changed; {found.unrecorded} were never recorded")
    else:
        lines.append("whole: nothing that was recorded here is missing or was changed")
    return lines


def verification_object(found: Verification) -> JsonObject:
    """Return a verification as JSON."""
    # The times in a chain are only needed to check task logs, so they are left out.
    moments = ("begun", "last")
    chains = [{name: said for name, said in asdict(chain).items() if name not in moments} for chain in found.chains]
    return {
        "sound": found.sound,
        "head": f"{found.head.count}:{found.head.hash}",
        "chains": chains,
        "task_log_files": found.task_logs,
        "problems": found.problems,
    }


def proof_lines(proof: Proof) -> list[str]:
    """Return lines that say whether a replay of a task came to the same decisions, with violations and the first
    difference."""
    replayed = proof.replayed
    task, difference = replayed.recording.task_id, replayed.difference
    lines = [one_line(f"task {task}: {each.rule}: {each.what}")[:_LINE] for each in proof.violations]
    if difference is not None:
        lines.append(one_line(f"task {task}: not the same decisions: {difference}"))
    elif not lines:
        counted = f"{len(replayed.decisions)} decisions, {len(replayed.recording.stream)} messages"
        lines.append(f"task {task}: every decision was reached again ({counted})")
    return lines


def proof_object(proof: Proof) -> JsonObject:
    """Return the proof as JSON."""
    difference = proof.replayed.difference
    return {
        "task": proof.replayed.recording.task_id,
        "holds": proof.holds,
        "decisions": len(proof.replayed.decisions),
        "difference": None if difference is None else str(difference),
        "violations": [{"rule": each.rule, "what": each.what} for each in proof.violations],
    }


def _time(moment: datetime) -> str:
    return moment.astimezone(UTC).strftime("%Y-%m-%d %H:%M:%S")
