"""Search for many forms in one pass, made at the first text that is searched."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from ahocorasick_rs import BytesAhoCorasick

_FEW = 1000
"""Forms for which the quickest search is worth its making: with more it grows beyond a processor's cache."""


class Search:
    """A search for the places of any of `forms` (none of them empty)."""

    __slots__ = ("_forms", "_made")

    def __init__(self, forms: Sequence[bytes]) -> None:
        self._forms = forms
        self._made: BytesAhoCorasick | None = None

    def found(self, text: bytes) -> list[int]:
        """Return the numbers of those that occur, in order."""
        return sorted({number for number, _ in self.places(text)})

    def places(self, text: bytes) -> Iterator[tuple[int, int]]:
        """Return number and place of each that occurs, overlapping ones too."""
        if not self._forms:
            return
        if self._made is None:
            self._made = _made(self._forms)
        for number, place, _ in self._made.find_matches_as_indexes(text, overlapping=True):
            yield number, place


def _made(forms: Sequence[bytes]) -> BytesAhoCorasick:
    """Make the search. Imported here and not when a log is opened: it takes 2 ms."""
    from ahocorasick_rs import BytesAhoCorasick, Implementation

    kind = Implementation.DFA if len(forms) <= _FEW else Implementation.ContiguousNFA
    return BytesAhoCorasick(forms, implementation=kind)
