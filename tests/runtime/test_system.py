from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from itertools import pairwise
from uuid import UUID

from artoo.ports.ids import Ids
from artoo.runtime.app.system import UuidIds


def test_ids_are_sorted_and_unique():
    """UUIDv7 in canonical form, strictly increasing within the process, unique across threads."""
    ids: Ids = UuidIds()
    made = [ids.new() for _ in range(50_000)]
    assert all(one < other for one, other in pairwise(made))
    assert UUID(made[0]).version == 7
    assert len(made[0]) == 36

    def some(count: int) -> list[str]:
        return [ids.new() for _ in range(count)]

    with ThreadPoolExecutor(4) as threads:
        parts = list(threads.map(some, [5_000] * 4))
    assert len({one for part in parts for one in part}) == 20_000
