"""Compare task logs with their anchored sizes and SHA-256 hashes, to find changed, cut or missing logs."""

from __future__ import annotations

import hashlib
import re
from collections import defaultdict
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal, cast

from artoo.auditor.files import lines_of

Points = list[tuple[int, str]]
Change = Literal["changed", "cut", "missing", "added"]
Report = Callable[[Path, int | None, Change, str], None]

_READ = 1024 * 1024
_REFERENCE = re.compile(rb'\{"@blob":"([0-9a-f]{64})"')
_RESUMED = b'"kind":"TaskResumed"'


@dataclass(frozen=True, slots=True)
class LogAnchor:
    """The first `size` bytes of a file had this sha256."""

    size: int
    digest: str


@dataclass(slots=True)
class Logged:
    """The chains' records about task logs: anchors by (task, file), the chains of each task, tasks with removed
    logs.

    `tasks`: every task recorded in a chain.
    """

    anchors: defaultdict[tuple[str, str], list[LogAnchor]] = field(
        default_factory=lambda: defaultdict[tuple[str, str], list[LogAnchor]](list)
    )
    chains: defaultdict[str, set[str]] = field(default_factory=lambda: defaultdict[str, set[str]](set))
    forgotten: set[str] = field(default_factory=set[str])
    tasks: set[str] = field(default_factory=set[str])

    def take(self, fields: Mapping[str, object], chain: str) -> bool:
        """Add a `log` record. Returns False if the Auditor did not write it."""
        task, file, points = fields.get("task"), fields.get("file"), fields.get("points")
        if not (isinstance(task, str) and isinstance(file, str) and isinstance(points, list)):
            return False
        try:
            found = [LogAnchor(int(size), str(digest)) for size, digest in cast("Points", points)]
        except (TypeError, ValueError):
            return False
        self.anchors[task, file] += found
        self.chains[task].add(chain)
        self.tasks.add(task)
        return True

    def verify(self, tasks: Path, closed: Collection[str], report: Report) -> int:
        """Report log files that differ from their anchors, and return the number of checked files.

        `closed`: the chains that were closed in order.
        """
        looked_at = 0
        for (task, name), anchors in self.anchors.items():
            if task in self.forgotten:
                continue
            path = tasks / task / name
            try:
                _beginning(path, anchors, report)
                _blobs(path, report)
                if self.chains[task].issubset(closed):
                    _end(path, max((anchor.size for anchor in anchors), default=0), report)
            except OSError as error:
                report(path, None, "missing", f"it cannot be read: {error.strerror}")
            looked_at += 1
        return looked_at


def _beginning(path: Path, anchors: Sequence[LogAnchor], report: Report) -> None:
    """Check that a log file begins with the anchored bytes."""
    if not path.exists():
        report(path, None, "missing", "it was anchored")
        return
    digest, done, lines = hashlib.sha256(), 0, 0
    with path.open("rb") as file:
        # One pass over the file, because the hash of a longer beginning continues that of a shorter one.
        for each in sorted(anchors, key=lambda anchor: anchor.size):
            first = lines + 1
            for block in _blocks(file.read, each.size - done):
                digest.update(block)
                done += len(block)
                lines += block.count(b"\n")
            if done < each.size:
                report(path, lines + 1, "cut", f"{each.size} bytes were anchored, {done} are there")
                return
            if digest.hexdigest() != each.digest:
                report(path, first, "changed", f"a line from {first} to {lines} is not what was anchored")
                return


def _end(path: Path, size: int, report: Report) -> None:
    """Check that nothing was appended after the last anchor, except by a process that resumed the task."""
    if not path.exists() or path.stat().st_size <= size:
        return
    with path.open("rb") as file:
        lines = file.read(size).count(b"\n")
        if _RESUMED not in file.readline():
            report(path, lines + 1, "added", "it was not there when the last process that wrote it ended")


def _blobs(path: Path, report: Report) -> None:
    """Check that each long string, stored next to the log under its hash, exists and matches its name."""
    directory = path.parent / "blobs"
    if not path.exists():
        return
    for number, (line, _) in enumerate(lines_of(path), 1):
        for match in _REFERENCE.finditer(line) if b'"@blob"' in line else ():
            blob = directory / match[1].decode()
            if not blob.exists():
                report(blob, None, "missing", f"line {number} of {path.name} refers to it")
            elif hashlib.sha256(blob.read_bytes()).hexdigest() != blob.name:
                report(blob, None, "changed", f"it is not what line {number} of {path.name} refers to")


def _blocks(read: Callable[[int], bytes], size: int) -> Iterator[bytes]:
    left = size
    while left > 0 and (block := read(min(_READ, left))):
        left -= len(block)
        yield block
