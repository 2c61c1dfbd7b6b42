"""A model in a loop says the same few characters until its limit of tokens: minutes for a small one (pure)."""

from __future__ import annotations

_LONGEST_PERIOD = 32
_REPEATS = 24
_LEAST = 320
TAIL = max(_LEAST, _LONGEST_PERIOD * _REPEATS)
"""Characters at the end of a text that are looked at."""


def runs_away(text: str) -> bool:
    """Whether a text ends with the same 1 to 32 characters over and over: at least 24 times and for 320 characters.

    A line of 80 hyphens, a list of a hundred zeros or the rows of a small grid are still what somebody may want.
    """
    for period in range(1, _LONGEST_PERIOD + 1):
        length = max(_LEAST, period * _REPEATS)
        tail = text[-length:]
        if len(tail) == length and tail[period:] == tail[:-period]:
            return True
    return False
