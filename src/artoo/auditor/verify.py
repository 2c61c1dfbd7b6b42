"""Proves that nothing of the audit log is missing, and nothing of it or of the task logs was changed since.

For every chain: each line's own hash, its number, its link to the line before, and the anchored heads. For the
anchors: the same, and the heads that later chains saw. For the task logs: sizes and hashes that the chains hold.
"""

from __future__ import annotations

import hashlib
import re
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal, cast

import orjson

from artoo.auditor.chain import NOTHING, Head, Link, link_of
from artoo.auditor.files import lines_of
from artoo.auditor.layout import ANCHORS, STATS, chains_in
from artoo.auditor.trail import is_being_written

What = Literal["changed", "removed", "reordered", "duplicated", "cut", "missing", "added"]

MOST_PROBLEMS = 1_000
_READ = 1024 * 1024
_REFERENCE = re.compile(rb'\{"@blob":"([0-9a-f]{64})"')


@dataclass(frozen=True, slots=True)
class Problem:
    """Something is not as it was written: in which file, at which line (from 1; None: the whole file), what."""

    file: Path
    line: int | None
    what: What
    detail: str


@dataclass(slots=True)
class ChainState:
    """One chain as it was found. `ended`: in order, not yet, or not at all because its process died."""

    chain: str
    records: int = 0
    messages: int = 0
    findings: int = 0
    ended: Literal["closed", "running", "died"] = "died"
    torn: bool = False


@dataclass(slots=True)
class Verification:
    """Everything that was looked at, and every problem, in the order in which it was found."""

    chains: list[ChainState] = field(default_factory=list[ChainState])
    task_logs: int = 0
    problems: list[Problem] = field(default_factory=list[Problem])

    @property
    def sound(self) -> bool:
        """True when nothing is wrong. A process that died is no problem of the log."""
        return not self.problems

    def add(self, file: Path, line: int | None, what: What, detail: str) -> None:
        """Notes a problem."""
        if len(self.problems) < MOST_PROBLEMS:
            self.problems.append(Problem(file, line, what, detail))


@dataclass(frozen=True, slots=True)
class _Placed:
    """A line of a chain and where it stands."""

    file: Path
    line: int
    link: Link | None


@dataclass(slots=True)
class _Anchored:
    """What the anchors say of one chain: hashes by count, and the last event."""

    heads: dict[int, str] = field(default_factory=dict[int, str])
    last: str = ""


@dataclass(frozen=True, slots=True)
class _LogAnchor:
    size: int
    digest: str


@dataclass(slots=True)
class _Logs:
    """What the chains hold of the task logs: sizes with their hashes by (task, file), and which were forgotten."""

    sizes: defaultdict[tuple[str, str], list[_LogAnchor]] = field(
        default_factory=lambda: defaultdict[tuple[str, str], list[_LogAnchor]](list)
    )
    forgotten: set[str] = field(default_factory=set[str])


def verify(directory: Path, tasks: Path) -> Verification:
    """Looks at all chains in `directory`, its anchors, and the task logs below `tasks`. Raises OSError."""
    found = Verification()
    heads, anchored = _anchors(directory, found)
    logs = _Logs()
    chains = chains_in(directory)
    for chain, parts in chains.items():
        _chain(chain, parts, anchored.get(chain), heads, logs, found)
    for chain, known in anchored.items():
        if chain not in chains and known.last != "retired":
            path = directory / f"audit-{chain}.jsonl"
            found.add(path, None, "missing", f"the anchors know {max(known.heads, default=0)} records of it")
    # Read once more: a process may have begun or closed its chain since.
    _unanchored(directory, found.chains, _anchors(directory, Verification())[1], found)
    _witness(directory, heads, found)
    for (task, name), sizes in logs.sizes.items():
        if task not in logs.forgotten:
            _task_log(tasks / task / name, sizes, found)
            _blobs(tasks / task / name, found)
            found.task_logs += 1
    return found


def _unanchored(
    directory: Path, states: Sequence[ChainState], anchored: Mapping[str, _Anchored], found: Verification
) -> None:
    for state in states:
        known = anchored.get(state.chain)
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
        if chains_in(directory):
            found.add(path, None, "missing", "there are chains and no anchors")
        return heads, anchored
    for placed in _linked([path], found)[0]:
        link = placed.link
        if link is None:
            continue
        heads[link.number] = link.hash
        fields = link.fields() if link.sound else {}
        known = anchored[str(fields.get("chain", ""))]
        count, head = fields.get("count"), fields.get("head")
        if isinstance(count, int) and isinstance(head, str):
            known.heads[count] = head
        known.last = str(fields.get("event", ""))
    anchored.pop("", None)
    return heads, anchored


def _witness(directory: Path, heads: dict[int, str], found: Verification) -> None:
    """The statistics hold the head that the anchors had when they were written last."""
    path = directory / STATS
    if not path.exists():
        return
    try:
        parsed: object = orjson.loads(path.read_bytes())
    except orjson.JSONDecodeError:
        found.add(path, None, "changed", "it is not the JSON that the Auditor writes")
        return
    fields = cast("dict[str, object]", parsed) if isinstance(parsed, dict) else {}
    _seen_head(fields.get("anchors"), "the statistics", directory / ANCHORS, heads, found)


def _seen_head(seen: object, who: str, anchors: Path, heads: dict[int, str], found: Verification) -> None:
    """A head of the anchors that somebody has seen must still be there."""
    fields = cast("dict[str, object]", seen) if isinstance(seen, dict) else {}
    count, head = fields.get("count"), fields.get("head")
    if not isinstance(count, int) or count not in heads:
        there = max(heads)
        if isinstance(count, int) and count > there:
            found.add(anchors, there + 1, "cut", f"{who} saw {count} anchors, {there} are there")
    elif heads[count] != head:
        found.add(anchors, count, "changed", f"{who} saw another anchor there")


# --- chains -----------------------------------------------------------------------------------------------------


def _chain(
    chain: str,
    parts: Sequence[Path],
    anchored: _Anchored | None,
    heads: dict[int, str],
    logs: _Logs,
    found: Verification,
) -> None:
    state = ChainState(chain)
    running = is_being_written(parts[-1])
    placed, state.torn = _linked(parts, found)
    state.records = sum(each.link is not None for each in placed)
    if running:
        state.ended = "running"
    for each in placed:
        if each.link is not None and each.link.sound:
            _take(each.link, state, logs, heads, parts[0].parent / ANCHORS, found)
    found.chains.append(state)
    if anchored is not None:
        _against_anchors(state, placed, parts, anchored, found)


def _take(
    link: Link, state: ChainState, logs: _Logs, heads: dict[int, str], anchors: Path, found: Verification
) -> None:
    """What one sound record says."""
    record = link.record
    if record.startswith((b'{"type":"message"', b'{"type":"reread"')):
        state.messages += 1
    elif record.startswith(b'{"type":"finding"'):
        state.findings += 1
    elif record.startswith(b'{"type":"closed"'):
        state.ended = "closed"
    elif record.startswith(b'{"type":"opened"'):
        _seen_head(link.fields().get("anchors"), f"chain {state.chain}", anchors, heads, found)
    elif record.startswith(b'{"type":"log"'):
        fields = link.fields()
        points = cast("list[tuple[int, str]]", fields.get("points", []))
        known = logs.sizes[str(fields.get("task")), str(fields.get("file"))]
        known.extend(_LogAnchor(size, digest) for size, digest in points)
    elif record.startswith(b'{"type":"log_forgotten"'):
        logs.forgotten.add(str(link.fields().get("task")))


def _against_anchors(
    state: ChainState, placed: Sequence[_Placed], parts: Sequence[Path], anchored: _Anchored, found: Verification
) -> None:
    """What was anchored must be there; a chain that was written anew hangs together and still shows here."""
    by_number = {each.link.number: each for each in placed if each.link is not None}
    last, most = max(by_number, default=0), max(anchored.heads, default=0)
    readable = not placed or (placed[-1].link is not None and placed[-1].link.sound)
    if last < most and readable:
        place = placed[-1].line + 1 if placed else 1
        found.add(parts[-1], place, "cut", f"{most} records were anchored, {last} are there")
    for count, head in sorted(anchored.heads.items()):
        each = by_number.get(count)
        if each is not None and each.link is not None and each.link.sound and each.link.hash != head:
            found.add(each.file, each.line, "changed", f"record {count} is not the one that was anchored")
            break
    if anchored.last == "closed" and state.ended == "died" and last >= most and readable:
        found.add(parts[-1], placed[-1].line if placed else None, "changed", "it was closed, and does not say so")


def _linked(parts: Sequence[Path], found: Verification) -> tuple[list[_Placed], bool]:
    """Every line of the files, each checked against the one before; whether the last one is unfinished."""
    placed: list[_Placed] = []
    torn = False
    for path in parts:
        for number, (line, whole) in enumerate(lines_of(path), 1):
            if whole:
                placed.append(_Placed(path, number, link_of(line)))
            else:
                torn = True
    numbers = {each.link.number for each in placed if each.link is not None and each.link.sound}
    seen: set[int] = set()
    head = Head()
    for index, each in enumerate(placed):
        follows = placed[index + 1].link if index + 1 < len(placed) else None
        head = _check(each, head, follows, numbers, seen, found)
    return placed, torn


def _check(
    each: _Placed, head: Head, follows: Link | None, numbers: set[int], seen: set[int], found: Verification
) -> Head:
    """One line after `head`; what the next one has to follow."""
    link, due = each.link, head.count + 1
    if link is None or not link.sound:
        found.add(each.file, each.line, "changed", "its hash is not that of what it says")
        # Goes on with what the line was, as far as the next one tells.
        return Head(due, follows.previous if follows is not None else NOTHING)
    if link.number in seen:
        found.add(each.file, each.line, "duplicated", f"record {link.number} stands in the file before")
        return head
    seen.add(link.number)
    if link.number == due:
        if link.previous != head.hash:
            found.add(
                each.file, max(1, each.line - 1), "changed", f"record {due} follows another one than is there"
            )
        return Head(link.number, link.hash)
    if link.number < due or any(number in numbers for number in range(due, link.number) if number not in seen):
        found.add(each.file, each.line, "reordered", f"record {link.number} stands where {due} has its place")
    else:
        gone = f"record {due}" if link.number == due + 1 else f"records {due} to {link.number - 1}"
        found.add(each.file, each.line, "removed", f"{gone} stood before this line")
    return Head(max(link.number, head.count), link.hash if link.number > head.count else head.hash)


# --- task logs --------------------------------------------------------------------------------------------------


def _task_log(path: Path, sizes: Sequence[_LogAnchor], found: Verification) -> None:
    """A task log's file must begin with what the chains have seen of it."""
    if not path.exists():
        found.add(path, None, "missing", f"{max(each.size for each in sizes)} bytes of it were anchored")
        return
    digest, done, lines = hashlib.sha256(), 0, 0
    with path.open("rb") as file:
        for each in sorted(sizes, key=lambda anchor: anchor.size):
            first = lines + 1
            for block in _blocks(file.read, each.size - done):
                digest.update(block)
                done += len(block)
                lines += block.count(b"\n")
            if done < each.size:
                found.add(path, lines + 1, "cut", f"{each.size} bytes were anchored, {done} are there")
                return
            if digest.hexdigest() != each.digest:
                found.add(path, first, "changed", f"a line from {first} to {lines} is not what was anchored")
                return


def _blobs(path: Path, found: Verification) -> None:
    """Long strings stand beside the log under their hash: each must be there, and be what its name says."""
    directory = path.parent / "blobs"
    if not path.exists():
        return
    for number, (line, _) in enumerate(lines_of(path), 1):
        for match in _REFERENCE.finditer(line) if b'"@blob"' in line else ():
            blob = directory / match[1].decode()
            if not blob.exists():
                found.add(blob, None, "missing", f"line {number} of {path.name} refers to it")
            elif hashlib.sha256(blob.read_bytes()).hexdigest() != blob.name:
                found.add(blob, None, "changed", f"it is not what line {number} of {path.name} refers to")


def _blocks(read: Callable[[int], bytes], size: int) -> Iterator[bytes]:
    left = size
    while left > 0 and (block := read(min(_READ, left))):
        left -= len(block)
        yield block
