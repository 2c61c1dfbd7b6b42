"""`read_file`: one text file, bounded, whatever its encoding; when it is not there, where it really is."""

from __future__ import annotations

import os
import re
import stat
from dataclasses import dataclass, field
from io import TextIOWrapper
from itertools import islice
from pathlib import Path

from artoo.contracts.errors import ToolError
from artoo.contracts.execution import OUTPUT_KEPT, CallStatus
from artoo.ports.sandbox import Roots
from artoo.ports.tools import Parameter, ToolSpec
from artoo.ports.workspace import Files
from artoo.tools.excerpt import beginning, beginning_and_end, two_ends
from artoo.tools.looked_at import LookedAt
from artoo.tools.nearby import explain_missing
from artoo.tools.paths import closed_reason, existing, printable, shown
from artoo.tools.seeing import Look, real_files
from artoo.tools.text_file import NotPlainFile, Text, decode, kind_of_bytes, open_plain
from artoo.tools.threads import in_thread
from artoo.tools.tool import Arguments, Outcome, argument
from artoo.workspace.changes.path_class import Places

READ_SECONDS = 20.0
_PIECE = 256 * 1024
_MOST_LINE_CHARACTERS = 8 << 20
_RANGE = re.compile(r"(\d{1,9})(?:\s*[-:,]\s*(\d{1,9}))?")
_NO_FILES_THERE = ("/proc", "/sys", "/dev")
PATH_ALIASES = ("file_path", "filePath", "absolute_path")
"""What other agents call the path of a file."""

_SPEC = ToolSpec(
    name="read_file",
    description="show the text of one file",
    parameters=(
        Parameter("path", "the file", aliases=PATH_ALIASES),
        Parameter("lines", "first-last, such as 1-50", required=False),
    ),
    priority=30,
    aliases=("read", "view_file"),
)


@dataclass(frozen=True, slots=True)
class ReadFile:
    """Reads a text file. Secrets and the kernel's own trees are refused, also through links.

    `kept`: characters that one call shows. Of a file that has more, lines of both ends are shown, of lines that
    have more the first ones, and the numbers of the others.
    """

    roots: Roots
    places: Places
    files: Look = real_files
    kept: int = OUTPUT_KEPT
    looked: LookedAt = field(default_factory=LookedAt)
    wall_seconds: float = READ_SECONDS

    @property
    def spec(self) -> ToolSpec:
        return _SPEC

    def identities(self, arguments: Arguments) -> tuple[str, ...]:
        return ("read_file",)

    def target(self, arguments: Arguments) -> str:
        return path_target(arguments, self.roots, self.files())

    async def run(self, arguments: Arguments) -> Outcome:
        """Raises ToolError that says what is wrong with the path, or what the file is instead of text."""
        return await in_thread(self._run, argument(arguments, "path"), argument(arguments, "lines"))

    def _run(self, text: str, lines: str) -> Outcome:
        files = self.files()
        path = existing(text, self.roots, files)
        wanted = _line_range(lines)
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
            seen = _read_lines(files, real, *wanted, self.kept) if wanted else _read(files, real, self.kept)
        except NotPlainFile as error:
            raise ToolError(f"{shown(path, self.roots)} cannot be read: {error}") from error
        except OSError as error:
            raise ToolError(f"{shown(path, self.roots)} cannot be read: {error.strerror}") from error
        note(bool(wanted) or not seen.truncated)
        return seen

    def _refusal(self, path: Path, real: Path) -> str | None:
        if self.places.is_hidden(os.fsencode(real)):
            return closed_reason(path, self.roots)
        if any(str(real).startswith(place + "/") for place in _NO_FILES_THERE):
            return f"{shown(path, self.roots)} is not a file on a disk; tools cannot read it"
        return None


def path_target(arguments: Arguments, roots: Roots, files: Files) -> str:
    """The target of a tool whose main argument is a path: as records show it, or as given when it is no path."""
    text = argument(arguments, "path")
    try:
        return shown(existing(text, roots, files), roots)
    except ToolError:
        return text


def _read(files: Files, path: Path, kept: int) -> Outcome:
    """The whole file, or lines of its beginning and end when it is longer than is kept."""
    with open_plain(files, path) as (file, size):
        head = file.read(_PIECE)
        tail = b""
        if size > _PIECE:
            file.seek(max(_PIECE, size - _PIECE))
            tail = file.read(_PIECE)
    whole = len(head) + len(tail) >= size
    text = _text(head + tail if whole else head, whole=whole)
    rest = "" if whole else tail.decode(text.encoding, "replace")
    output = beginning_and_end(text.text, kept) if whole else two_ends(text.text, rest, size, kept)
    return Outcome(
        output=output,
        kept=kept,
        total_bytes=size,
        truncated=output != text.text,
        ran=text.form or None,
    )


def _read_lines(files: Files, path: Path, first: int, last: int, kept: int) -> Outcome:
    """These lines, or the first of them when they are more than is kept: what follows is asked for next."""
    with open_plain(files, path) as (file, size):
        whole = _text(file.read(_PIECE), whole=size <= _PIECE)  # the beginning says how all of it is written down
        file.seek(len(whole.mark))
        budget = _MOST_LINE_CHARACTERS
        chosen: list[str] = []
        with TextIOWrapper(file, whole.encoding, "replace", newline="\n") as lines:
            for line in islice(lines, first - 1, last):
                budget -= len(line)
                if budget < 0:
                    break
                chosen.append(line)
    if not chosen:
        raise ToolError(f"{printable(path.name)} has fewer than {first} lines")
    text = "".join(chosen)
    output = beginning(text, first, kept)
    cut = budget < 0 or output != text
    ran = f"lines {first} to {last}" + (f" ({whole.form})" if whole.form else "")
    return Outcome(output=output, kept=kept, total_bytes=size, truncated=cut, ran=ran)


def _text(data: bytes, *, whole: bool) -> Text:
    text = decode(data, whole=whole)
    if text is None:
        raise ToolError(f"it is {kind_of_bytes(data)}, not text; use python or shell to look into it")
    return text


def _line_range(text: str) -> tuple[int, int] | None:
    if not text:
        return None
    match = _RANGE.fullmatch(text)
    if match is None:
        raise ToolError(f"lines {text!r} is not a range; write it as 1-50")
    first = max(1, int(match.group(1)))
    return first, max(first, int(match.group(2) or first))


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
