"""Merge learnt lines into an agent's knowledge file, with limits on line length and on text in prompts.

The learnt lines are below the text that the operator wrote.

    - "convert notes.md to pdf": given up — pandoc: command not found (4 times, last 2026-01-07) <!-- 3f2a…:91c4 -->

The mark at the end of a line contains the id of its pattern and a checksum of the line. By this mark, a line that
the operator has changed is never overwritten, and a line that the operator has deleted is not added again. The
operator's own text is never removed.
"""

from __future__ import annotations

import math
import re
import zlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from artoo.agents.cognition.similarity import one_line, words

HEADING = "## Learnt"
LINE = 300
"""Maximum number of characters of a learnt line."""

SMALL_MODEL_CHARACTERS = 1_500
"""Maximum number of characters of knowledge in the prompt of a small model. The lines that are most similar to the
task are used."""

_MARK = re.compile(r"\s*<!-- ([0-9a-f]{12}):([0-9a-f]{8}) -->\s*$")


@dataclass(frozen=True, slots=True)
class Learnt:
    """A line that is to be in the file. If there is no room for all lines, those with the lowest `worth` are left
    out."""

    id: str
    text: str
    worth: float
    new: bool = True


@dataclass(frozen=True, slots=True)
class Merged:
    """The new text of the file, the ids of the patterns whose lines were removed, and the number of characters
    above the limit."""

    text: str
    trimmed: tuple[str, ...] = ()
    excess: int = 0


def merged(current: str, lines: Sequence[Learnt], worth: Mapping[str, float], limit: int) -> Merged:
    """Merge `lines` into the file. New lines are added, existing ones updated, and those of the lowest worth
    removed. Idempotent: the same lines change nothing a second time.

    `worth`: the worth of each known pattern, by its id.
    """
    there = {found[1] for line in current.split("\n") if (found := _MARK.search(line)) is not None}
    renewed = {line.id: line for line in lines if line.id in there}
    text = "\n".join(_renewed(line, renewed) for line in current.split("\n"))
    added = [_written(line) for line in lines if line.new and line.id not in there]
    if added and HEADING not in text.split("\n"):
        own = text.rstrip("\n")
        text = f"{own}\n\n{HEADING}" if own else HEADING
    text = "\n".join((text.rstrip("\n"), *added, "")) if added else text
    return _trimmed(text, dict(worth) | {line.id: line.worth for line in lines}, limit)


def plain(text: str) -> str:
    """Return the text of the file without marks, for a prompt."""
    return "\n".join(_MARK.sub("", line) for line in text.split("\n")).strip()


def relevant(text: str, task: str, budget: int) -> str:
    """Return at most `budget` characters of the file for a prompt. It is the whole file, or the lines most similar
    to the task.

    The similarity is computed from the words that a line shares with the task. Rare words weigh more. The chosen
    lines stay in their order.
    """
    shown = plain(text)
    if len(shown) <= budget:
        return shown
    lines = [line for line in shown.split("\n") if line.strip() and not line.startswith("#")]
    said = [words(line) for line in lines]
    asked = words(task)
    scores = [_score(line, asked, said) for line in said]
    chosen: set[int] = set()
    left = budget
    for at in sorted(range(len(lines)), key=lambda at: (-scores[at], at)):
        if scores[at] <= 0 or len(chosen) >= 100:
            break
        if len(lines[at]) + 1 <= left:
            chosen.add(at)
            left -= len(lines[at]) + 1
    return "\n".join(lines[at] for at in sorted(chosen))


def _score(line: frozenset[str], asked: frozenset[str], said: Sequence[frozenset[str]]) -> float:
    shared = line & asked
    rarity = (math.log1p(len(said) / sum(word in other for other in said)) for word in shared)
    return sum(rarity) / math.sqrt(len(line)) if line else 0.0


def _written(line: Learnt) -> str:
    said = f"- {one_line(line.text, LINE)}"
    return f"{said} <!-- {line.id}:{_sum(said)} -->"


def _renewed(line: str, renewed: Mapping[str, Learnt]) -> str:
    """Return the line with its new text. If the operator has changed the line, return it unchanged."""
    found = _MARK.search(line)
    if found is None or found[1] not in renewed or _sum(line[: found.start()]) != found[2]:
        return line
    return _written(renewed[found[1]])


def _trimmed(text: str, worth: Mapping[str, float], limit: int) -> Merged:
    lines = text.split("\n")
    learnt = [(worth.get(found[1], 0.0), at, found[1]) for at, line in enumerate(lines) if (found := _own(line))]
    size, gone = _size(lines), dict[int, str]()
    # Lines are removed in the order of their worth, the lowest first. The operator's own text is never removed.
    for _, at, identifier in sorted(learnt):
        if size <= limit:
            break
        gone[at] = identifier
        size -= len(lines[at]) + 1
    kept = [line for at, line in enumerate(lines) if at not in gone]
    return Merged("\n".join(kept), tuple(gone.values()), max(0, size - limit))


def _own(line: str) -> re.Match[str] | None:
    """Return the mark of a line if a dream cycle wrote the line and no one has changed it since."""
    found = _MARK.search(line)
    return found if found is not None and _sum(line[: found.start()]) == found[2] else None


def _size(lines: Sequence[str]) -> int:
    return sum(len(line) + 1 for line in lines) - 1


def _sum(text: str) -> str:
    return f"{zlib.crc32(text.encode('utf-8', 'surrogatepass')):08x}"
