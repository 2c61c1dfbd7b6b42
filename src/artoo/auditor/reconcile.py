"""After a crash: what a dead process had said and its chain does not hold is read again from the task logs.

The trail is written half a second behind the stream; a task's log keeps up with it. So a task that was under way
may have said more than its chain knows: those messages are put on record as `reread`, and looked at by every rule.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path

from artoo.auditor.chain import Head, link_of
from artoo.auditor.files import lines_of
from artoo.auditor.layout import chains_in
from artoo.auditor.trail import finding_record, header_record, is_being_written
from artoo.auditor.watch import Watch
from artoo.contracts.audit import Finding
from artoo.contracts.envelope import Envelope
from artoo.contracts.errors import ArtooError

MOST_TASKS = 50
MOST_MESSAGES = 50_000

_MESSAGE = re.compile(rb'"type":"(?:message|reread)".*?"id":"([^"]+)","kind":"([^"]+)".*?"task":"([^"]*)"')


@dataclass(frozen=True, slots=True)
class Logs:
    """The task logs, as the runtime gives them to the Auditor.

    `messages` are those of one task; `written_since` the ids of tasks that do not run and whose log was written
    after a moment (seconds since the epoch). Both may raise OSError or ArtooError.
    """

    messages: Callable[[str], Iterable[Envelope]]
    written_since: Callable[[float], Iterable[str]]


@dataclass(slots=True)
class _Held:
    """What a chain holds: ids by task, tasks that have ended in it, its last sound record."""

    ids: defaultdict[str, set[str]] = field(default_factory=lambda: defaultdict[str, set[str]](set))
    ended: set[str] = field(default_factory=set[str])
    head: Head = field(default_factory=Head)
    closed: bool = False


@dataclass(frozen=True, slots=True)
class Reread:
    """What came of one dead chain: its head, and the records for the living one."""

    chain: str
    head: Head
    records: list[bytes]
    findings: list[Finding]


def dead(directory: Path, chains: Iterable[str]) -> Iterator[tuple[str, list[Path]]]:
    """Those of the chains that nobody writes any more, with their parts."""
    there = chains_in(directory)
    for chain in chains:
        parts = there.get(chain, [])
        if parts and not is_being_written(parts[-1]):
            yield chain, parts


def reread(directory: Path, chain: str, parts: list[Path], logs: Logs, before: datetime) -> Reread | None:
    """What the dead chain misses; None when it was closed in order. Raises OSError.

    `before`: what was said from then on is this process's own, and will come to its own chain.
    """
    held = _held(parts)
    if held.closed:
        return None
    later = [_held(other) for name, other in chains_in(directory).items() if name > chain]
    open_tasks = [task for task in held.ids if task and task not in held.ended]
    unknown = [
        task
        for task in logs.written_since(parts[0].stat().st_ctime)
        if task not in held.ids and not any(task in other.ids for other in later)
    ]
    result = Reread(chain, held.head, [], [_died(chain, before)])
    for task in [*open_tasks, *unknown][:MOST_TASKS]:
        known = held.ids.get(task, set()).union(*(other.ids.get(task, set()) for other in later))
        try:
            _missed([each for each in logs.messages(task) if each.at < before], known, result)
        except (OSError, ArtooError) as error:
            what = f"the log of a task that process had under way cannot be read: {error}"
            result.findings.append(
                Finding(rule="log_unreadable", nature="loss", what=what, task_id=task, at=before)
            )
    result.records.extend(map(finding_record, result.findings))
    return result


def _missed(messages: list[Envelope], known: set[str], result: Reread) -> None:
    watch = Watch()
    for envelope in messages[:MOST_MESSAGES]:
        found = watch.observe(envelope)
        if envelope.id not in known:
            result.records.append(header_record(envelope, reread=True))
            result.findings.extend(found)


def _died(chain: str, at: datetime) -> Finding:
    what = f"the process that wrote chain {chain} died: its chain has no closing record"
    return Finding(rule="process_died", nature="anomaly", what=what, at=at)


def _held(parts: Iterable[Path]) -> _Held:
    held = _Held()
    for path in parts:
        for line, whole in lines_of(path):
            link = link_of(line) if whole else None
            if link is None or not link.sound:
                continue
            held.head = Head(link.number, link.hash)
            held.closed = link.record.startswith(b'{"type":"closed"')
            match = _MESSAGE.search(link.record)
            if match is not None:
                task = match[3].decode()
                held.ids[task].add(match[1].decode())
                if match[2] == b"FinalResult":
                    held.ended.add(task)
    return held
