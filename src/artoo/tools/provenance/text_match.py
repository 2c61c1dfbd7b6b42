"""What stood word for word in a text that was read: which values of an act came from there, and who said it first.

Texts are compared by words: runs of letters, and numbers. A letter of a script without capitals (Chinese, Arabic,
Thai) is a word of its own, since such scripts need not set blanks. Numbers are compared by value, whatever marks
their thousands and decimals. Nothing here knows any word.
"""

from __future__ import annotations

import json
import re
import unicodedata
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import islice
from typing import NamedTuple, cast

MOST_TEXT = 1_000_000
"""Characters that one task remembers; later texts are not kept."""

MOST_PARTS = 500
"""Values of one act, and numbers of one value, that are looked up."""

MOST_VALUE = 100_000
"""Characters of one value that are looked up."""

_SHORTEST = 3
"""Letters and digits of what can be told to come from somewhere; less stands everywhere."""
_PASSAGE = 20
"""Letters of words in a row that two texts do not share by chance, within longer texts."""
_REGROUPED = 8
"""From here on a value with a digit counts however it is set in groups: account and telephone numbers."""
_WIDE_LETTER = 2
"""Letters that a wide character (Chinese, Japanese, Korean) counts for."""

_WORD = re.compile(r"\d+(?:[.,]\d+)*|[^\W\d_]+")
_BLANK = re.compile(r"\s")
_NUMBER = re.compile(r"(?P<whole>\d{1,3}(?:[.,]\d{3})+|\d+)(?:[.,](?P<part>\d+))?")


class _Word(NamedTuple):
    """A word as it is compared, and where it stands.

    `alone`: a letter that knows no capitals; what stands beside it is another word, without a blank between.
    """

    text: str
    start: int
    end: int
    alone: bool = False


@dataclass(frozen=True, slots=True)
class _Text:
    """A text's words with a blank around each, the same without blanks, and who said it (None: the task itself)."""

    spaced: str
    close: str
    source: str | None = None

    @classmethod
    def of(cls, words: Iterable[_Word], source: str | None = None) -> _Text:
        spaced = _joined(words)
        return cls(spaced, spaced.replace(" ", ""), source)

    def holds(self, words: Sequence[_Word]) -> bool:
        """Whether it has these words in a row; with a digit among many, however they are grouped."""
        if _joined(words) in self.spaced:
            return True
        grouped = _has_digit(words) and _letters(words) >= _REGROUPED
        return grouped and "".join(_texts(words)) in self.close


@dataclass(slots=True)
class Passages:
    """The texts of one task in the order in which they were read, each with who said it first.

    A text without a source is the task's own: what a tool repeats of it is not that tool's word.
    """

    _sources: dict[str, str | None] = field(default_factory=dict[str, str | None])
    _kept: int = 0
    _read: dict[str, _Text] = field(default_factory=dict[str, _Text])

    def keep(self, text: str, source: str | None) -> None:
        """Remembers a text; one that is known keeps its source. Its words are looked at when somebody is asked."""
        if text not in self._sources and self._kept + len(text) <= MOST_TEXT:
            self._sources[text] = source
            self._kept += len(text)

    def carried(self, values: Iterable[str], request: str) -> tuple[tuple[str, str], ...]:
        """What of these values stood in a text and does not stand in the request, each with its source.

        That is a value as a whole, from three letters or digits on; within a longer one a number with what it is
        written together with, and words in a row of together twenty letters. Blocking: half a second of a
        processor for as much as a task remembers.
        """
        for text, source in tuple(self._sources.items()):
            if text not in self._read:
                self._read[text] = _Text.of(_words(_normal(text)), source)
        read, own = tuple(self._read.values()), _words(_normal(request))
        found = dict[tuple[str, str], None]()
        for value in islice(dict.fromkeys(_leaves(values)), MOST_PARTS):
            found |= dict.fromkeys(_looked_up(_normal(value[:MOST_VALUE]), own, read))
        return tuple(found)


def _looked_up(value: str, own: Sequence[_Word], read: Sequence[_Text]) -> Iterator[tuple[str, str]]:
    words, request = _words(value), _Text.of(own)
    if _letters(words) < _SHORTEST or request.holds(words):
        return
    whole = _first(read, words)
    if whole is not None:
        yield from ((value, source) for source in (whole.source,) if source is not None)
        return
    spans = list[tuple[int, int, str]]()
    for group in islice(_with_digits(value, words), MOST_PARTS):
        said = None if request.holds(group) else _first(read, group)
        if said is not None and said.source is not None:
            spans.append((group[0].start, group[-1].end, said.source))
    spans += _passages(words, own, read)
    yield from ((value[start:end], source) for start, end, source in _merged(spans))


def _first(read: Iterable[_Text], words: Sequence[_Word]) -> _Text | None:
    return next((text for text in read if text.holds(words)), None)


def _with_digits(value: str, words: Iterable[_Word]) -> Iterator[list[_Word]]:
    """What of a value is a number, with what is written together with it, each once."""
    seen = set[str]()
    for group in _groups(value, words):
        joined = _joined(group)
        if joined not in seen and _has_digit(group) and _letters(group) >= _SHORTEST:
            seen.add(joined)
            yield group


def _groups(value: str, words: Iterable[_Word]) -> Iterator[list[_Word]]:
    """Words that are written together, without a blank."""
    group = list[_Word]()
    for word in words:
        apart = group and (word.alone or group[-1].alone or _BLANK.search(value, group[-1].end, word.start))
        if apart:
            yield group
            group = []
        group.append(word)
    if group:
        yield group


def _passages(words: list[_Word], own: Sequence[_Word], read: Iterable[_Text]) -> Iterator[tuple[int, int, str]]:
    """Where words in a row stood in a text, and whose: the first to say them."""
    wanted = {text: (words[first].start, words[last].end) for text, first, last in _windows(_texts(words))}
    for text, _, _ in _windows(_texts(own)):
        wanted.pop(text, None)
    for each in read:
        if not wanted:
            return
        for text, _, _ in _windows(each.spaced.split()):
            span = wanted.pop(text, None)
            if span is not None and each.source is not None:
                yield (*span, each.source)


def _windows(words: Sequence[str]) -> Iterator[tuple[str, int, int]]:
    """From each word on, the fewest words in a row of enough letters, two at least; with the first and the last."""
    counted = list(map(_count, words))
    beyond, letters = 0, 0
    for first, count in enumerate(counted):
        while letters < _PASSAGE or beyond < first + 2:
            if beyond == len(words):
                return
            letters += counted[beyond]
            beyond += 1
        yield " ".join(words[first:beyond]), first, beyond - 1
        letters -= count


def _merged(spans: Iterable[tuple[int, int, str]]) -> Iterator[tuple[int, int, str]]:
    """Spans of one source that overlap become one."""
    current: tuple[int, int, str] | None = None
    for start, end, source in sorted(spans):
        if current is not None and source == current[2] and start <= current[1]:
            current = (current[0], max(end, current[1]), source)
            continue
        if current is not None:
            yield current
        current = (start, end, source)
    if current is not None:
        yield current


def _leaves(values: Iterable[str]) -> Iterator[str]:
    """The texts and numbers in values that are JSON; other values as they are. True, false and null say nothing."""
    for value in values:
        try:
            waiting: list[object] = [json.loads(value)]
        except (ValueError, RecursionError):
            yield value
            continue
        while waiting:
            found = waiting.pop()
            if isinstance(found, dict):
                waiting += reversed(list(cast("dict[str, object]", found).values()))
            elif isinstance(found, list):
                waiting += reversed(cast("list[object]", found))
            elif found is not None and not isinstance(found, bool):
                yield str(found)


def _normal(text: str) -> str:
    return text if text.isascii() else unicodedata.normalize("NFKC", text)


def _words(text: str) -> list[_Word]:
    """The words of a normal text."""
    return list(_found(text))


def _found(text: str) -> Iterator[_Word]:
    for match in _WORD.finditer(text):
        word, start = match.group(), match.start()
        if word[0].isdigit():
            yield from _numbers(word, start)
        elif word.isascii():
            yield _Word(word.lower(), start, match.end())
        else:
            yield from _scripts(word, start)


def _numbers(run: str, start: int) -> Iterator[_Word]:
    """A number by its value; digits with other marks between them one by one."""
    number = _NUMBER.fullmatch(run)
    if number is None:
        for digits in re.finditer(r"\d+", run):
            yield _Word(digits.group(), start + digits.start(), start + digits.end())
        return
    whole, part = re.sub("[.,]", "", number["whole"]), (number["part"] or "").rstrip("0")
    text = f"{whole}.{part}" if part else whole
    yield _Word(text, start, start + len(run))


def _scripts(run: str, start: int) -> Iterator[_Word]:
    """Letters that know capitals make words; each other letter is one."""
    began = 0
    for at, letter in enumerate(run):
        if unicodedata.category(letter) in ("Lo", "Lm"):
            if began < at:
                yield _Word(run[began:at].casefold(), start + began, start + at)
            yield _Word(letter, start + at, start + at + 1, alone=True)
            began = at + 1
    if began < len(run):
        yield _Word(run[began:].casefold(), start + began, start + len(run))


def _letters(words: Iterable[_Word]) -> int:
    return sum(_count(word.text) for word in words)


def _count(word: str) -> int:
    """How many letters a word counts for."""
    wide = not word.isascii() and len(word) == 1 and unicodedata.east_asian_width(word) in ("W", "F")
    return _WIDE_LETTER if wide else len(word)


def _texts(words: Iterable[_Word]) -> list[str]:
    return [word.text for word in words]


def _has_digit(words: Iterable[_Word]) -> bool:
    return any(word.text[0].isdigit() for word in words)


def _joined(words: Iterable[_Word]) -> str:
    return f" {' '.join(_texts(words))} "
