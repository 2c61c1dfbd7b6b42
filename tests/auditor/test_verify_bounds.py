"""Proving a long chain takes no more memory than proving a short one."""

from __future__ import annotations

import tracemalloc
from pathlib import Path

import pytest
from trails import only_part, proved, write_chain

from artoo.auditor.layout import audit_directory
from artoo.auditor.verify import verify


def _peak(home: Path, records: int) -> int:
    write_chain(home, records, batch=records)
    tracemalloc.start()
    try:
        assert proved(home).sound
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


def test_memory_does_not_grow_with_the_chain(tmp_path: Path) -> None:
    """Sixteen times the records take no more memory; every byte of the chain is told of as it is read."""
    _peak(tmp_path / "first", 100)  # what is imported and compiled is not counted
    short, long = _peak(tmp_path / "short", 500), _peak(tmp_path / "long", 8_000)
    assert long < 1.5 * short
    read: list[int] = []
    verify(audit_directory(tmp_path / "long"), tmp_path / "long" / "tasks", read.append)
    assert sum(read) == only_part(tmp_path / "long").stat().st_size


@pytest.mark.parametrize("number", [10**17, 2**40])
def test_a_number_far_away_is_no_work(tmp_path: Path, number: int) -> None:
    """A forged number is a finding; nobody counts up to it."""
    write_chain(tmp_path, 3, closed=False)
    path = only_part(tmp_path)
    lines = path.read_bytes().splitlines(keepends=True)
    lines[-1] = lines[-1].replace(b'{"n":4', b'{"n":%d' % number, 1).replace(b'{"n":3', b'{"n":%d' % number, 1)
    path.write_bytes(b"".join(lines))
    assert {problem.what for problem in proved(tmp_path).problems} >= {"changed"}
