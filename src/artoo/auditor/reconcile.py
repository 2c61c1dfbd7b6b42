"""After a crash: put on record that a process died, and how the task logs that it may have written stand now.

The trail is written a quarter of a second behind the stream; a task's log keeps up with it. So what a dead process
said last is in its task logs alone, until the next process that audits anchors these.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime
from itertools import islice
from pathlib import Path

from artoo.auditor.chain import Head, Link, link_of
from artoo.auditor.files import last_line, open_for_reading
from artoo.auditor.layout import chains_in
from artoo.auditor.logged import digest_of
from artoo.auditor.trail import is_being_written, log_record
from artoo.contracts.audit import Finding
from artoo.contracts.envelope import Envelope

MOST_LOGS = 200


@dataclass(frozen=True, slots=True)
class Logs:
    """The task logs, as the runtime gives them to the Auditor.

    `messages` returns those of one task; `written_since` the files, with their tasks, of logs that were written
    after a moment (seconds since the epoch) and whose task does not run. Both may raise OSError or ArtooError.
    """

    messages: Callable[[str], Iterable[Envelope]]
    written_since: Callable[[float], Iterable[tuple[str, Path]]]


def dead(directory: Path, chains: Iterable[str]) -> Iterator[tuple[str, list[Path]]]:
    """Yield those of the chains that no process writes any more, with their parts."""
    there = chains_in(directory)
    for chain in chains:
        parts = there.get(chain, [])
        if parts and not is_being_written(parts[-1]):
            yield chain, parts


def head_of(parts: list[Path]) -> tuple[Head, bool]:
    """Where a chain ends, and whether it was closed in order. Raises OSError."""
    with open_for_reading(parts[-1]) as (descriptor, size):
        line = last_line(descriptor, size)
    link: Link | None = link_of(line) if line is not None else None
    if link is None:
        return Head(), False
    return Head(link.number, link.hash), link.record.startswith(b'{"type":"closed"')


def died(chain: str, at: datetime) -> Finding:
    """The finding that the process of a chain died."""
    what = f"the process that wrote chain {chain} died: its chain has no closing record"
    return Finding(rule="process_died", nature="anomaly", what=what, at=at)


def left_behind(parts: list[Path], logs: Logs, at: datetime) -> Iterator[bytes]:
    """Yield a record for each task log that can be read and was written since the dead chain began."""
    for task, path in islice(logs.written_since(parts[0].stat().st_ctime), MOST_LOGS):
        with suppress(OSError):  # `verify` reports one that a chain knows
            yield log_record(task, path.name, [digest_of(path)], at)
