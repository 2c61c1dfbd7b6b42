"""Find tokens of an answer that no call, change or request contains, and the most that a correction names.

tokens of the answer ──► in the evidence, by value? ──► derived from the evidence? ──► ungrounded tokens
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import chain, groupby

from artoo.contracts.execution import CallStatus, ToolCall
from artoo.contracts.text import shortened
from artoo.evidence.numerals import Number, Shown, columns_in, days_in, numbers_in, plain_digits, read_in, times_in
from artoo.evidence.tokens import LIST_MARK, LONGEST, Token, folded, paths_in, tokens_of, words_of
from artoo.evidence.worked_out import worked_out

_DIGITS = re.compile(r"\d+")
_LEADING_ZERO = re.compile(r"\b0")
_ELLIPSIS = re.compile(r"\.{3}|\u2026|\[.*?\]")
_FILLING = re.compile(r"-?\w[\w.]*(?:\s+\w[\w.]*)*")  # words or a number between punctuation marks
_VARIABLE = "$*{<%"  # characters that begin a variable part of a path: backup-$(date), log-*
_COMMAS = re.compile(r"[,\u3001\uff0c]")
_MOST_LINES, _ROWS = 4_000, 6
_STEM, _ENDING = 4, 3  # a word of more than 4 letters has 3 forms, so that TODOs counts lines with TODO
_NAMED = 12  # tokens that a correction names
_LINE = 120  # characters of the nearest line


def own_words(call: ToolCall) -> bool:
    """Return whether a call printed only words of its own input, so that its output is no evidence."""
    said, written = words_of(call.output), words_of(call.input)
    if call.status is not CallStatus.OK or call.changed_something or not said or not set(said) <= set(written):
        return False
    return len(set(said)) > 1 or written[1:] == said or call.self_contained


@dataclass(frozen=True)
class Seen:
    """The evidence for an answer: the texts of calls and of the request, and the counts that follow from them."""

    texts: tuple[str, ...] = ()
    counts: frozenset[int] = frozenset()
    outputs: int = 0  # the first `outputs` texts were printed by calls
    columns: tuple[Number, ...] = ()  # numbers of outputs with a unit of size that an option of the command sets
    measured: frozenset[str] = frozenset()  # outputs in which all bare numbers are such sizes
    listing: str = ""  # a listing of the directory; its numbers are evidence for sizes only
    unnamed: str = ""  # shown parts of files that no text names; its numbers are no evidence

    def wider(self, changed: str, listing: str) -> Seen:
        """Return the evidence with the changed text and the listing added to it. Lines of `changed` can be counted
        as well."""
        counts = self.counts.union(_like_lines(changed))
        return replace(self, texts=(*self.texts, changed), listing=listing, counts=counts)

    @cached_property
    def whole(self) -> str:
        """Return all texts as one, with plain digits and case-folded."""
        return plain_digits("\n".join((*self.texts, self.listing, self.unnamed))).casefold()

    @cached_property
    def folded(self) -> str:
        """Return the case-folded words of all texts in one line."""
        return folded("\n".join((*self.texts, self.listing, self.unnamed)))

    @cached_property
    def lines(self) -> list[list[str]]:
        """Return the outputs, line by line."""
        return [text.splitlines() for text in self.texts[: self.outputs]]

    @cached_property
    def lines_with(self) -> Counter[str]:
        """Return the number of output lines in which each word occurs."""
        return Counter(chain(*(set(words_of(line)) for lines in self.lines for line in lines[:_MOST_LINES])))

    @cached_property
    def sizes(self) -> Shown:
        """Return the sizes in the listing."""
        return Shown(number for number in numbers_in(self.listing) if number.units)

    @cached_property
    def numbers(self) -> Shown:
        """Return every number in the texts."""
        texts = (text for text in self.texts if text not in self.measured)
        return Shown((*(number for text in texts for number in read_in(text)), *self.columns))

    @cached_property
    def digits(self) -> frozenset[str]:
        """Return every run of digits in the texts without its leading zeros. Dates, versions and ids are looked up
        in these."""
        return frozenset(run.lstrip("0") for text in self.texts for run in _DIGITS.findall(plain_digits(text)))

    @cached_property
    def days(self) -> frozenset[str]:
        """Return the day and month of every ISO date in the texts, as `day.month`."""
        found = (each.parts for text in self.texts for each in days_in(text))
        return frozenset(f"{int(day)}.{int(month)}" for _, month, day in found)


def seen_in(calls: Sequence[ToolCall], request: Iterable[str], unnamed: str = "") -> Seen:
    """Collect the evidence of these calls and the request. `unnamed` has the same meaning as in Seen."""
    telling = [(call, shown(call)) for call in calls if not own_words(call)]
    outputs = [part for call, seen in telling for part in (seen, call.error_output, call.reason) if part]
    inputs = [part for call, _ in telling for part in (call.input, call.target, *call.changes, *call.dropped)]
    codes = [f"{call.exit_code} {call.total_bytes} B" for call, _ in telling]
    counts = {len(telling), *(count for call, _ in telling for count in _counts(call))}
    counts.add(sum(len(call.output.split("\n")) - call.output.endswith("\n") for call, _ in telling if call.output))
    changed = {path for call, _ in telling for path in call.changes}
    counts.update(Counter(path.rpartition("/")[0] for path in changed).values())
    counts.update(filter(None, (len(changed), len({path.rpartition("/")[2] for path in changed}))))  # moved ones
    columns = [(seen, *columns_in(seen, call.input, call.identity)) for call, seen in telling]
    numbers = tuple(chain(*(found for _, found, _ in columns)))
    measured = frozenset(seen for seen, _, certain in columns if certain)
    texts = (*outputs, *inputs, *codes, *request)
    return Seen(texts, frozenset(counts), len(outputs), numbers, measured, unnamed=unnamed)


def shown(call: ToolCall) -> str:
    """Return the output of a call without the lines that its input contains word for word."""
    written = f" {folded(call.input)} "
    lines = ((line, folded(line)) for line in call.output.splitlines())
    return "\n".join(line for line, words in lines if " " not in words or f" {words} " not in written)


def _counts(call: ToolCall) -> Iterable[int]:
    """Return the numbers that follow from counting in a call's output: the lines (with and without a heading), the
    lines of one form, the elements of lists, the search results and the changed files."""
    lines = sum(bool(line.strip()) for line in call.output.splitlines())
    yield from (lines, *filter(None, (lines - 1, len(call.changes))))  # no call has counted zero
    yield from (*_like_lines(call.output), *call.list_lengths)
    if call.result_count is not None:
        yield call.result_count


def _like_lines(text: str) -> Iterable[int]:
    """Count the lines that have the same form, such as the rows of a table or the entries of a list, whatever words
    and numbers they contain. A form without any punctuation is ordinary text, so its lines are not counted."""
    forms = Counter(_FILLING.sub("w", line.strip()) for line in text.splitlines()[:_MOST_LINES])
    return (count for form, count in forms.items() if count > 1 and form.replace("w", "").strip())


def ungrounded(answer: str, seen: Seen) -> tuple[Token, ...]:
    """Return the tokens of the answer that are not in the evidence, each once and in order. Lengths of the answer's
    own lists need no evidence."""
    seen = replace(seen, counts=seen.counts.union(_entries(answer)))
    first = {token.text: token for token in reversed(tokens_of(answer))}
    missing = [token for token in first.values() if not (_stands(token, seen) or _is_counted(token, answer, seen))]
    if wanted := {token.number.text for token in missing if token.number is not None}:
        text = answer[:LONGEST]
        numbers = (*numbers_in(text), *times_in(text), *days_in(text))
        said = (token.number for token in first.values() if token.number is not None)
        stated = {each.text: each.amounts for each in said if each.text not in wanted}  # counted ones too
        stated |= {each.text: seen.numbers.meant(each) for each in numbers if _number_stands(each, seen)}
        found = worked_out(wanted, text, stated, seen.texts, seen.outputs)
        missing = [token for token in missing if token.number is None or token.number.text not in found]
    return tuple(sorted(missing, key=lambda token: token.start))


def _entries(answer: str) -> Iterator[int]:
    """Return the number of entries of all lists of an answer together, the number of entries of each list, and the
    number of rows of each table."""
    yield from (count for count in (len(LIST_MARK.findall(answer)),) if count > 1)
    kinds = ("|" if line.startswith("|") else bool(LIST_MARK.match(line)) for line in answer.splitlines())
    for kind, lines in groupby(kinds):
        rows = len([*lines]) - 2 * (kind == "|")  # without its heading and the line below that
        yield from (rows,) if kind and rows > 1 else ()


def _stands(token: Token, seen: Seen) -> bool:
    text = plain_digits(token.text).casefold()
    match token.kind:
        case "number":
            return token.number is not None and _number_stands(token.number, seen)
        case "quote":
            return all(folded(part) in seen.folded for part in _ELLIPSIS.split(token.text))
        case "path" | "url":
            path, put = token.text.rstrip("/").removeprefix("./"), seen.texts[: seen.outputs]
            begun = (path[:end] + sign for end in range(path.rfind("/") + 2, len(path) + 1) for sign in _VARIABLE)
            return plain_digits(path).casefold() in seen.whole or any(one in each for one in begun for each in put)
        case "id":
            runs = [] if "@" in text else _DIGITS.findall(text)
            return text in seen.whole or (bool(runs) and all(run.lstrip("0") in seen.digits for run in runs))


def _number_stands(number: Number, seen: Seen) -> bool:
    """Return whether the evidence contains a number. A whole number, or a row of numbers such as a date, is first
    looked up by its runs of digits, because that is quick. Other numbers are looked up by their value, as a count
    or as a size."""
    runs = number.parts or ((number.text,) if number.text.isdecimal() else ())
    return (
        _LEADING_ZERO.sub("", number.text) in seen.days
        or (bool(runs) and all(run.isdecimal() and run.lstrip("0") in seen.digits for run in runs))
        or seen.numbers.has(number)
        or _begins_a_version(number.text, seen)
        or (not number.units and not seen.counts.isdisjoint(number.values))
        or ((bool(number.units) or number.text.isdecimal()) and len(number.text) > 2 and seen.sizes.has(number))
    )


def _begins_a_version(text: str, seen: Seen) -> bool:
    """Return whether the evidence contains `3.11` as the beginning of a version (3.11.7), or behind a name
    (python3.11)."""
    digits = text.replace(".", "", 1)
    return (
        digits != text
        and digits.isdecimal()
        and any(
            seen.whole.startswith(".", at.end()) or seen.whole[at.start() - 1 : at.start()].isalpha()
            for at in re.finditer(rf"(?<![\d.]){re.escape(text)}(?!\d)", seen.whole)
        )
    )


def _is_counted(token: Token, answer: str, seen: Seen) -> bool:
    """Return whether a number counts lines or items of the outputs. This is so if it is the number of an output
    line that shares a word with the answer's line, if it counts all output lines that have such a word, or if it
    counts the items that the answer's line lists."""
    if token.number is None or not token.text.isdecimal() or len(token.text) > _ROWS:
        return False
    start = answer.rfind("\n", 0, token.start) + 1
    line, number = answer[start:].partition("\n")[0], int(token.text)
    if number > 1 and number in _listed(line, seen):
        return True
    said = {word for word in words_of(line) if len(word) > 2}
    forms = {word[: len(word) - cut] for word in said for cut in range(_ENDING if len(word) > _STEM else 1)}
    if number > 1 and any(seen.lines_with[word] == number for word in forms):
        return True
    rows = (lines[at] for lines in seen.lines for at in (number - 1, number) if 0 <= at < len(lines))
    return any(not said.isdisjoint(words_of(row)) for row in rows)


def _listed(line: str, seen: Seen) -> Iterator[int]:
    """Return the number of items, separated by commas, after the line's last colon, if the evidence contains all of
    them. The last two items may be joined by a word (a, b and c)."""
    before, _, listed = line.rpartition(":")
    *first, last = (words_of(part) for part in _COMMAS.split(listed))
    whole = f" {seen.folded} "

    def stands(words: Sequence[str]) -> bool:
        return bool(words) and f" {' '.join(words)} " in whole

    if not (before or first) or not all(map(stands, first)):
        return
    if stands(last):
        yield len(first) + 1
    if any(stands(last[:at]) and stands(last[at + 1 :]) for at in range(1, len(last) - 1)):
        yield len(first) + 2


def takes_up(answer: str, calls: Sequence[ToolCall], request: Iterable[str]) -> bool:
    """Return whether the answer has an exact token that these calls printed, and that is neither in their inputs
    nor in the request."""
    put_out = Seen(tuple(text for call in calls for text in (call.output, call.error_output, call.reason) if text))
    given = Seen((*(text for call in calls for text in (call.input, call.target)), *request))
    names = (Token("path", name, 0) for name in paths_in(answer))
    return any(_stands(each, put_out) and not _stands(each, given) for each in (*tokens_of(answer), *names))


def nearest(missing: Token, answer: str, seen: Seen) -> list[str]:
    """Return a sentence for a correction, with the output line that shares most words with the line of the missing
    token."""
    line = answer[answer.rfind("\n", 0, missing.start) + 1 :].partition("\n")[0]
    wanted = frozenset(words_of(line))
    lines = chain(*(text.splitlines()[:_MOST_LINES] for text in seen.texts[: seen.outputs]))
    count, found = max(((len(wanted.intersection(words_of(each))), each) for each in lines), default=(0, ""))
    return [f"The nearest line: {shortened(' '.join(found.split()), _LINE)}"] if count else []


def named(missing: Sequence[Token]) -> str:
    """Return the first missing tokens and the number of the other missing ones. They are for a correction in any
    language."""
    more = len(missing) - _NAMED
    return "; ".join((*(token.text for token in missing[:_NAMED]), *([f"… (+{more})"] if more > 0 else [])))
