"""Long texts in short places: cut between words, and seen to be cut."""

from __future__ import annotations

CUT = "…"
_LEAST_LEFT_OUT = 200
"""Fewer characters are not worth the line that says so, and what stood there would be asked for."""


def shortened(text: str, limit: int) -> str:
    """The beginning of a text in at most `limit` characters; what is longer ends at a word, with `…`.

    A single word that is longer than that (a path, a line of Chinese) is cut where the room ends.
    """
    if len(text) <= limit:
        return text
    kept = text[: limit - len(CUT)]
    whole = kept if text[len(kept)].isspace() else kept[: _last_space(kept) + 1]
    return f"{(whole.rstrip() or kept)}{CUT}"


def last_part(text: str, limit: int) -> str:
    """The end of a text in at most `limit` characters, begun at a word: programs say last what went wrong."""
    if len(text) <= limit:
        return text
    kept = text[len(CUT) - limit :]
    pieces = kept.split(maxsplit=1)
    begins_a_word = kept[:1].isspace() or text[-len(kept) - 1].isspace()
    whole = kept if begins_a_word or len(pieces) < 2 else pieces[1]
    return f"{CUT}{whole.lstrip()}"


def without_middle(text: str, limit: int) -> str:
    """The beginning and the end of a text in about `limit` characters, cut between lines where there are such.

    A line between them says how many characters are left out; a text that is only a little longer stays whole.
    """
    if len(text) <= limit + _LEAST_LEFT_OUT:
        return text
    half = limit // 2
    head, tail = text[:half], text[len(text) - half :]
    line_end, line_start = head.rfind("\n"), tail.find("\n")
    if line_end > half // 2:
        head = head[:line_end]
    if 0 <= line_start < half // 2:
        tail = tail[line_start + 1 :]
    return f"{head}\n[… {len(text) - len(head) - len(tail)} characters left out …]\n{tail}"


def _last_space(text: str) -> int:
    return max((place for place, each in enumerate(text) if each.isspace()), default=-1)
