"""`edit_file`: exact text of a file against new text; what it changed is shown as a diff."""

from __future__ import annotations

import difflib
from dataclasses import dataclass
from pathlib import Path

from artoo.contracts.errors import ToolError
from artoo.contracts.execution import CallStatus
from artoo.ports.sandbox import Roots
from artoo.ports.tools import Parameter, ToolSpec
from artoo.tools.builtin.read_file import path_target
from artoo.tools.nearby import explain_missing
from artoo.tools.output import looks_binary
from artoo.tools.paths import existing, shown
from artoo.tools.seeing import Look
from artoo.tools.threads import in_thread
from artoo.tools.tool import Arguments, Outcome, argument
from artoo.tools.under_way import Announcing
from artoo.tools.unified import unified
from artoo.tools.writing import FileWriter
from artoo.world.union import RealFiles

EDIT_SECONDS = 30.0
_YES = frozenset({"true", "yes", "1", "all"})
_NO = frozenset({"", "false", "no", "0", "one"})
_MOST_LINES = 20_000
_SHOWN_PLACES = 3
_SHOWN_LINES = 6

_SPEC = ToolSpec(
    name="edit_file",
    description="replace exact text in one file; shows what changed",
    parameters=(
        Parameter("path", "the file"),
        Parameter("old", "the text that stands there now, exactly, with its indentation"),
        Parameter("new", "the text to stand there instead"),
        Parameter("all", "yes: every place where it stands, not only the one", required=False),
    ),
    priority=32,
    reads=False,
    writes=True,
)


@dataclass(frozen=True, slots=True)
class EditFile(Announcing):
    """Replaces text byte for byte. What is not there, or stands there more than once, is refused and shown."""

    writer: FileWriter
    roots: Roots
    files: Look = RealFiles
    wall_seconds: float = EDIT_SECONDS

    @property
    def spec(self) -> ToolSpec:
        return _SPEC

    def identities(self, arguments: Arguments) -> tuple[str, ...]:
        return ("edit_file",)

    def target(self, arguments: Arguments) -> str:
        return path_target(arguments, self.roots, self.files())

    async def run(self, arguments: Arguments) -> Outcome:
        """Raises ToolError when there is no such file, or it cannot be read or written."""
        files = self.files()
        path = await in_thread(existing, argument(arguments, "path"), self.roots, files)
        every = _every(argument(arguments, "all"))
        before = await self.writer.read(path)
        if before is None:
            raise ToolError(await in_thread(explain_missing, path, self.roots, files))
        old, new = _as_in(before, arguments["old"]), _as_in(before, arguments["new"])
        name = shown(path, self.roots)
        problem = _wrong(before, old, new, every=every, name=name)
        if problem is not None:
            return Outcome(status=CallStatus.REFUSED, reason=problem)
        return await self._edit(path, name, before, before.replace(old, new))

    async def _edit(self, path: Path, name: str, before: bytes, after: bytes) -> Outcome:
        lines = unified(before, after) or (f"({len(before)} bytes before, {len(after)} bytes now)",)
        return await self.writer.write(path, after, "\n".join((f"--- {name} before", f"+++ {name} now", *lines)))


def _every(text: str) -> bool:
    if text.casefold() in _YES:
        return True
    if text.casefold() in _NO:
        return False
    raise ToolError(f"all is yes or no, not {text!r}")


def _as_in(content: bytes, text: str) -> bytes:
    """The text in the bytes of the file: with its line ends."""
    data = text.encode("utf-8", "surrogateescape")
    if b"\r\n" in content and b"\r\n" not in data:
        return data.replace(b"\n", b"\r\n")
    return data


def _wrong(content: bytes, old: bytes, new: bytes, *, every: bool, name: str) -> str | None:
    """Why this edit is not made, with what would help; None when it can be."""
    if not old:
        return "old is empty: give the exact text that is to be replaced"
    if old == new:
        return "old and new are the same: nothing would change"
    count = content.count(old)
    if count == 0:
        return f"that text does not stand in {name}. {_nearest(content, old)}"
    if count > 1 and not every:
        lines = ", ".join(map(str, _line_numbers(content, old)))
        return f"that text stands in {name} {count} times (line {lines}): give more of the text around it, or all"
    return None


def _line_numbers(content: bytes, old: bytes) -> list[int]:
    numbers: list[int] = []
    place = content.find(old)
    while place >= 0 and len(numbers) < 10:
        numbers.append(content.count(b"\n", 0, place) + 1)
        place = content.find(old, place + len(old))
    return numbers


def _nearest(content: bytes, old: bytes) -> str:
    """The lines that are most like the first line of `old`, with as many after them as it has."""
    if looks_binary(content[:4096]):
        return "It is no text file."
    lines = content.decode("utf-8", "replace").splitlines()[:_MOST_LINES]
    wanted = [line for line in old.decode("utf-8", "replace").splitlines() if line.strip()]
    if not wanted or not lines:
        return "The file is empty." if not lines else "It is blank."
    stripped: dict[str, int] = {}
    for number, line in enumerate(lines):
        stripped.setdefault(line.strip(), number)
    close = difflib.get_close_matches(wanted[0].strip(), stripped, n=_SHOWN_PLACES, cutoff=0.5)
    if not close:
        return "No line in it is like the first one of it."
    length = min(len(wanted), _SHOWN_LINES)
    shown_lines = sorted({number for one in close for number in range(stripped[one], stripped[one] + length)})
    text = (f"{number + 1}: {lines[number]}" for number in shown_lines if number < len(lines))
    return "\n".join(("Nearest lines:", *text))
