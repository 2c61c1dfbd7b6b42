"""Planted faults are seen, and good runs are left alone (the table: `python tests/conformance/table.py`)."""

from __future__ import annotations

import pytest
from bases import CLEAN
from faults import FAULTS
from planting import FileFault, LiveFault, StreamFault, good_run, seen, watched


def who(name: str) -> str:
    """Return which part has to see a fault."""
    match FAULTS[name]:
        case LiveFault():
            return "validator"
        case FileFault():
            return "verify"
        case StreamFault(by=by):
            return by


@pytest.mark.parametrize("name", FAULTS, ids=lambda name: f"{name} ({who(name)})")
def test_a_planted_fault_is_seen(name: str) -> None:
    """By a validator, a live invariant, the proof by replay, or the verification of the files."""
    assert seen(FAULTS[name]).by == who(name)


@pytest.mark.parametrize("name", CLEAN)
def test_a_good_run_raises_no_alarm(name: str) -> None:
    """Whatever may happen in a healthy run, no invariant is broken."""
    assert [f"{finding.rule}: {finding.what}" for finding in watched(good_run(name).envelopes)] == []
