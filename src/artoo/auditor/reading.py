"""Produce the report that `artoo audit` shows, and read earlier reports and the last anchor of each chain.

The audit log may still be written at the same time.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from heapq import nlargest
from pathlib import Path

from artoo.auditor.chain import Head, link_of
from artoo.auditor.drift import Drift
from artoo.auditor.files import lines_of
from artoo.auditor.layout import ANCHORS, audit_directory, chains_in
from artoo.auditor.stats import Stats
from artoo.auditor.trail import Trail, report_record
from artoo.auditor.window import Window
from artoo.contracts.audit import AuditReport


def report_now(home: Path, at: datetime) -> AuditReport | None:
    """Return a report on everything that was stored since the last report, and record the report in a new chain.
    Return None if there is no log.

    A running process stores its observations every few seconds. Raises OSError.
    """
    directory = audit_directory(home)
    if not directory.is_dir():
        return None
    trail = Trail(directory)
    stats = Stats(directory)
    report = stats.store(Window(at), Drift(), Head(), at, report="on-demand")
    if report is not None:
        trail.write([report_record(report)], at)
        trail.close(at)
    return report


def report_so_far(home: Path, at: datetime) -> AuditReport | None:
    """Return a report on everything that was stored since the last report. Nothing is changed, so the window
    continues.

    Returns None if nothing was stored. Raises OSError.
    """
    directory = audit_directory(home)
    return Stats(directory).so_far(at) if directory.is_dir() else None


@dataclass(frozen=True, slots=True)
class LastAnchor:
    """The last anchor of a chain. `event` has the same meaning as in `artoo.auditor.anchors`. `records` is the
    number of records at that time."""

    chain: str
    event: str
    records: int
    at: datetime


def last_anchors(home: Path) -> tuple[LastAnchor, ...]:
    """Return the last anchor of each chain that has one, most recent first. Raises OSError."""
    path, found = audit_directory(home) / ANCHORS, dict[str, LastAnchor]()
    for line, _ in lines_of(path) if path.is_file() else ():
        link = link_of(line)
        if link is not None and link.sound:
            fields = link.fields()
            chain, at = str(fields["chain"]), datetime.fromisoformat(str(fields["at"]))
            found.pop(chain, None)
            found[chain] = LastAnchor(chain, str(fields["event"]), int(str(fields["count"])), at)
    return tuple(reversed(found.values()))


def earlier_reports(home: Path, count: int) -> list[AuditReport]:
    """Return the last `count` recorded reports, oldest first."""
    paths = (path for parts in chains_in(audit_directory(home)).values() for path in parts)
    links = (link_of(line) for path in paths for line, _ in lines_of(path))
    records = (link.fields() for link in links if link is not None and link.sound)
    reports = (AuditReport.model_validate(each["report"]) for each in records if each.get("type") == "report")
    newest = nlargest(count, enumerate(reports), key=lambda one: (one[1].window_end, one[0]))
    return [report for _, report in reversed(newest)]
