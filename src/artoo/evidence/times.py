"""Times of day, as 9:05 or 14:30: what follows from two of them, and how the other clock says one."""

from __future__ import annotations

import re
from collections.abc import Iterator
from decimal import Decimal
from itertools import combinations

from artoo.evidence.numerals import plain_digits

_TIME = re.compile(r"(?<![\d:.])([01]?\d|2[0-3]):([0-5]\d)(?![\d:])")
_MOST = 8
_HALF_DAY, _HOUR = 12 * 60, 60


def times_worked_out(answer: str, shown: str) -> Iterator[Decimal]:
    """Minutes between two times that the answer states, whole and as hours and minutes; the hours at which it
    states a time that was shown on the other clock (2:30 for 14:30). Of few times only.
    """
    known, said = _times(shown), _times(answer)
    for minutes in said:
        if minutes not in known and (minutes + _HALF_DAY) % (2 * _HALF_DAY) in known:
            yield Decimal(minutes // _HOUR)
    for one, other in combinations(said if len(said) <= _MOST else (), 2):
        yield from map(Decimal, (abs(one - other), *divmod(abs(one - other), _HOUR)))


def _times(text: str) -> list[int]:
    found = _TIME.findall(plain_digits(text))
    return list(dict.fromkeys(int(hours) * _HOUR + int(minutes) for hours, minutes in found))
