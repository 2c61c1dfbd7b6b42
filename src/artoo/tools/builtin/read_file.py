"""The tool `read_file`, with its limit of lines, any encoding, path aliases, and suggestions for missing files."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator
from dataclasses import dataclass, field
from io import TextIOWrapper
from itertools import islice
from pathlib import Path

from artoo.contracts.errors import ToolError
from artoo.contracts.execution import OUTPUT_KEPT, CallStatus
from artoo.ports.sandbox import Roots
from artoo.ports.tools import INTEGER, Parameter, ToolSpec
from artoo.ports.workspace import Files
from artoo.tools.core.to_thread import in_thread
from artoo.tools.core.tool import Arguments, CountsAsItself, Look, Outcome, argument, number
from artoo.tools.core.truncate import head_tail
from artoo.tools.files.documents import SUFFIXES, Documents
from artoo.tools.files.paths import closed_reason, existing, printable, shown
from artoo.tools.files.suggest_paths import explain_missing
from artoo.tools.files.text_files import NotPlainFile, Text, decode, kind_of_bytes, open_plain
from artoo.tools.provenance.read_tracking import LookedAt
from artoo.workspace.changes.path_class import Places
from artoo.workspace.files.rooted import real_files

READ_SECONDS = 120.0
_PIECE = 256 * 1024
_NO_FILES_THERE = ("/proc", "/sys", "/dev")
PATH_ALIASES = ("file_path", "filePath", "absolute_path")
"""Names that other agents' tools use for the path argument."""

MOST_LINES = 2_000
"""Maximum number of lines that one call shows."""
_LONGEST_LINE = 1 << 20
_COUNTED_BYTES = 64 << 20
"""Maximum size of a file whose lines are counted. A larger file is not read to its end."""
_MARK_ROOM = 160
"""Number of characters reserved for the line that explains how to read on."""

_SPEC = ToolSpec(
    name="read_file",
    description="show a text file, PDF, Office document or notebook",
    parameters=(
        Parameter("path", "the file", aliases=PATH_ALIASES, clear=True),
        Parameter("offset", "first line, from 1", False, ("start_line",), INTEGER),
        Parameter("limit", f"lines, at most {MOST_LINES:,}", False, schema=INTEGER),
    ),
    priority=30,
    only_reads=True,
    aliases=("read", "view_file"),
)


@dataclass(frozen=True, slots=True)
class ReadFile(CountsAsItself):
    """Reads a text file. Secrets and the kernel's file systems are refused, also if a link leads to them.

    `kept`: maximum number of characters that one call shows. If a file is longer, its first lines are shown, with a
    line that explains how to read on. `documents` converts Office documents, notebooks and PDFs.
    """

    roots: Roots
    places: Places
    files: Look = real_files
    kept: int = OUTPUT_KEPT
    looked: LookedAt = field(default_factory=LookedAt)
    documents: Documents | None = None
    wall_seconds: float = READ_SECONDS
    spec: ToolSpec = _SPEC

    def target(self, arguments: Arguments) -> str:
        return path_target(arguments, self.roots, self.files())

    async def run(self, arguments: Arguments) -> Outcome:
        """Read the file. Raises ToolError that explains what is wrong with the path, or names the kind of a file
        that is not text.
        """
        first = round(number(arguments, "offset", 1)) or 1
        most = min(round(number(arguments, "limit", MOST_LINES)) or MOST_LINES, MOST_LINES)
        text = argument(arguments, "path")
        if self.documents is not None and (document := await in_thread(self._document, text)):
            converted = await self.documents.text(document, first, most)
            return Outcome(output=converted, ran="the text of a document; shell shows its bytes")
        return await in_thread(self._run, text, first, most)

    def _document(self, text: str) -> Path | None:
        """Return the resolved path of a file that must be converted from a document. Return None for other files,
        and for refused paths."""
        files = self.files()
        try:
            path = existing(text, self.roots, files)
            real = _resolved(files, path, self.roots)
        except ToolError:
            return None  # the attempt to read the file as text will report the problem
        known = real.suffix.lower() in SUFFIXES and self._refusal(path, real) is None
        found = files.stat(real) if known else None
        return real if found is not None and stat.S_ISREG(found.mode) else None

    def _run(self, text: str, first: int, most: int) -> Outcome:
        files = self.files()
        path = existing(text, self.roots, files)
        real = _resolved(files, path, self.roots)
        if refusal := self._refusal(path, real):
            return Outcome(status=CallStatus.REFUSED, reason=refusal)
        found = files.stat(real)
        if found is None:
            raise ToolError(explain_missing(path, self.roots, files))
        if stat.S_ISDIR(found.mode):
            raise ToolError(_directory(path, real, self.roots, files))
        note = self.looked.showing(real, found)
        try:
            seen = _read(files, real, first, most, self.kept)
        except NotPlainFile as error:
            raise ToolError(f"{shown(path, self.roots)} cannot be read: {error}") from error
        except OSError as error:
            raise ToolError(f"{shown(path, self.roots)} cannot be read: {error.strerror}") from error
        note(first > 1 or not seen.truncated)
        return seen

    def _refusal(self, path: Path, real: Path) -> str | None:
        if self.places.is_hidden(os.fsencode(real)):
            return closed_reason(path, self.roots)
        if any(str(real).startswith(place + "/") for place in _NO_FILES_THERE):
            return f"{shown(path, self.roots)} is not a file on a disk; tools cannot read it"
        return None


def path_target(arguments: Arguments, roots: Roots, files: Files) -> str:
    """Return the target of a call with a path argument, in the form that records use for paths. Text that is not a
    path is unchanged."""
    text = argument(arguments, "path")
    try:
        return shown(existing(text, roots, files), roots)
    except ToolError:
        return text


def _read(files: Files, path: Path, first: int, most: int, kept: int) -> Outcome:
    """Return lines from line `first` on, at most `most` lines and `kept` characters, with an explanation how to
    read on."""
    with open_plain(files, path) as (file, size):
        # The encoding of the whole file is detected from its beginning.
        start = _text(file.read(_PIECE), whole=size <= _PIECE)
        file.seek(len(start.mark))
        with TextIOWrapper(file, start.encoding, "replace", newline="\n") as stream:
            lines = islice(_lines(stream), first - 1, None)
            chosen, more = _fitting(lines, most, kept)
            rest = sum(1 for _ in lines) if more and size <= _COUNTED_BYTES else 0
    if not chosen and (first > 1 or size):
        raise ToolError(f"{printable(path.name)} has fewer than {first} lines")
    last = first + len(chosen) - 1
    of_all = f" of {last + 1 + rest}" if size <= _COUNTED_BYTES else f" of {size} bytes"
    mark = f"[lines {first}-{last}{of_all}; read on with offset {last + 1}]\n" if more else ""
    text = head_tail("".join(chosen), kept)
    cut = more or len(text) < sum(map(len, chosen))
    return Outcome(output=text + mark, total_bytes=size, truncated=cut, ran=_remark(first, last, start))


def _lines(stream: TextIOWrapper) -> Iterator[str]:
    """Yield the lines. Only the beginning of a very long line is yielded."""
    while piece := stream.readline(_LONGEST_LINE):
        yield piece
        while not piece.endswith("\n") and (piece := stream.readline(_LONGEST_LINE)):
            pass


def _fitting(lines: Iterator[str], most: int, kept: int) -> tuple[list[str], bool]:
    """Return the first lines that fit, but at least one line. Also return whether more lines follow."""
    chosen, room = list[str](), kept - _MARK_ROOM
    for line in lines:
        if chosen and (len(chosen) == most or len(line) > room):
            return chosen, True
        chosen.append(line)
        room -= len(line)
    return chosen, False


def _remark(first: int, last: int, text: Text) -> str | None:
    """Describe which lines are shown, unless the first line is among them, and the encoding of the file."""
    lines = f"lines {first} to {last}" if first > 1 else ""
    return ", ".join(filter(None, (lines, text.form))) or None


def _text(data: bytes, *, whole: bool) -> Text:
    text = decode(data, whole=whole)
    if text is None:
        raise ToolError(f"it is {kind_of_bytes(data)}, not text; use python or shell to look into it")
    return text


def _resolved(files: Files, path: Path, roots: Roots) -> Path:
    try:
        return files.resolve(path)
    except OSError as error:
        raise ToolError(f"{shown(path, roots)} cannot be read: {error.strerror}") from error


def _directory(path: Path, real: Path, roots: Roots, files: Files) -> str:
    try:
        names = files.names(real)
    except OSError as error:
        raise ToolError(f"{shown(path, roots)} is a directory that cannot be read: {error.strerror}") from error
    listed = ", ".join(map(printable, names[:20])) + (" ..." if len(names) > 20 else "")
    return f"{shown(path, roots)} is a directory; in it: {listed or 'nothing'}"
