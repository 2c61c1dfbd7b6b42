"""Planted faults are seen, and good runs are left alone (the table: `python tests/faults/table.py`)."""

from __future__ import annotations

import pytest
from bases import CLEAN
from planting import Planted, good_run, planted, seen, watched

PLANTED = tuple(planted())
UNSEEN = frozenset[str]()
"""Names of the faults that are known to go unseen."""


def test_the_corpus_is_as_large_as_it_says() -> None:
    """At least 60 faults and 30 clean runs, each fault described, at most one in twenty known to go unseen."""
    assert len(PLANTED) >= 60 and len(CLEAN) >= 30
    assert all(one.what.endswith(".") for one in PLANTED)
    assert {one.name for one in PLANTED} >= UNSEEN and len(UNSEEN) <= len(PLANTED) / 20


@pytest.mark.unreplayable
@pytest.mark.parametrize("one", PLANTED, ids=lambda one: one.name)
def test_a_planted_fault_is_seen(one: Planted) -> None:
    """By a validator, the Auditor, or the verification of the files."""
    assert bool(seen(one.fault).by) is (one.name not in UNSEEN)


@pytest.mark.unreplayable
@pytest.mark.parametrize("name", CLEAN)
def test_a_good_run_raises_no_alarm(name: str) -> None:
    """Whatever may happen in a healthy run, the Auditor has nothing to say about it."""
    assert [f"{finding.rule}: {finding.what}" for finding in watched(good_run(name).envelopes)] == []
