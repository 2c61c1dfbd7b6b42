"""Verify the whole audit log and task logs, and limit the reported problems (`artoo audit verify`).

In the chains, it checks the hash and the number of each line, its link to the previous line, and the heads in the
anchors. In the anchors, it checks the same, and the heads that later chains have recorded. In the task logs, it
checks the sizes and hashes that the chains have recorded. A chain must contain every task that has ended.

This does not detect an older copy of the whole home, or files that were all rewritten so that they fit together. To
detect these, the user must compare the head of the anchors with one that was saved elsewhere.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Literal, cast

import orjson

from artoo.auditor.chain import NOTHING, Head, Link
from artoo.auditor.files import last_line, open_for_reading
from artoo.auditor.layout import ANCHORS, STATS, chains_in
from artoo.auditor.logged import Logged
from artoo.auditor.trail import is_being_written
from artoo.auditor.walk import Placed, Read, Walk, What

MOST_PROBLEMS = 1_000
LAG = timedelta(seconds=60)
"""Maximum time by which a chain may lag behind a task log when its process dies. On an idle machine it is a quarter
of a second."""

_BEGINNING, _END = datetime.min.replace(tzinfo=UTC), datetime.max.replace(tzinfo=UTC)


@dataclass(frozen=True, slots=True)
class LogProblem:
    """A difference that was found, with its file and line (counted from 1; None stands for the whole file)."""

    file: Path
    line: int | None
    what: What
    detail: str


@dataclass(slots=True)
class ChainState:
    """The state of one chain. `ended`: whether the chain was closed in order, is still being written, or died
    because its process ended without closing it.

    `lost`: the number of records that, according to the chain, could not be written. `reason` is the cause, such as
    a full disk. `missed`: the number of messages that were lost before the Auditor could process them. `begun`,
    `last`: the times of its first and of its last record.
    """

    chain: str
    records: int = 0
    messages: int = 0
    findings: int = 0
    ended: Literal["closed", "running", "died"] = "died"
    torn: bool = False
    lost: int = 0
    reason: str = ""
    missed: int = 0
    begun: datetime = _BEGINNING
    last: datetime = _BEGINNING

    def may_miss(self, at: datetime) -> bool:
        """Return whether a message of that time may be missing in this chain although no record was removed."""
        if self.ended == "closed" and not (self.lost or self.missed):
            return False
        return self.begun <= at and (self.ended == "running" or at <= self.last + LAG)


@dataclass(frozen=True, slots=True)
class Witnessed:
    """The position of another machine's anchors that these chains have recorded. It is the number of a line, and
    the hash of that line."""

    machine: str
    number: int
    hash: str


@dataclass(slots=True)
class Verification:
    """The result of a verification. It has all chains that were checked, and all problems, in order.

    `head`: the head of the anchors. If the user saves this head elsewhere, it can be noticed that the whole home
    was replaced by an older copy.
    """

    chains: list[ChainState] = field(default_factory=list[ChainState])
    task_logs: int = 0
    head: Head = field(default_factory=Head)
    witnessed: list[Witnessed] = field(default_factory=list["Witnessed"])
    problems: list[LogProblem] = field(default_factory=list[LogProblem])

    @property
    def sound(self) -> bool:
        """Return whether no problem was found. It is no problem of the log that a process has died."""
        return not self.problems

    @property
    def unrecorded(self) -> int:
        """Return the number of records and messages that, according to the chains, were lost. No one removed
        these."""
        return sum(chain.lost + chain.missed for chain in self.chains)

    def add(self, file: Path, line: int | None, what: What, detail: str) -> None:
        """Record a problem."""
        if len(self.problems) < MOST_PROBLEMS:
            self.problems.append(LogProblem(file, line, what, detail))


@dataclass(slots=True)
class _Anchored:
    """The anchors of one chain. They have the hashes by number of records, the last event, and the time of the last
    anchor."""

    heads: dict[int, str] = field(default_factory=dict[int, str])
    last: str = ""
    written: datetime = _BEGINNING


@dataclass(frozen=True, slots=True)
class _Seen:
    """A head of the anchors that was recorded elsewhere. It must still be in the file."""

    who: str
    count: int
    hash: str


def verify(
    directory: Path, tasks: Path, read: Read = bool, *, noted: Head | None = None, copy: bool = False
) -> Verification:
    """Verify all chains in `directory`, the anchors there, and the task logs below `tasks`. Raises OSError.

    `read` is called with the number of bytes that were read. `noted`: a head of the anchors that the user saved
    elsewhere. `copy`: true if the files are a copy that another machine has sent. Such a copy has no statistics. It
    may lack the latest anchors, because these are sent after the chains.

    A chain or task log that cannot be read is reported as a problem, and the others are checked nevertheless.
    """
    found, logs, seen = Verification(), Logged(), list[_Seen]()
    heads, anchored = _anchors(directory, found)
    chains = chains_in(directory)
    if chains and not copy and not (directory / ANCHORS).exists():
        found.add(directory / ANCHORS, None, "missing", "there are chains and no anchors")
    for chain, parts in chains.items():
        try:
            _chain(chain, Walk(parts, found.add, read), parts, anchored.get(chain), seen, logs, found)
        except OSError as error:
            found.add(parts[0], None, "missing", f"this chain cannot be read: {error.strerror}")
    for chain, known in anchored.items():
        if chain not in chains and known.last != "retired":
            path = directory / f"audit-{chain}.jsonl"
            found.add(path, None, "missing", f"the anchors know {max(known.heads, default=0)} records of it")
    if not copy:
        # This is read again, because a process may have begun or closed its chain since.
        heads, anchored = _anchors(directory, Verification())
        _unanchored(directory, found.chains, anchored, found)
        seen += _seen_by_statistics(directory)
        if noted is not None:
            seen.append(_Seen("you", noted.count, noted.hash))
    for each in seen:
        _against_heads(each, directory / ANCHORS, heads, found, may_end=copy)
    found.head = Head(max(heads), heads[max(heads)])
    closed = {state.chain for state in found.chains if state.ended == "closed"}
    found.task_logs = logs.verify(tasks, closed, found.add)
    if not copy:
        retired = [known.written for known in anchored.values() if known.last == "retired"]
        _unaudited(directory, tasks, logs, max(retired, default=_BEGINNING), found)
    return found


def _unaudited(directory: Path, tasks: Path, logs: Logged, retired: datetime, found: Verification) -> None:
    """Report ended tasks that no chain has recorded. The reason is that the audit log was removed or is an older
    copy.

    `retired`: the time before which old chains were removed.
    """
    unknown = [
        task
        for task, at in _ended(tasks)
        if task not in logs.tasks and at > retired and not any(chain.may_miss(at) for chain in found.chains)
    ]
    if unknown:
        what = f"no chain knows {len(unknown)} of the tasks that have ended, such as {min(unknown)}"
        found.add(
            directory,
            None,
            "missing",
            f"{what}: the audit log was removed, is an older copy, or could not be written",
        )


def _ended(tasks: Path) -> Iterator[tuple[str, datetime]]:
    """Yield each task whose log ends with a result, together with the time of the end."""
    for path in tasks.glob("*/log*.jsonl"):
        if not path.is_file():
            # if a chain has anchored it, it is reported as missing
            continue
        with open_for_reading(path) as (descriptor, size):
            line = last_line(descriptor, size) or b""
        if b'"kind":"FinalResult"' in line:
            yield path.parent.name, _time_of(_object(line))


def _object(text: bytes) -> Mapping[str, object]:
    try:
        found: object = orjson.loads(text)
    except orjson.JSONDecodeError:
        return {}
    return cast("dict[str, object]", found) if isinstance(found, dict) else {}


def _time_of(fields: Mapping[str, object]) -> datetime:
    """Return the time of a record. If the record has none, return the latest possible time, so that the record
    never counts as retired."""
    try:
        return datetime.fromisoformat(str(fields.get("at")))
    except ValueError:
        return _END


def _unanchored(
    directory: Path, states: Sequence[ChainState], anchored: Mapping[str, _Anchored], found: Verification
) -> None:
    for state in states:
        known = anchored.get(state.chain)
        if known is None and state.records <= 1:
            # The disk was full, or the process died, before the chain was anchored. It contains only the opening
            # record.
            continue
        if known is None:
            path = directory / f"audit-{state.chain}.jsonl"
            found.add(path, None, "added", "the anchors do not know this chain")
        elif state.ended == "closed" and known.last not in ("closed", "retired"):
            what = f"chain {state.chain} was closed, and its last anchor is not there"
            found.add(directory / ANCHORS, None, "cut", what)


# --- anchors ----------------------------------------------------------------------------------------------------


def _anchors(directory: Path, found: Verification) -> tuple[dict[int, str], dict[str, _Anchored]]:
    """Return the heads of the anchors file by number of lines, and the heads of each chain that it contains."""
    path = directory / ANCHORS
    anchored: dict[str, _Anchored] = defaultdict(_Anchored)
    heads: dict[int, str] = {0: NOTHING}
    for placed in Walk([path], found.add) if path.exists() else ():
        if placed.link is None:
            continue
        heads[placed.link.number] = placed.link.hash
        fields = placed.link.fields() if placed.sound else {}
        count, head = fields.get("count"), fields.get("head")
        if isinstance(count, int) and isinstance(head, str):
            known = anchored[str(fields.get("chain", ""))]
            known.heads[count] = head
            known.last = str(fields.get("event", ""))
            if known.last != "retired":
                known.written = _time_of(fields)
        elif placed.sound:
            found.add(path, placed.line, "changed", "it is not what the Auditor writes")
    return heads, anchored


def _seen_by_statistics(directory: Path) -> list[_Seen]:
    """Return the head of the anchors that the statistics contain."""
    path = directory / STATS
    return _seen_in(_object(path.read_bytes()), "the statistics") if path.exists() else []


def _seen_in(record: Mapping[str, object], who: str) -> list[_Seen]:
    """Return the head of the anchors that the first record of a chain, or the statistics, contain. Return None if
    there is none."""
    anchors = record.get("anchors")
    fields = cast("dict[str, object]", anchors) if isinstance(anchors, dict) else {}
    count = fields.get("count")
    return [_Seen(who, count, str(fields.get("head")))] if isinstance(count, int) else []


def _against_heads(
    seen: _Seen, anchors: Path, heads: Mapping[int, str], found: Verification, *, may_end: bool
) -> None:
    """Compare a recorded head of the anchors with the anchors file. `may_end`: true if the latest anchors may be
    missing in the file."""
    there = max(heads)
    if seen.count > there and not may_end:
        found.add(anchors, there + 1, "cut", f"{seen.who} saw {seen.count} anchors, {there} are there")
    elif heads.get(seen.count, seen.hash) != seen.hash:
        found.add(anchors, seen.count, "changed", f"{seen.who} saw another anchor there")


# --- chains -----------------------------------------------------------------------------------------------------


def _chain(
    chain: str,
    walk: Walk,
    parts: Sequence[Path],
    anchored: _Anchored | None,
    seen: list[_Seen],
    logs: Logged,
    found: Verification,
) -> None:
    state = ChainState(chain)
    if is_being_written(parts[-1]):
        state.ended = "running"
    heads = {} if anchored is None else dict(anchored.heads)
    for each in walk:
        state.records += each.link is not None
        link = each.sound
        if link is None:
            continue
        if heads.get(link.number, link.hash) != link.hash:
            found.add(each.file, each.line, "changed", f"record {link.number} is not the one that was anchored")
            # All later records were rewritten together with this one, so they are not reported again.
            heads.clear()
        _take(each, link, state, logs, seen, found)
    state.torn = walk.torn
    end = walk.last
    if end is not None and end.sound:
        state.last = _time_of(end.sound.fields())
    if state.ended == "closed" and state.torn:
        found.add(parts[-1], end.line + 1 if end else 1, "added", "it stands behind the closing record")
    found.chains.append(state)
    if anchored is not None:
        _against_anchors(state, walk, parts[-1], anchored, found)


def _take(
    each: Placed, link: Link, state: ChainState, logs: Logged, seen: list[_Seen], found: Verification
) -> None:
    """Process one valid record. Most records are messages, whose fields need not be parsed."""
    if state.ended == "closed":
        found.add(each.file, each.line, "added", "it stands behind the closing record")
        return
    if link.record.startswith(b'{"type":"message"'):
        state.messages += 1
        return
    fields = link.fields()
    match fields.get("type"):
        case "reread":
            state.messages += 1
            logs.tasks.add(str(fields.get("task")))
        case "finding":
            state.findings += 1
        case "closed" | "lost":
            _lost(fields, state)
        case "gap":
            count = fields.get("count")
            state.missed += count if isinstance(count, int) else 0
        case "opened":
            state.begun = _time_of(fields)
            seen += _seen_in(fields, f"chain {state.chain}")
        case "log":
            if not logs.take(fields, state.chain):
                found.add(each.file, each.line, "changed", "it is not what the Auditor writes")
        case "witness":
            machine, number, digest = fields.get("machine"), fields.get("number"), fields.get("hash")
            if isinstance(machine, str) and isinstance(number, int) and isinstance(digest, str):
                found.witnessed.append(Witnessed(machine, number, digest))
        case "log_forgotten":
            logs.forgotten.add(str(fields.get("task")))
        case None:
            found.add(each.file, each.line, "changed", "it is not what the Auditor writes")
        case _:
            pass


def _lost(fields: Mapping[str, object], state: ChainState) -> None:
    """Add up the records that, according to the chain, were lost. The closing record contains their total
    number."""
    if fields.get("type") == "closed":
        state.ended = "closed"
        count = fields.get("lost", 0)
        state.lost = max(state.lost, count) if isinstance(count, int) else state.lost
    else:
        count = fields.get("count", 0)
        state.lost += count if isinstance(count, int) else 0
    state.reason = str(fields.get("reason", state.reason))


def _against_anchors(state: ChainState, walk: Walk, last: Path, anchored: _Anchored, found: Verification) -> None:
    """Report a chain that ends before its last anchor, or that has no closing record."""
    end, most = walk.last, max(anchored.heads, default=0)
    if end is not None and end.sound is None:
        # the walk has already reported that this line was changed
        return
    if walk.most < most:
        place = end.line + 1 if end else 1
        found.add(last, place, "cut", f"{most} records were anchored, {walk.most} are there")
    elif anchored.last == "closed" and state.ended == "died":
        found.add(last, end.line if end else None, "changed", "it was closed, and does not say so")
