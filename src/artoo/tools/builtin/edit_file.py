"""The tool `edit_file`, which replaces exact text, and shows a diff or the nearest place."""

from __future__ import annotations

import difflib
import re
from collections.abc import Mapping
from dataclasses import dataclass

from pydantic import AliasChoices, BaseModel, ConfigDict, Field, JsonValue, TypeAdapter, ValidationError

from artoo.contracts.errors import ToolError
from artoo.contracts.execution import CallStatus
from artoo.ports.sandbox import Roots
from artoo.ports.tools import Parameter, ToolSpec
from artoo.tools.builtin.read_file import PATH_ALIASES, path_target
from artoo.tools.core.to_thread import in_thread
from artoo.tools.core.tool import Arguments, CountsAsItself, Look, Outcome, argument
from artoo.tools.core.workspace_files import WorkspaceWriter
from artoo.tools.files.paths import existing, shown
from artoo.tools.files.suggest_paths import explain_missing
from artoo.tools.files.text_files import Text, exact_text
from artoo.tools.files.unified_diff import unified
from artoo.tools.resume.in_flight import Announcing
from artoo.workspace.files.rooted import real_files

EDIT_SECONDS = 30.0
_MOST_LINES = 20_000
_SHOWN_PLACES = 3
_SHOWN_LINES = 6
_MOST_NUMBERS = 10
_SAY_WHICH = "give more of the text around it, or all"


class Replacement(BaseModel):
    """One replacement that a model requests. Parameter names that other agents' tools use are accepted too."""

    model_config = ConfigDict(extra="forbid")

    old: str = Field(validation_alias=AliasChoices("old", "old_string", "oldString", "old_str"))
    new: str = Field(validation_alias=AliasChoices("new", "new_string", "newString", "new_str"))
    all: bool = Field(False, validation_alias=AliasChoices("all", "replace_all", "replaceAll"))


_EDITS = TypeAdapter(tuple[Replacement, ...])
_MEMBERS = tuple(
    str(name)
    for one in Replacement.model_fields.values()
    if isinstance(one.validation_alias, AliasChoices)
    for name in one.validation_alias.choices
)
_SCHEMA: Mapping[str, JsonValue] = {
    "type": "array",
    "items": {
        "type": "object",
        "properties": {
            "old": {"type": "string", "description": "the exact text now, with its indentation"},
            "new": {"type": "string"},
            "all": {"type": "boolean", "description": "every place, not only one"},
        },
        "required": ["old", "new"],
    },
}

_SPEC = ToolSpec(
    name="edit_file",
    description="replace exact text in a file; shows the diff",
    parameters=(
        Parameter("path", "the file", aliases=PATH_ALIASES, clear=True),
        Parameter(
            "edits",
            'list of {"old": text now, "new": text instead, "all": true for every place}',
            schema=_SCHEMA,
            members=_MEMBERS,
            clear=True,
        ),
    ),
    aliases=("edit", "replace", "str_replace", "multi_edit"),
    priority=32,
    reads=False,
    writes=True,
)


@dataclass(frozen=True, slots=True)
class EditFile(Announcing, CountsAsItself):
    """Replaces text in a file. All other bytes, the encoding and the line ends are unchanged.

    An edit is refused if its old text is missing or occurs more than once. The refusal then shows similar lines, or
    the numbers of the lines that match.
    """

    writer: WorkspaceWriter
    roots: Roots
    files: Look = real_files
    wall_seconds: float = EDIT_SECONDS
    spec: ToolSpec = _SPEC

    def target(self, arguments: Arguments) -> str:
        return path_target(arguments, self.roots, self.files())

    async def run(self, arguments: Arguments) -> Outcome:
        """Edit the file. Raises ToolError if the file does not exist, or cannot be read or written."""
        files = self.files()
        edits = _edits(arguments)
        path = await in_thread(existing, argument(arguments, "path"), self.roots, files)
        before = await self.writer.read(path)
        if before is None:
            raise ToolError(await in_thread(explain_missing, path, self.roots, files))
        name = shown(path, self.roots)
        done = await in_thread(_edited, before, edits, name)
        if isinstance(done, str):
            return Outcome(status=CallStatus.REFUSED, reason=done)
        lines = await in_thread(unified, before, done)
        lines = lines or (f"({len(before)} bytes before, {len(done)} bytes now)",)
        return await self.writer.write(path, done, "\n".join((f"--- {name} before", f"+++ {name} now", *lines)))


def _edits(arguments: Arguments) -> tuple[Replacement, ...]:
    try:
        return _EDITS.validate_python(arguments["edits"])
    except ValidationError as error:
        problem = error.errors(include_url=False)[0]
        where = ".".join(map(str, problem["loc"]))
        raise ToolError(f"edits is a list of {{old, new, all}}; {where}: {problem['msg']}") from error


def _edited(before: bytes, edits: tuple[Replacement, ...], name: str) -> bytes | str:
    """Return the content after all edits, or the reason why an edit cannot be made. Each edit is applied to the
    result of the previous one."""
    done: bytes | str = before
    for number, edit in enumerate(edits, 1):
        done = _Edit(_text_of(done), edit.old, edit.new, every=edit.all).made(name)
        if isinstance(done, str):
            return done if len(edits) == 1 else f"nothing was changed, edit {number}: {done}"
    return done


def _text_of(content: bytes) -> Text:
    """Decode the file. If it is not text, decode it as UTF-8 with the undecodable bytes as surrogates, so that they
    can be written back."""
    return exact_text(content) or Text(content.decode("utf-8", "surrogateescape"), broken=True)


@dataclass(frozen=True, slots=True)
class _Edit:
    """One replacement in a text. When the old text is looked up, CRLF and LF count as equal. The file keeps its
    line ends."""

    file: Text
    old: str
    new: str
    every: bool

    def made(self, name: str) -> bytes | str:
        """Return the file's new content, or the reason why it is unchanged, with advice."""
        if not self.old:
            return "old is empty: give the exact text that is to be replaced"
        if self.old == self.new:
            return "old and new are the same: nothing would change"
        lines = self.old.replace("\r\n", "\n").split("\n")
        pattern = re.compile(r"\r?\n".join(map(re.escape, lines)))
        starts = [match.start() for match in pattern.finditer(self.file.text)]
        if not starts:
            form = f" ({self.file.form})" if self.file.form else ""
            return f"that text does not stand in {name}{form}. {_nearest(self.file.text, self.old)}"
        if len(starts) > 1 and not self.every:
            where = ", ".join(str(self.file.text.count("\n", 0, start) + 1) for start in starts[:_MOST_NUMBERS])
            return f"that text stands in {name} {len(starts)} times (line {where}): {_SAY_WHICH}"
        after = pattern.sub(self._instead, self.file.text)
        if after == self.file.text:
            return "old and new are the same but for the line ends, which the file keeps: nothing would change"
        try:
            return self.file.bytes_of(after)
        except UnicodeEncodeError as error:
            return (
                f"{name} is {self.file.form}, which has no {after[error.start]!r}: write it without that, or"
                " convert the whole file to UTF-8 first, if that is wanted"
            )

    def _instead(self, place: re.Match[str]) -> str:
        """Return the new text with the line ends of the replaced text. If that has none, use the line ends of the
        file."""
        if "\n" not in place.group():
            return self.file.with_ends(self.new)
        return Text(place.group()).with_ends(self.new)


def _nearest(content: str, old: str) -> str:
    """Return the part of the file that begins with the line most similar to the first line of `old`, and has as
    many lines as `old`."""
    if "\0" in content:
        return "It is no text file."
    lines = content.splitlines()[:_MOST_LINES]
    wanted = [line for line in old.splitlines() if line.strip()]
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
