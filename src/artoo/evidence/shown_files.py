"""Find the files with contents that a model was shown before its first call, so that its answer may cite them."""

from __future__ import annotations

import posixpath
import re
from collections.abc import Iterable, Sequence

from artoo.contracts.execution import ToolCall
from artoo.evidence.grounding import own_words

# First words of the heading above a file's contents in the listing: `All of a.csv (columns: x, y):`.
_BEGINS = ("All", "First lines")


def by_file(heads: str) -> dict[str, str]:
    """Return the shown contents of each file, with the file's path as key."""
    parts, path = dict[str, list[str]](), ""
    for line in heads.split("\n"):
        kind, _, rest = line.partition(" of ")
        named = rest.removesuffix(":").partition(" (")[0] if kind in _BEGINS and rest.endswith(":") else ""
        path = named or path
        parts.setdefault(path, []).append(line)
    return {path: "\n".join(lines) for path, lines in parts.items()}


def beyond(listing: str, heads: str) -> str:
    """Return the parts of `heads` that a listing does not contain word for word."""
    return "\n".join(part for part in by_file(heads).values() if part not in listing)


def named_and_others(heads: str, texts: Iterable[str], calls: Sequence[ToolCall] = ()) -> tuple[str, str]:
    """Return the shown contents of the files that a text names or that a call read, and separately the shown
    contents of all other files.

    A figure may occur in an unnamed file by chance, because a project contains nearly every small number."""
    read = (call.target for call in calls if call.only_looked and not own_words(call))
    said = "\n".join((*texts, *read))
    named, others = list[str](), list[str]()
    for path, part in by_file(heads).items():
        (named if path and names_file(said, path) else others).append(part)
    return "\n".join(named), "\n".join(others)


def names_file(text: str, path: str) -> bool:
    """Return whether a file's name is a separate token in a text, with or without directories before it.

    Letters of scripts that are written without spaces may stand directly next to the name."""
    name = posixpath.basename(path)
    token = rf"(?<![\w.-]){re.escape(name)}(?![\w-]|/[\w.]|\.[A-Za-z0-9])"
    return bool(name) and re.search(token, text, re.ASCII) is not None
