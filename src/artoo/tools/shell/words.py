"""The value of a shell word where it can be known without running anything."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tree_sitter import Node

Variables = Mapping[str, str]

_SIMPLE_ESCAPES = {"n": "\n", "t": "\t", "r": "\r", "\\": "\\", "'": "'", '"': '"', "e": "\x1b", "a": "\a"}
_QUOTED_ESCAPES = frozenset('"\\$`\n')


def text_of(node: Node) -> str:
    """The source text of a node."""
    return (node.text or b"").decode("utf-8", "surrogateescape")


def literal(node: Node, variables: Variables) -> str | None:
    """The value of a word, or None when it depends on what the shell would find (variables, substitutions).

    `variables` are those whose value is known (HOME). Globs and braces stay as they are written.
    """
    match node.type:
        case "word" | "number" | "variable_name":
            return _bare(text_of(node), variables)
        case "raw_string":
            return text_of(node)[1:-1]
        case "string":
            return _quoted(node, variables)
        case "ansi_c_string":
            return _ansi(text_of(node)[2:-1])
        case "simple_expansion" | "expansion":
            return variables.get(text_of(node).strip("${}"))
        case "concatenation":
            return _joined([literal(child, variables) for child in node.children])
        case "command_name":
            return literal(node.children[0], variables) if node.children else None
        case "{" | "}" | "," | ".." | "=":
            return text_of(node)
        case _:
            return None


def _joined(parts: list[str | None]) -> str | None:
    known = [part for part in parts if part is not None]
    return "".join(known) if len(known) == len(parts) else None


def _bare(text: str, variables: Variables) -> str:
    """An unquoted word: backslashes escape the next character, a leading `~` is the home directory."""
    home = variables.get("HOME")
    if home is not None and (text == "~" or text.startswith("~/")):
        text = home + text[1:]
    return _unescape(text, None)


def _unescape(text: str, only: frozenset[str] | None) -> str:
    """Drops backslashes (before the characters in `only`, when given); an escaped newline is nothing."""
    if "\\" not in text:
        return text
    result: list[str] = []
    characters = iter(text)
    for character in characters:
        if character != "\\":
            result.append(character)
            continue
        following = next(characters, "")
        if only is not None and following not in only:
            result.append("\\")
        if following != "\n":
            result.append(following)
    return "".join(result)


def _quoted(node: Node, variables: Variables) -> str | None:
    """A double-quoted string: the parts between its expansions are taken from the source, blanks and all."""
    source = node.text or b""
    start = node.start_byte
    position, end = start + 1, node.end_byte - 1
    parts: list[str | None] = []

    def plain(until: int) -> str:
        piece = source[position - start : until - start]
        return _unescape(piece.decode("utf-8", "surrogateescape"), _QUOTED_ESCAPES)

    for child in node.named_children:
        if child.type == "string_content":
            continue
        parts += [plain(child.start_byte), literal(child, variables)]
        position = child.end_byte
    parts.append(plain(end))
    return _joined(parts)


def _ansi(body: str) -> str | None:
    """The value of `$'...'` with simple escapes only."""
    result: list[str] = []
    characters = iter(body)
    for character in characters:
        if character != "\\":
            result.append(character)
            continue
        value = _SIMPLE_ESCAPES.get(next(characters, ""))
        if value is None:
            return None
        result.append(value)
    return "".join(result)
