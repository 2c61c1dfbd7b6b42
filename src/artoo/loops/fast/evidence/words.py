"""Word lists written as text, which is how people read and extend them."""

from __future__ import annotations


def ordered(text: str) -> tuple[str, ...]:
    """The blank-separated words of a text, in order."""
    return tuple(text.split())


def words(text: str) -> frozenset[str]:
    """The blank-separated words of a text, as a set."""
    return frozenset(text.split())
