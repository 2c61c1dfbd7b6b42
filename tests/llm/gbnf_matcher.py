"""Does a text belong to the language of a GBNF grammar? Enough of the notation for the tests, slow and simple."""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import cache

_TOKEN = re.compile(
    r"""\s*(?:(?P<name>[a-zA-Z0-9-]+)|(?P<literal>"(?:[^"\\]|\\.)*")|(?P<set>\[(?:[^\]\\]|\\.)*\])"""
    r"""|(?P<count>\{\d*,?\d*\})|(?P<symbol>[()|*+?]))""",
    re.DOTALL,
)


class Grammar:
    """A parsed grammar; `matches` says whether a whole text is in its language."""

    def __init__(self, text: str) -> None:
        self._rules: dict[str, Node] = {}
        for line in text.strip().splitlines():
            name, _, expression = line.partition(" ::= ")
            tokens = list(_tokens(expression))
            self._rules[name], rest = _alternatives(tokens, 0)
            if rest != len(tokens):
                raise ValueError(f"rule {name}: cannot read {tokens[rest:]}")
        for name in {name for node in self._rules.values() for name in _names(node)}:
            if name not in self._rules:
                raise ValueError(f"rule {name} is used and not defined")

    def matches(self, text: str) -> bool:
        """True when `text` is in the language of `root`."""
        rules = self._rules

        @cache
        def ends(node: Node, at: int) -> frozenset[int]:
            kind, value, parts = node
            match kind:
                case "literal":
                    return frozenset({at + len(value)}) if text.startswith(value, at) else frozenset()
                case "set":
                    return frozenset({at + 1}) if re.compile(value).match(text, at) else frozenset()
                case "name":
                    return ends(rules[value], at)
                case "either":
                    return frozenset(end for part in parts for end in ends(part, at))
                case "sequence":
                    places = frozenset({at})
                    for part in parts:
                        places = frozenset(end for place in places for end in ends(part, place))
                    return places
                case _:
                    return repeated(value, parts[0], at)

        def repeated(value: str, part: Node, at: int) -> frozenset[int]:
            least, _, most = value.partition(",")
            done: set[int] = {at} if int(least) == 0 else set()
            places, seen, count = {at}, {at}, 0
            while places and (not most or count < int(most)):
                count += 1
                places = {end for place in places for end in ends(part, place)}
                if count >= int(least):
                    places -= seen
                    done |= places
                    seen |= places
            return frozenset(done)

        return len(text) in ends(("name", "root", ()), 0)


Node = tuple[str, str, tuple["Node", ...]]


def _names(node: Node) -> Iterator[str]:
    if node[0] == "name":
        yield node[1]
    for part in node[2]:
        yield from _names(part)


def _tokens(expression: str) -> Iterator[tuple[str, str]]:
    position, expression = 0, expression.rstrip()
    while position < len(expression):
        match = _TOKEN.match(expression, position)
        if match is None:
            raise ValueError(f"cannot read {expression[position:]!r}")
        yield str(match.lastgroup), match.group(str(match.lastgroup))
        position = match.end()


def _alternatives(tokens: list[tuple[str, str]], at: int) -> tuple[Node, int]:
    parts: list[Node] = []
    while True:
        part, at = _sequence(tokens, at)
        parts.append(part)
        if at >= len(tokens) or tokens[at] != ("symbol", "|"):
            return ("either", "", tuple(parts)), at
        at += 1


def _sequence(tokens: list[tuple[str, str]], at: int) -> tuple[Node, int]:
    parts: list[Node] = []
    while at < len(tokens) and tokens[at] not in (("symbol", "|"), ("symbol", ")")):
        kind, value = tokens[at]
        at += 1
        if kind == "literal":
            parts.append(("literal", value[1:-1].encode().decode("unicode_escape"), ()))
        elif kind in ("set", "name"):
            parts.append((kind, value, ()))
        elif kind == "count":
            least, comma, most = value[1:-1].partition(",")
            parts[-1] = ("repeat", f"{least or 0},{most if comma else least}", (parts[-1],))
        elif value == "(":
            inner, at = _alternatives(tokens, at)
            parts.append(inner)
            at += 1
        else:
            bounds = {"*": "0,", "+": "1,", "?": "0,1"}[value]
            parts[-1] = ("repeat", bounds, (parts[-1],))
    return ("sequence", "", tuple(parts)), at
