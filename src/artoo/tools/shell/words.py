"""The value of a shell word where it can be known without running anything."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tree_sitter import Node

Variables = Mapping[str, str]

_EXPANSIONS = frozenset({"simple_expansion", "expansion"})
_FOUND_BY_RUNNING = frozenset({"command_substitution", "process_substitution", "arithmetic_expansion"})
_ANSI = "ansi_c_string"
_PIECES = re.compile(r"'[^']*'|\"(?:[^\"\\]|\\.)*\"|\\.", re.DOTALL)
_HERE = "\ue000"
"""Stands for the value of a variable while quotes are removed: the value itself is not split or unquoted."""


def text_of(node: Node) -> str:
    """The source text of a node."""
    return (node.text or b"").decode("utf-8", "surrogateescape")


def literal(node: Node, variables: Variables) -> str | None:
    """The value of a word, or None when it depends on what the shell would find (variables, substitutions).

    `variables` are those whose value is known (HOME). Globs and braces stay as they are written. `$'...'` counts as
    known only if it holds no escapes.
    """
    source, start, position = node.text or b"", node.start_byte, 0
    written, values = "", list[str]()
    for inner in _special(node):
        text = text_of(inner)
        written += source[position : inner.start_byte - start].decode("utf-8", "surrogateescape")
        position = inner.end_byte - start
        if inner.type == _ANSI and "\\" not in text:
            written += text[1:]
            continue
        value = variables.get(text.strip("${}")) if inner.type in _EXPANSIONS else None
        if value is None:
            return None
        written += _HERE
        values.append(value)
    written += source[position:].decode("utf-8", "surrogateescape")
    home = variables.get("HOME")
    if home is not None and (written == "~" or written.startswith("~/")):
        written, values = f"{_HERE}{written[1:]}", [home, *values]
    return _unquoted(written, values)


def _special(node: Node) -> Iterator[Node]:
    """Yield the outermost parts of a word whose value is not what is written, in order."""
    if node.type in _EXPANSIONS or node.type in _FOUND_BY_RUNNING or node.type == _ANSI:
        yield node
        return
    for child in node.children:
        yield from _special(child)


def _for_shlex(found: re.Match[str]) -> str:
    """Take out escapes that only bash knows: of line ends, and in double quotes of `$` and backticks."""
    if found[0].startswith('"'):
        return re.sub(r"\\([$`\n])|\\.", lambda one: (one[1] or one[0]).strip("\n"), found[0], flags=re.DOTALL)
    return found[0].removeprefix("\\\n")


def _unquoted(written: str, values: list[str]) -> str | None:
    try:
        words = shlex.split(_PIECES.sub(_for_shlex, written))
    except ValueError:
        return None
    parts = " ".join(words).split(_HERE)
    if len(parts) != len(values) + 1:
        return None
    return "".join(part + value for part, value in zip(parts, (*values, ""), strict=True))
