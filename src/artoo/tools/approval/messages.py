"""The sentences of an approval question in the user's language, for commands, verbs and reasons.

The rules give the reasons in English, and this module translates them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

from artoo.contracts.settling import ClassifiedChange
from artoo.words.catalogue import in_language


def command_lines(text: str) -> Iterator[str]:
    """Yield the lines of a command as a terminal shows them, with `$` before the first line and the others
    indented."""
    first, *others = text.splitlines() or [""]
    yield f"$ {first}"
    yield from (f"  {line}" for line in others)


def word(text: str, language: str) -> str:
    """Translate `text` into the language, if there is a translation."""
    return in_language(language)(text)


def why(change: ClassifiedChange, language: str, shown: Callable[[str], str] = str) -> str:
    """Explain why a change needs approval. Return "" if it needs none. `shown` formats the new path of a moved
    file."""
    reason = word(change.reason, language)
    return reason if change.moved_to is None else f"{reason} {shown(change.moved_to)}"
