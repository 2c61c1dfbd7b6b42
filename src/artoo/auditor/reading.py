"""Read the audit log while it is written: its last records, new ones, and reports of earlier windows."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path

from artoo.auditor.chain import Head, link_of
from artoo.auditor.drift import Drift
from artoo.auditor.files import lines_of
from artoo.auditor.layout import ANCHORS, audit_directory, chains_in
from artoo.auditor.stats import Stats
from artoo.auditor.trail import Trail, report_record
from artoo.auditor.window import Window
from artoo.contracts.audit import AuditReport

Record = dict[str, object]


@dataclass(slots=True)
class Follower:
    """The records of all chains of a home, from where it stands. Lines that are no sound links are left out."""

    home: Path
    _done: dict[Path, int] = field(default_factory=dict[Path, int])

    def last(self, count: int, kind: str | None = None) -> list[Record]:
        """Return the last records (of one type, if `kind` says which), oldest first; `new` continues after them."""
        kept: list[Record] = []
        for parts in chains_in(audit_directory(self.home)).values():
            here: deque[Record] = deque(maxlen=count)
            for path in parts:
                here.extend(record for record in self._new_in(path) if kind in (None, record.get("type")))
            kept = sorted((*kept, *here), key=_moment)[-count:] if count else []
        return kept

    def new(self) -> Iterator[Record]:
        """Return the records since the last call, each chain in its order."""
        for parts in chains_in(audit_directory(self.home)).values():
            for path in parts:
                yield from self._new_in(path)

    def _new_in(self, path: Path) -> Iterator[Record]:
        done = self._done.get(path, 0)
        if path.stat().st_size <= done:
            return
        with path.open("rb") as file:
            file.seek(done)
            for line in file:
                if not line.endswith(b"\n"):
                    return
                self._done[path] = self._done.get(path, 0) + len(line)
                link = link_of(line[:-1])
                if link is not None and link.sound:
                    yield link.fields()


def _moment(record: Record) -> str:
    return str(record.get("at", ""))


def report_now(home: Path, at: datetime) -> AuditReport | None:
    """Report what was stored since the last report, in a chain of its own; None when there is no log.

    A process that runs now stores what it sees every few seconds. Raises OSError.
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
    """Report what was stored since the last report, without changing anything: the window continues.

    None when nothing was stored. Raises OSError.
    """
    directory = audit_directory(home)
    return Stats(directory).so_far(at) if directory.is_dir() else None


@dataclass(frozen=True, slots=True)
class LastAnchor:
    """The last anchor of a chain: `event` as in `artoo.auditor.anchors`, `records` as of then."""

    chain: str
    event: str
    records: int
    at: datetime


def last_anchors(home: Path) -> tuple[LastAnchor, ...]:
    """Return every chain that the anchors know, the one that was anchored last first. Raises OSError."""
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
    """Return the last recorded reports, oldest first."""
    return [AuditReport.model_validate(each["report"]) for each in Follower(home).last(count, "report")]
