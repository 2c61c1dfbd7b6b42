"""Find values of an operation in texts that were read before, by words or digits.

Each value is reported with the source of the text.

Whole values are compared by their words. A word is a run of letters and digits, and the characters between words do
not matter. A number of at least eight letters and digits (such as an account or a telephone number) is found
however it is grouped. Scripts without spaces (Chinese, Japanese, Thai) are compared letter by letter. No dictionary
is used.
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
"""Maximum number of characters that are remembered for one task. Later texts are not remembered."""

MOST_PARTS = 500
"""Maximum number of values of one operation that are searched for."""

MOST_VALUE = 100_000
"""Number of characters of one value that are searched for."""

_SHORTEST = 3
"""Minimum length of a value whose source can be identified. Shorter values occur everywhere."""
_REGROUPED = 8
_WORD = re.compile(r"[^\W_]+")


@dataclass(frozen=True, slots=True)
class _Text:
    """The words of a text with a blank around each word, and the same text without blanks."""

    spaced: str
    close: str

    @classmethod
    def of(cls, text: str) -> _Text:
        words = _WORD.findall(unicodedata.normalize("NFKC", text).casefold())
        return cls(f" {' '.join(words)} ", "".join(words))

    def holds(self, value: _Text) -> bool:
        """Check whether the text contains the words of the value in a row. If grouping does not matter, check for
        its letters in a row."""
        if value.spaced in self.spaced:
            return True
        grouped = len(value.close) >= _REGROUPED and any(one.isdigit() for one in value.close)
        unspaced = any(unicodedata.category(one) == "Lo" for one in value.close)
        return (grouped or unspaced) and value.close in self.close


@dataclass(slots=True)
class Passages:
    """The texts that a task has read, in reading order, each with its first source.

    A text without a source is the task's own. If a tool repeats such a text, the tool does not become its source.
    """

    _sources: dict[str, str | None] = field(default_factory=dict[str, str | None])
    _kept: int = 0
    _read: dict[str, _Text] = field(default_factory=dict[str, _Text])

    def keep(self, text: str, source: str | None) -> None:
        """Remember a text. A text that is already known keeps its source. Its words are only compared when a
        question is asked."""
        if text not in self._sources and self._kept + len(text) <= MOST_TEXT:
            self._sources[text] = source
            self._kept += len(text)

    def carried(self, values: Iterable[str], request: str) -> tuple[tuple[str, str], ...]:
        """Return the values that are in a remembered text and not in the request, each with the source of that
        text. Blocking."""
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
    """Yield the strings and numbers inside values that are JSON. Other values are yielded unchanged."""
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
