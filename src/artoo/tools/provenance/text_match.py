"""Find values of an operation in texts that were read before, by words or digits.

The source of the text is reported with each value.

Whole values are compared by their words, that is, runs of letters and digits, whatever separates them. A number of
at least eight letters and digits (an account, a telephone) is found in any grouping. Scripts without blanks
(Chinese, Japanese, Thai) are compared letter by letter. No dictionary is used.
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
"""Limit of the characters that one task remembers; later texts are not kept."""

MOST_PARTS = 500
"""Limit of the values of one operation that are looked up."""

MOST_VALUE = 100_000
"""Characters of one value that are looked up."""

_SHORTEST = 3
"""Minimum length of a value whose source can be identified; shorter values occur everywhere."""
_REGROUPED = 8
_WORD = re.compile(r"[^\W_]+")


@dataclass(frozen=True, slots=True)
class _Text:
    """A text's words with a blank around each word, and the same text without blanks."""

    spaced: str
    close: str

    @classmethod
    def of(cls, text: str) -> _Text:
        words = _WORD.findall(unicodedata.normalize("NFKC", text).casefold())
        return cls(f" {' '.join(words)} ", "".join(words))

    def holds(self, value: _Text) -> bool:
        """Check whether the text has the value's words in a row, or its letters if grouping does not matter."""
        if value.spaced in self.spaced:
            return True
        grouped = len(value.close) >= _REGROUPED and any(one.isdigit() for one in value.close)
        unspaced = any(unicodedata.category(one) == "Lo" for one in value.close)
        return (grouped or unspaced) and value.close in self.close


@dataclass(slots=True)
class Passages:
    """The texts of one task in reading order, each with its first source.

    A text without a source is the task's own, so a tool that repeats it does not become its source.
    """

    _sources: dict[str, str | None] = field(default_factory=dict[str, str | None])
    _kept: int = 0
    _read: dict[str, _Text] = field(default_factory=dict[str, _Text])

    def keep(self, text: str, source: str | None) -> None:
        """Remember a text; a known text keeps its source. Its words are compared only when a question is asked."""
        if text not in self._sources and self._kept + len(text) <= MOST_TEXT:
            self._sources[text] = source
            self._kept += len(text)

    def carried(self, values: Iterable[str], request: str) -> tuple[tuple[str, str], ...]:
        """Return the values that are in a remembered text and not in the request, with their sources. Blocking."""
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
    """Yield the strings and numbers within values that are JSON; other values unchanged."""
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
