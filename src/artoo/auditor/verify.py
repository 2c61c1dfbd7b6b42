"""Proves that nothing of the audit log is missing, and nothing of it or of the task logs was changed since.

For every chain: each line's own hash, its number, its link to the line before, and the anchored heads. For the
anchors: the same, and the heads that later chains saw. For the task logs: sizes and hashes that the chains hold.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal, cast

import orjson

from artoo.auditor.chain import NOTHING, Link
from artoo.auditor.files import last_line, open_for_reading
from artoo.auditor.layout import ANCHORS, STATS, chains_in
from artoo.auditor.logged import Logged
from artoo.auditor.stats import CHANGED, is_as_sealed
from artoo.auditor.trail import is_being_written
from artoo.auditor.walk import Placed, Read, Walk, What

MOST_PROBLEMS = 1_000


@dataclass(frozen=True, slots=True)
class Problem:
    """Something is not as it was written: in which file, at which line (from 1; None: the whole file), what."""

    file: Path
    line: int | None
    what: What
    detail: str


@dataclass(slots=True)
class ChainState:
    """One chain as it was found. `ended`: in order, not yet, or not at all because its process died.

    `lost`: records that could not be written, as the chain says itself, and `reason` why (a full disk). `missed`:
    messages that were lost before the Auditor could look at them.
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


@dataclass(frozen=True, slots=True)
class Witnessed:
    """Where another machine's anchors stood, as these chains have put it on record: line and its hash."""

    machine: str
    number: int
    hash: str


@dataclass(slots=True)
class Verification:
    """Everything that was looked at, and every problem, in the order in which it was found."""

    chains: list[ChainState] = field(default_factory=list[ChainState])
    task_logs: int = 0
    witnessed: list[Witnessed] = field(default_factory=list["Witnessed"])
    problems: list[Problem] = field(default_factory=list[Problem])

    @property
    def sound(self) -> bool:
        """True when nothing is wrong. A process that died is no problem of the log."""
        return not self.problems

    @property
    def unrecorded(self) -> int:
        """Records and messages that the chains themselves say they do not hold: nobody took them away."""
        return sum(chain.lost + chain.missed for chain in self.chains)

    def add(self, file: Path, line: int | None, what: What, detail: str) -> None:
        """Notes a problem."""
        if len(self.problems) < MOST_PROBLEMS:
            self.problems.append(Problem(file, line, what, detail))


@dataclass(slots=True)
class _Anchored:
    """What the anchors say of one chain: hashes by count, and the last event."""

    heads: dict[int, str] = field(default_factory=dict[int, str])
    last: str = ""


@dataclass(frozen=True, slots=True)
class _Seen:
    """A head of the anchors that somebody has put down: it must still be there."""

    who: str
    count: int
    hash: str


def verify(directory: Path, tasks: Path, read: Read = bool, *, copy: bool = False) -> Verification:
    """Looks at all chains in `directory`, its anchors, and the task logs below `tasks`. Raises OSError.

    `read` hears how many bytes of the chains it has gone through. Of a chain two lines are in memory at a time, and
    what it holds of the task logs. `copy`: what another machine has sent, without its statistics and perhaps
    without its latest anchors: they are sent after the chains, so that a machine that was cut off at its first
    sending has chains there and no anchors at all.

    A chain or a task log that cannot be read is a problem, and keeps nobody from looking at the others.
    """
    found = Verification()
    heads, anchored = _anchors(directory, found)
    logs, seen = Logged(), list[_Seen]()
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
        # Read once more: a process may have begun or closed its chain since.
        heads, anchored = _anchors(directory, Verification())
        _unanchored(directory, found.chains, anchored, found)
        seen += _seen_by_statistics(directory, found)
    for each in seen:
        _against_heads(each, directory / ANCHORS, heads, found, may_end=copy)
    closed = {state.chain for state in found.chains if state.ended == "closed"}
    found.task_logs = logs.verify(tasks, closed, found.add)
    if not chains and not copy:
        _unaudited(directory, tasks, found)
    return found


def _unaudited(directory: Path, tasks: Path, found: Verification) -> None:
    """A task that has come to its end has been audited; one whose process died in its first second may not be."""
    for path in tasks.glob("*/log*.jsonl"):
        with open_for_reading(path) as (descriptor, size):
            if b'"kind":"FinalResult"' in (last_line(descriptor, size) or b""):
                found.add(directory, None, "missing", f"task {path.parent.name} has ended, and no chain is there")
                return


def _unanchored(
    directory: Path, states: Sequence[ChainState], anchored: Mapping[str, _Anchored], found: Verification
) -> None:
    for state in states:
        known = anchored.get(state.chain)
        if known is None and state.records <= 1:
            continue  # the disk was full, or its process died, before the anchors knew it: it says nothing yet
        if known is None:
            path = directory / f"audit-{state.chain}.jsonl"
            found.add(path, None, "added", "the anchors do not know this chain")
        elif state.ended == "closed" and known.last not in ("closed", "retired"):
            what = f"chain {state.chain} was closed, and its last anchor is not there"
            found.add(directory / ANCHORS, None, "cut", what)


# --- anchors ----------------------------------------------------------------------------------------------------


def _anchors(directory: Path, found: Verification) -> tuple[dict[int, str], dict[str, _Anchored]]:
    """The anchors' own heads by count, and what they say of each chain."""
    path = directory / ANCHORS
    anchored: dict[str, _Anchored] = defaultdict(_Anchored)
    heads: dict[int, str] = {0: NOTHING}
    if not path.exists():
        return heads, anchored
    for placed in Walk([path], found.add):
        link = placed.link
        if link is None:
            continue
        heads[link.number] = link.hash
        fields = link.fields() if link.sound else {}
        count, head = fields.get("count"), fields.get("head")
        if isinstance(count, int) and isinstance(head, str):
            known = anchored[str(fields.get("chain", ""))]
            known.heads[count] = head
            known.last = str(fields.get("event", ""))
        elif link.sound:
            found.add(path, placed.line, "changed", "it is not what the Auditor writes")
    return heads, anchored


def _seen_by_statistics(directory: Path, found: Verification) -> list[_Seen]:
    """The statistics hold the head that the anchors had when they were written last."""
    for kept in sorted(directory.glob(f"{STATS}.*{CHANGED}")):
        found.add(kept, None, "changed", "the statistics were this once, and the Auditor had not written it")
    path = directory / STATS
    if not path.exists():
        if any(state.ended == "closed" and not state.reason for state in found.chains):
            found.add(path, None, "missing", "a chain that was closed has its statistics there")
        return []
    text = path.read_bytes()
    if not is_as_sealed(text):
        found.add(path, None, "changed", "it is not what the Auditor wrote")
        return []
    return _seen_in(orjson.loads(text), "the statistics")


def _seen_in(record: Mapping[str, object], who: str) -> list[_Seen]:
    """The head of the anchors in a chain's first record or in the statistics, if there is one."""
    anchors = record.get("anchors")
    fields = cast("dict[str, object]", anchors) if isinstance(anchors, dict) else {}
    count = fields.get("count")
    return [_Seen(who, count, str(fields.get("head")))] if isinstance(count, int) else []


def _against_heads(
    seen: _Seen, anchors: Path, heads: Mapping[int, str], found: Verification, *, may_end: bool
) -> None:
    """`may_end`: the latest anchors may be missing."""
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
    running = is_being_written(parts[-1])
    if running:
        state.ended = "running"
    there: dict[int, Placed] = {}
    for each in walk:
        if each.link is None:
            continue
        state.records += 1
        if anchored is not None and each.link.number in anchored.heads:
            there[each.link.number] = each
        if each.link.sound:
            _take(each, each.link, state, logs, seen, found)
    state.torn = walk.torn
    if state.ended == "closed" and state.torn:
        found.add(parts[-1], walk.last.line + 1 if walk.last else 1, "added", "it stands behind the closing record")
    found.chains.append(state)
    if anchored is not None:
        _against_anchors(state, walk, there, parts, anchored, found)


def _take(
    each: Placed, link: Link, state: ChainState, logs: Logged, seen: list[_Seen], found: Verification
) -> None:
    """What one sound record says."""
    record = link.record
    if state.ended == "closed":
        found.add(each.file, each.line, "added", "it stands behind the closing record")
    elif record.startswith((b'{"type":"message"', b'{"type":"reread"')):
        state.messages += 1
    elif record.startswith(b'{"type":"finding"'):
        state.findings += 1
    elif record.startswith(b'{"type":"closed"'):
        state.ended = "closed"
        _lost(link, state)
    elif record.startswith(b'{"type":"lost"'):
        _lost(link, state)
    elif record.startswith(b'{"type":"gap"'):
        count = link.fields().get("count")
        state.missed += count if isinstance(count, int) else 0
    elif record.startswith(b'{"type":"opened"'):
        seen += _seen_in(link.fields(), f"chain {state.chain}")
    elif record.startswith(b'{"type":"log"'):
        if not logs.take(link, state.chain):
            found.add(each.file, each.line, "changed", "it is not what the Auditor writes")
    elif record.startswith(b'{"type":"witness"'):
        _witnessed(link, found)
    elif record.startswith(b'{"type":"log_forgotten"'):
        logs.forgotten.add(str(link.fields().get("task")))


def _witnessed(link: Link, found: Verification) -> None:
    fields = link.fields()
    machine, number, digest = fields.get("machine"), fields.get("number"), fields.get("hash")
    if isinstance(machine, str) and isinstance(number, int) and isinstance(digest, str):
        found.witnessed.append(Witnessed(machine, number, digest))


def _lost(link: Link, state: ChainState) -> None:
    """What the chain says of records that it does not hold; the closing record counts all of them."""
    fields = link.fields()
    count = fields.get("lost", fields.get("count", 0))
    whole = "lost" in fields
    if isinstance(count, int):
        state.lost = max(state.lost, count) if whole else state.lost + count
    state.reason = str(fields.get("reason", state.reason))


def _against_anchors(
    state: ChainState,
    walk: Walk,
    there: Mapping[int, Placed],
    parts: Sequence[Path],
    anchored: _Anchored,
    found: Verification,
) -> None:
    """What was anchored must be there; a chain that was written anew hangs together and still shows here."""
    end, most = walk.last, max(anchored.heads, default=0)
    readable = end is None or (end.link is not None and end.link.sound)
    if walk.most < most and readable:
        place = end.line + 1 if end else 1
        found.add(parts[-1], place, "cut", f"{most} records were anchored, {walk.most} are there")
    for count, head in sorted(anchored.heads.items()):
        each = there.get(count)
        if each is not None and each.link is not None and each.link.sound and each.link.hash != head:
            found.add(each.file, each.line, "changed", f"record {count} is not the one that was anchored")
            break
    if anchored.last == "closed" and state.ended == "died" and walk.most >= most and readable:
        found.add(parts[-1], end.line if end else None, "changed", "it was closed, and does not say so")
