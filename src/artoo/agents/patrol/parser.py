"""HEARTBEAT.md: a Markdown list of things to look after, each with `every:` or `when:`.

    - every: 6h Look through reports/ and summarise what is new.
    - Sort the requests in inbox.txt.
      when: file_changed inbox.txt

Headings, prose and comments around the list are for people. A checked box (`- [x]`) switches an item off.
"""

from __future__ import annotations

import hashlib
import re
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from artoo.agents.patrol.conditions import ConditionProblem, Every, When, read_every, read_when

if TYPE_CHECKING:
    from markdown_it.tree import SyntaxTreeNode

LARGEST_FILE = 64 * 1024
"""Bytes."""
MOST_ITEMS = 100
LONGEST_REQUEST = 4_000
"""Characters of one item."""

_MARKER = re.compile(r"(?:^|(?<=\s)|(?<=[(\[]))(every|when):(?=\s|$)", re.IGNORECASE)
_BOX = re.compile(r"\[([ xX])\]\s+")
_TEXTS = {"inline", "fence", "code_block"}
_LISTS = {"bullet_list", "ordered_list"}
_ADVICE = "add `every: 1d` or `when: file_exists PATH` to it (or make it a comment)"


@dataclass(frozen=True, slots=True)
class PatrolItem:
    """One thing to look after. `line` counts from 1; with both conditions, both must hold.

    `printed`: a script wants it done, as long as it prints it.
    """

    request: str
    line: int
    every: Every | None = None
    when: When | None = None
    printed: bool = False

    @property
    def key(self) -> str:
        """Names the item by what it says: an item that is edited is a new one, one that is moved is not."""
        said = f"{self.request}\0{self.every}\0{self.when}"
        digest = hashlib.sha256(said.encode("utf-8", "surrogatepass")).hexdigest()[:32]
        return f"printed-{digest}" if self.printed else digest


@dataclass(frozen=True, slots=True)
class Problem:
    """What cannot be used, at which line (from 1), and what to do about it."""

    line: int
    text: str


@dataclass(frozen=True, slots=True)
class PatrolText:
    """A routine as it was read: the items that can be used, and what cannot."""

    items: tuple[PatrolItem, ...] = ()
    problems: tuple[Problem, ...] = ()


def read_patrol(path: Path) -> PatrolText:
    """The routine in a file; an absent or empty file is no work. Blocks: call it in a thread. Never raises."""
    try:
        with path.open("rb") as file:
            raw = file.read(LARGEST_FILE + 1)
    except FileNotFoundError:
        return PatrolText()
    except OSError as error:
        return PatrolText(problems=(Problem(1, f"it cannot be read ({error}): check its permissions"),))
    if len(raw) > LARGEST_FILE:
        return PatrolText(problems=(Problem(1, f"it is larger than {LARGEST_FILE} bytes: shorten it"),))
    try:
        return parse_patrol(raw.decode("utf-8-sig"))
    except UnicodeDecodeError:
        return PatrolText(problems=(Problem(1, "it is not UTF-8 text: save it as UTF-8"),))


def parse_patrol(text: str) -> PatrolText:
    """The items of a routine, and what cannot be used of it."""
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

    def take(self, name: str, value: str) -> str:
        """Reads one condition and returns what follows it. Raises ConditionProblem."""
        if getattr(self, name) is not None:
            raise ConditionProblem(f"it has two `{name}:`: keep one")
        if name == "every":
            self.every, rest = read_every(value)
        else:
            self.when, rest = read_when(value)
        return rest


def _item(lines: list[str], line: int) -> PatrolItem:
    """Puts an item together from its lines. Raises ConditionProblem."""
    request: list[str] = []
    conditions = _Conditions()
    for text in lines:
        while (found := _MARKER.search(text)) is not None:
            request.append(text[: found.start()].rstrip("([ "))
            text = conditions.take(found[1].lower(), text[found.end() :].strip()).lstrip(")] -–—:")
        request.append(text)
    said = " ".join(" ".join(request).split())
    return PatrolItem(_checked(said, conditions), line, conditions.every, conditions.when)


def _checked(said: str, conditions: _Conditions) -> str:
    if conditions.every is None and conditions.when is None:
        raise ConditionProblem(f"an item needs a condition: {_ADVICE}")
    if not said:
        raise ConditionProblem("an item must say what to do, besides when")
    if len(said) > LONGEST_REQUEST:
        raise ConditionProblem(f"an item has at most {LONGEST_REQUEST} characters, this one {len(said)}")
    return said


def _lines(entry: SyntaxTreeNode) -> list[str]:
    """The text of an item and of what is nested in it, as written: stars in a path are no emphasis here."""
    nodes = (node for node in entry.walk() if node.type in _TEXTS)
    return [text for node in nodes for text in node.content.splitlines()]


def _content(block: SyntaxTreeNode) -> str:
    return " ".join(child.content for child in block.children)


def _line(block: SyntaxTreeNode) -> int:
    return 1 if block.map is None else block.map[0] + 1


def patrol_problems(path: Path) -> tuple[str, ...]:
    """What cannot be used of a routine, each with file and line, for the operator at the start. Blocks."""
    if path.suffix.casefold() not in (".md", ".markdown"):
        return ()  # a script is only known by running it; what is wrong with it is on the stream
    return tuple(f"{path}:{problem.line}: {problem.text}" for problem in read_patrol(path).problems)
