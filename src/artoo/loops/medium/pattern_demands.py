r"""What a regular expression demands of every text that it matches: literal words, and nothing around them.

    "sum: (.+)"     ("sum: ",)          "^\d+$"   nothing in words, but bare: the figure and nothing else
    "yes|no"        ("yes",) or ("no",)         "(?:total )?\d"   nothing

A scanner over the syntax that Python's `re` and `regex` share. It never matches anything; what it does not know it
takes for a gap, which demands nothing.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from itertools import pairwise

_MOST_PATHS = 24
"""Alternatives of one pattern that are told apart; a group with more is a gap."""
_DEEPEST = 40
_WHITE = {"n": "\n", "t": "\t", "r": "\r", "f": "\f", "v": "\v"}
_CLASSES = "dDwWsSpPXhRN"
_ANY_CLASSES = ("\\s\\S", "\\S\\s", "\\d\\D", "\\w\\W", "^\\n")


class _Part(Enum):
    """What is no literal character."""

    GAP = "gap"
    FILL = "fill"  # as much of anything as there is: what stands beside it may stand anywhere
    START = "start"
    END = "end"


_Path = tuple["str | _Part", ...]
"""One way through a pattern: characters, and what is none."""


class _Unreadable(Exception):
    """The pattern has a syntax that the scanner does not follow."""


@dataclass(frozen=True, slots=True)
class Demand:
    """One alternative: `runs` of characters that stand in every match, in order; `bare`: with nothing around it."""

    runs: tuple[str, ...] = ()
    bare: bool = False


def demands(pattern: str) -> tuple[Demand, ...]:
    """The alternatives of `pattern`, each with what it demands; one without demands where it cannot be read."""
    scanner = _Scanner(pattern)
    try:
        paths = scanner.alternatives(0)
    except (_Unreadable, IndexError, ValueError):
        return (Demand(),)
    return tuple(dict.fromkeys(map(_demand, paths))) if scanner.at_end else (Demand(),)


def _demand(path: _Path) -> Demand:
    runs: list[str] = []
    joins = False
    for part in path:
        if isinstance(part, str):
            runs[-1:] = [runs[-1] + part] if joins else [*runs[-1:], part]
        joins = isinstance(part, str)
    start = any(one is _Part.START and after is not _Part.FILL for one, after in pairwise(path))
    end = any(after is _Part.END and one is not _Part.FILL for one, after in pairwise(path))
    return Demand(tuple(runs), start or end)


@dataclass(slots=True)
class _Scanner:
    """Reads a pattern from left to right; `at` is the next character."""

    text: str
    at: int = 0

    @property
    def at_end(self) -> bool:
        return self.at >= len(self.text)

    def alternatives(self, depth: int) -> list[_Path]:
        """Up to a closing parenthesis or the end."""
        if depth > _DEEPEST:
            raise _Unreadable
        found = self._sequence(depth)
        while self._takes("|"):
            found = [*found, *self._sequence(depth)]
        return found if len(found) <= _MOST_PATHS else [(_Part.GAP,)]

    def _sequence(self, depth: int) -> list[_Path]:
        paths: list[_Path] = [()]
        while not self.at_end and self.text[self.at] not in "|)":
            ways = self._repeated(self._atom(depth))
            joined = [(*path, *way) for path in paths for way in ways]
            paths = joined if len(joined) <= _MOST_PATHS else [(*path, _Part.GAP) for path in paths]
        return paths

    def _atom(self, depth: int) -> list[_Path]:
        one = self.text[self.at]
        self.at += 1
        match one:
            case "(":
                return self._group(depth)
            case "[":
                return [(self._class(),)]
            case "\\":
                return [self._escape()]
            case ".":
                return [(_Part.FILL,)]
            case "^":
                return [(_Part.START,)]
            case "$":
                return [(_Part.END,)]
            case _:
                return [(one,)]

    def _repeated(self, ways: list[_Path]) -> list[_Path]:
        """The atom with its quantifier. What may be left out demands nothing, and neither does a single `.`."""
        least = self._least()
        filling = ways == [(_Part.FILL,)]
        if least is None:
            return [(_Part.GAP,)] if filling else ways
        if filling:
            return ways
        return [(*way, _Part.GAP) for way in ways] if least else [(_Part.GAP,)]

    def _least(self) -> int | None:
        """How often the atom before must stand at least; None without a quantifier."""
        rest = self.text[self.at :]
        if rest[:1] in ("*", "+", "?") and rest:
            self.at += 1
            least = int(rest[0] == "+")
        elif rest.startswith("{") and (inner := rest[1 : rest.find("}")]) and _is_count(inner):
            self.at += len(inner) + 2
            least = int(inner.partition(",")[0] or "0")
        else:
            return None
        if self.text[self.at : self.at + 1] in ("?", "+"):
            self.at += 1
        return least

    def _group(self, depth: int) -> list[_Path]:
        looks_away = self._opening()
        if looks_away is None:
            return [(_Part.GAP,)]
        found = self.alternatives(depth + 1)
        if not self._takes(")"):
            raise _Unreadable
        return [(_Part.GAP,)] if looks_away else found

    def _opening(self) -> bool | None:
        """Reads what follows `(`. Whether the group stands for what must not be there; None when it is over."""
        if not self._takes("?"):
            return False
        for words in ("<!", "!"):
            if self._takes(words):
                return True
        for words in (":", ">", "=", "<=", "|"):
            if self._takes(words):
                return False
        if self._takes("P<") or self._takes("<"):
            self.at = self.text.index(">", self.at) + 1
            return False
        if self._takes("#") or self._takes("P="):
            self.at = self.text.index(")", self.at) + 1
            return None
        ends = next(place for place in range(self.at, len(self.text) + 1) if self.text[place] in ":)")
        flags = self.text[self.at : ends]
        if not flags.replace("-", "").isalnum() or "x" in flags:
            raise _Unreadable
        self.at = ends + 1
        return None if self.text[ends] == ")" else False

    def _class(self) -> str | _Part:
        """A set of characters: a literal when it holds one letter, in either case."""
        closing = self.at + (self.text[self.at] == "^")
        closing += self.text[closing] == "]"
        while self.text[closing] != "]":
            closing += 2 if self.text[closing] == "\\" else 1
        inner, self.at = self.text[self.at : closing], closing + 1
        if inner in _ANY_CLASSES:
            return _Part.FILL
        plain = inner.replace("\\", "") if not any(f"\\{one}" in inner for one in _CLASSES) else ""
        simple = plain and not inner.startswith("^") and "-" not in plain[1:-1]
        return plain[0] if simple and len(set(plain.casefold())) == 1 else _Part.GAP

    def _escape(self) -> _Path:
        one = self.text[self.at]
        self.at += 1
        if one in "AZz":
            return (_Part.START,) if one == "A" else (_Part.END,)
        if one in "bBGKmM":
            return ()
        if one in "xuU":
            code = self.text[self.at : self.at + {"x": 2, "u": 4, "U": 8}[one]]
            self.at += len(code)
            return (chr(int(code, 16)),)
        if one in _CLASSES or one.isdigit():
            if self.text[self.at : self.at + 1] == "{" and one in "pPN":
                self.at = self.text.index("}", self.at) + 1
            return (_Part.GAP,)
        return (_WHITE.get(one, one),)

    def _takes(self, words: str) -> bool:
        if not self.text.startswith(words, self.at):
            return False
        self.at += len(words)
        return True


def _is_count(inner: str) -> bool:
    least, _, most = inner.partition(",")
    return (least.isdigit() or not least) and (most.isdigit() or not most) and bool(least or most)
