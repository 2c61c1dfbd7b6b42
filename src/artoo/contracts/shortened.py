"""Long texts in short places: cut between words, and seen to be cut."""

from __future__ import annotations

CUT = "…"


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


def _last_space(text: str) -> int:
    return max((place for place, each in enumerate(text) if each.isspace()), default=-1)
