"""Parse HEARTBEAT.md into patrol items, with the limits of `every:`, of the file and of its items.

HEARTBEAT.md is a Markdown list.

    - every: 6h Look through reports/ and summarise what is new.
    - at: Mon 9:00 Write the report of the week.
    - Sort the requests in inbox.txt.
      when: file_changed inbox.txt

Headings, prose and comments around the list are for people. A checked box (`- [x]`) disables an item.

The conditions after `when:` are in `conditions.py`.

A routine may be a script instead. Each line that the script prints is a request. If it prints nothing, there is no
work. The script is run read-only, before any model is called. Its first line (`#!`) names the interpreter,
otherwise it is bash. As long as the script still prints a line, this counts as the same request. If the line was
missing once, it is a new request when it is printed again.
"""

from __future__ import annotations

import asyncio
import hashlib
import re
import shlex
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING

from artoo.agents.patrol.clock_times import At, ClockProblem, read_at
from artoo.agents.patrol.conditions import ConditionProblem, When, read_when, shortened

if TYPE_CHECKING:
    from markdown_it.tree import SyntaxTreeNode

MOST_LINES = 20
PRINTED = "printed"
"""Prefix of the keys of items that a script has printed."""

RunScript = Callable[[str], Awaitable[tuple[int | None, str]]]
"""Runs a command that may only read files. Returns its exit code and its output. The exit code is None after a
timeout, or if the command changed files. Never raises."""

SHORTEST_EVERY = timedelta(minutes=1)
LONGEST_EVERY = timedelta(days=366)

_UNITS = {"m": "minutes", "h": "hours", "d": "days"}
_EVERY = re.compile(r"(\d{1,6})\s*([mhd])\b[.,;:]?\s*")


@dataclass(frozen=True, slots=True)
class Every:
    """A condition that is met again when this interval has passed since the item was last done."""

    interval: timedelta


def read_every(text: str) -> tuple[Every, str]:
    """Parse the interval at the beginning of `text`. Return it with the text after it. Raises ConditionProblem."""
    found = _EVERY.match(text)
    if found is None:
        raise ConditionProblem(
            f"`every: {shortened(text)}` is no time: write a number and m, h or d, such as 30m or 1d"
        )
    interval = timedelta(**{_UNITS[found[2]]: int(found[1])})
    if not SHORTEST_EVERY <= interval <= LONGEST_EVERY:
        raise ConditionProblem(f"`every: {found[0].strip()}` must be from 1m to 366d")
    return Every(interval), text[found.end() :]


LARGEST_FILE = 64 * 1024
"""Maximum size of a patrol routine in bytes."""
MOST_ITEMS = 100
LONGEST_REQUEST = 4_000
"""Maximum number of characters of one item."""

_MARKER = re.compile(r"(?:^|(?<=\s)|(?<=[(\[]))(every|at|when):(?=\s|$)", re.IGNORECASE)
_BOX = re.compile(r"\[([ xX])\]\s+")
_TEXTS = {"inline", "fence", "code_block"}
_LISTS = {"bullet_list", "ordered_list"}
_ADVICE = "add `every: 1d`, `at: 9:00` or `when: file_exists PATH` to it (or make it a comment)"


@dataclass(frozen=True, slots=True)
class PatrolItem:
    """One item of a patrol routine. `line` counts from 1. If an item has two conditions, both must be met.

    `printed`: true if a script has printed the item. As long as the script prints it, the item is the same request.
    """

    request: str
    line: int
    every: Every | None = None
    when: When | None = None
    printed: bool = False
    at: At | None = None

    @property
    def key(self) -> str:
        """Return a key that is computed from the content of the item. If the item is edited, the key changes. If it
        is moved, the key stays the same."""
        parts = (self.request, self.every, self.when, *(() if self.at is None else (self.at,)))
        said = "\0".join(map(str, parts))
        digest = hashlib.sha256(said.encode("utf-8", "surrogatepass")).hexdigest()[:32]
        return f"printed-{digest}" if self.printed else digest


@dataclass(frozen=True, slots=True)
class Problem:
    """An error in a line (counted from 1), and how to fix it."""

    line: int
    text: str


@dataclass(frozen=True, slots=True)
class PatrolText:
    """A parsed routine, with its valid items and its errors."""

    items: tuple[PatrolItem, ...] = ()
    problems: tuple[Problem, ...] = ()


def read_patrol(path: Path) -> PatrolText:
    """Read the routine in a file. If the file does not exist or is empty, there are no items. The call blocks, so
    it must be made in a thread. Never raises."""
    try:
        text = _text_of(path)
    except ValueError as error:
        return _refused(str(error))
    return parse_patrol(text)


def parse_patrol(text: str) -> PatrolText:
    """Return the items of a routine, and its errors."""
    # Imported here, because only agents with a routine need the parser.
    from markdown_it import MarkdownIt
    from markdown_it.tree import SyntaxTreeNode

    items: list[PatrolItem] = []
    problems: list[Problem] = []
    for block in SyntaxTreeNode(MarkdownIt("commonmark").parse(text)).children:
        if block.type in _LISTS:
            for entry in block.children:
                _read_entry(entry, items, problems)
        elif block.type == "paragraph" and _MARKER.search(_content(block)):
            problems.append(Problem(_line(block), "only list items are patrolled: begin the line with `- `"))
    return PatrolText(tuple(items), tuple(problems))


def _read_entry(entry: SyntaxTreeNode, items: list[PatrolItem], problems: list[Problem]) -> None:
    line = _line(entry)
    lines = list(_lines(entry))
    box = _BOX.match(lines[0]) if lines else None
    if not "".join(lines).strip() or (box is not None and box[1] != " "):
        return
    if box is not None:
        lines[0] = lines[0][box.end() :]
    try:
        item = _item(lines, line)
    except ConditionProblem as problem:
        problems.append(Problem(line, str(problem)))
        return
    if any(item.key == earlier.key for earlier in items):
        problems.append(Problem(line, "the same item stands further up: remove one of them"))
    elif len(items) >= MOST_ITEMS:
        problems.append(Problem(line, f"there are more than {MOST_ITEMS} items: remove some"))
    else:
        items.append(item)


@dataclass(slots=True)
class _Conditions:
    every: Every | None = None
    when: When | None = None
    at: At | None = None

    def take(self, name: str, value: str) -> str:
        """Parse one condition. Return the text after it. Raises ConditionProblem."""
        if getattr(self, name) is not None:
            raise ConditionProblem(f"it has two `{name}:`: keep one")
        if name != "when" and (self.every or self.at):
            raise ConditionProblem("it has `every:` and `at:`: keep one")
        if name == "at":
            try:
                self.at, rest = read_at(value)
            except ClockProblem as problem:
                raise ConditionProblem(str(problem)) from problem
        elif name == "every":
            self.every, rest = read_every(value)
        else:
            self.when, rest = read_when(value)
        return rest


def _item(lines: list[str], line: int) -> PatrolItem:
    """Build an item from its lines. Raises ConditionProblem."""
    request: list[str] = []
    conditions = _Conditions()
    for text in lines:
        while (found := _MARKER.search(text)) is not None:
            request.append(text[: found.start()].rstrip("([ "))
            text = conditions.take(found[1].lower(), text[found.end() :].strip()).lstrip(")] -–—:")
        request.append(text)
    said = " ".join(" ".join(request).split())
    return PatrolItem(_checked(said, conditions), line, conditions.every, conditions.when, at=conditions.at)


def _checked(said: str, conditions: _Conditions) -> str:
    if conditions.every is None and conditions.at is None and conditions.when is None:
        raise ConditionProblem(f"an item needs a condition: {_ADVICE}")
    if not said:
        raise ConditionProblem("an item must say what to do, besides when")
    if len(said) > LONGEST_REQUEST:
        raise ConditionProblem(f"an item has at most {LONGEST_REQUEST} characters, this one {len(said)}")
    return said


def _lines(entry: SyntaxTreeNode) -> list[str]:
    """Return the raw text of an item including nested items, so that asterisks in paths are not read as
    emphasis."""
    nodes = (node for node in entry.walk() if node.type in _TEXTS)
    return [text for node in nodes for text in node.content.splitlines()]


def _content(block: SyntaxTreeNode) -> str:
    return " ".join(child.content for child in block.children)


def _line(block: SyntaxTreeNode) -> int:
    return 1 if block.map is None else block.map[0] + 1


def patrol_problems(path: Path) -> tuple[str, ...]:
    """Return the errors of a routine with file and line. The operator is shown them when the agent starts.
    Blocks."""
    if is_script(path):
        # Errors of a script are only known when it was run, and are published on the stream then.
        return ()
    return tuple(f"{path}:{problem.line}: {problem.text}" for problem in read_patrol(path).problems)


def is_script(path: Path) -> bool:
    """Check whether a routine is a script. Every file that is not Markdown counts as a script."""
    return path.suffix.casefold() not in (".md", ".markdown")


async def printed_by(path: Path, run: RunScript) -> PatrolText:
    """Run the script at `path`. Return the items that it prints. If the file does not exist or is empty, there are
    no items. Never raises."""
    try:
        text = await asyncio.to_thread(_text_of, path)
    except ValueError as error:
        return _refused(str(error))
    if not text.strip():
        return PatrolText()
    code, printed = await run(command_of(text))
    if code != 0:
        how = "did not end in time, or tried to change files" if code is None else f"ended with exit code {code}"
        return _refused(f"it {how}, so nothing is done: {printed.strip()[-300:]}")
    lines = [line.strip() for line in printed.splitlines() if line.strip()]
    wanted = (
        PatrolItem(line[:LONGEST_REQUEST], number, printed=True)
        for number, line in enumerate(lines[:MOST_LINES], 1)
    )
    items = tuple({item.key: item for item in wanted}.values())
    if len(lines) <= MOST_LINES:
        return PatrolText(items)
    more = f"it printed {len(lines) - MOST_LINES} lines more than the {MOST_LINES} that are read"
    return PatrolText(items, (Problem(1, more),))


def command_of(text: str) -> str:
    """Return a command that pipes the text of the script to its interpreter, because the sandbox cannot see the
    file."""
    first = text.partition("\n")[0]
    interpreter = first[2:].strip() if first.startswith("#!") else "bash"
    return f"printf %s {shlex.quote(text)} | {interpreter} /dev/stdin"


def _refused(why: str) -> PatrolText:
    return PatrolText(problems=(Problem(1, why),))


def _text_of(path: Path) -> str:
    """Return the text of a routine. Return "" if there is no file. Raises ValueError with advice. Blocks."""
    try:
        with path.open("rb") as file:
            raw = file.read(LARGEST_FILE + 1)
    except FileNotFoundError:
        return ""
    except OSError as error:
        raise ValueError(f"it cannot be read ({error}): check its permissions") from error
    if len(raw) > LARGEST_FILE:
        raise ValueError(f"it is larger than {LARGEST_FILE} bytes: shorten it")
    try:
        return raw.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise ValueError("it is not UTF-8 text: save it as UTF-8") from error
