"""The short view of a log: what matters, line by line, and one entry for each run of what does not."""

from __future__ import annotations

from itertools import groupby

from hypothesis import given
from hypothesis import strategies as st

from artoo.web.index import Fold, ShortView


def plainly(quiet: list[bool]) -> list[Fold]:
    """The same, worked out from all lines at once."""
    found: list[Fold] = []
    line = 0
    for silent, run in groupby(quiet):
        count = len(list(run))
        found += [Fold(line, count)] if silent else [Fold(line + n, 0) for n in range(count)]
        line += count
    return found


@given(
    runs=st.lists(st.tuples(st.booleans(), st.integers(1, 400)), max_size=8),
    first=st.integers(0, 900),
    count=st.integers(0, 300),
)
def test_any_part_of_any_view(runs: list[tuple[bool, int]], first: int, count: int) -> None:
    """Its entries are those that all lines together make, wherever one looks, also while it grows."""
    view, quiet = ShortView(), list[bool]()
    for silent, times in runs:
        for _ in range(times):
            view.add(quiet=silent)
            quiet.append(silent)
        assert view.count == len(plainly(quiet))
    assert view.entries(first, count) == plainly(quiet)[first : first + count]
