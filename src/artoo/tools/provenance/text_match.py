"""Find the values of an operation that a text contained which was read before, and the source of each.

A value is compared as a whole, by its words: runs of letters and digits, whatever stands between them. A number
with eight letters and digits or more (an account, a telephone) is found however it is grouped. Scripts that set no
blanks (Chinese, Japanese, Thai) are compared letter by letter. Nothing here knows any word.
"""

from __future__ import annotations

import json
import re
import unicodedata
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from itertools import islice
from typing import cast

MOST_TEXT = 1_000_000
"""Characters that one task remembers; later texts are not kept."""

MOST_PARTS = 500
"""Values of one operation that are looked up."""

MOST_VALUE = 100_000
"""Characters of one value that are looked up."""

_SHORTEST = 3
"""Letters and digits of a value that can be told to come from somewhere; less stands everywhere."""
_REGROUPED = 8
_WORD = re.compile(r"[^\W_]+")


@dataclass(frozen=True, slots=True)
class _Text:
    """A text's words with a blank around each, and the same without blanks."""

    spaced: str
    close: str

    @classmethod
    def of(cls, text: str) -> _Text:
        words = _WORD.findall(unicodedata.normalize("NFKC", text).casefold())
        return cls(f" {' '.join(words)} ", "".join(words))

    def holds(self, value: _Text) -> bool:
        """Check whether it has the words of a value in a row, or its letters if groups and blanks mean nothing."""
        if value.spaced in self.spaced:
            return True
        grouped = len(value.close) >= _REGROUPED and any(one.isdigit() for one in value.close)
        unspaced = any(unicodedata.category(one) == "Lo" for one in value.close)
        return (grouped or unspaced) and value.close in self.close


@dataclass(slots=True)
class Passages:
    """The texts of one task in the order in which they were read, each with who said it first.

    A text without a source is the task's own: what a tool repeats of it is not that tool's word.
    """

    _sources: dict[str, str | None] = field(default_factory=dict[str, str | None])
    _kept: int = 0
    _read: dict[str, _Text] = field(default_factory=dict[str, _Text])

    def keep(self, text: str, source: str | None) -> None:
        """Remember a text; one that is known keeps its source. Its words are looked at when a question is asked."""
        if text not in self._sources and self._kept + len(text) <= MOST_TEXT:
            self._sources[text] = source
            self._kept += len(text)

    def carried(self, values: Iterable[str], request: str) -> tuple[tuple[str, str], ...]:
        """Return the values that a text contained and the request did not, each with its source. Blocking."""
        for text in self._sources:
            if text not in self._read:
                self._read[text] = _Text.of(text)
        own, found = _Text.of(request), list[tuple[str, str]]()
        for leaf in islice(dict.fromkeys(_leaves(values)), MOST_PARTS):
            value = _Text.of(leaf[:MOST_VALUE])
            wide = sum(unicodedata.east_asian_width(one) in ("W", "F") for one in value.close)
            if len(value.close) + wide < _SHORTEST or own.holds(value):
                continue
            source = next((self._sources[text] for text, read in self._read.items() if read.holds(value)), None)
            if source is not None:
                found.append((leaf, source))
        return tuple(found)


def _leaves(values: Iterable[str]) -> Iterator[str]:
    """Yield the texts and numbers in values that are JSON; other values as they are."""
    for value in values:
        try:
            waiting: list[object] = [json.loads(value)]
        except (ValueError, RecursionError):
            yield value
            continue
        while waiting:
            one = waiting.pop()
            if isinstance(one, dict):
                waiting += reversed(list(cast("dict[str, object]", one).values()))
            elif isinstance(one, list):
                waiting += reversed(cast("list[object]", one))
            elif one is not None and not isinstance(one, bool):
                yield str(one)
