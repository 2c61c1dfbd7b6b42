"""Planted faults are seen, and good runs are left alone (the table: `python tests/conformance/table.py`)."""

from __future__ import annotations

import pytest
from bases import CLEAN
from planting import FileFault, LiveFault, Planted, good_run, planted, seen, watched

PLANTED = tuple(planted())
SEEN_LIVE = frozenset(
    {
        "accepted after abandoning",
        "applied without a review",
        "budget overshot",
        "cause comes later",
        "cause of another task",
        "cause of the wrong kind",
        "cause was never said",
        "consent to nothing",
        "cost understated",
        "criterion dropped",
        "criterion softened",
        "deleted without asking",
        "directive after the end",
        "discarded unasked",
        "done in spite of a no",
        "dropped plan",
        "dropped request",
        "dropped result",
        "dropped subtask",
        "dropped tool record",
        "ended before it was settled",
        "executor answers the gate",
        "executor judges itself",
        "executor makes a plan",
        "fan in directs the planner",
        "laws cut from a prompt",
        "nobody asked",
        "planner ends the task",
        "planner matches a subtask",
        "planner writes memory",
        "port refused a message",
        "prompt of another role",
        "replayed message",
        "result without a cause",
        "role card edited",
        "same id twice",
        "settled otherwise than told",
        "skipped fan in",
        "stuck on one call",
        "subscriber missed messages",
        "thrashing",
        "time runs backwards",
        "two endings",
        "validator left out",
        "work after a halt",
    }
)
"""Forged streams that break an invariant while the task runs. The others are seen by the proof."""


def who(one: Planted) -> str:
    """Which part has to see it."""
    match one.fault:
        case LiveFault():
            return "validator"
        case FileFault():
            return "verify"
        case _:
            return "live" if one.name in SEEN_LIVE else "proof"


def test_the_corpus_is_as_large_as_it_says() -> None:
    """At least 60 faults and 30 clean runs, each fault described."""
    assert len(PLANTED) >= 60 and len(CLEAN) >= 30
    assert all(one.what.endswith(".") for one in PLANTED)
    assert {one.name for one in PLANTED} >= SEEN_LIVE


@pytest.mark.unreplayable
@pytest.mark.parametrize("one", PLANTED, ids=lambda one: f"{one.name} ({who(one)})")
def test_a_planted_fault_is_seen(one: Planted) -> None:
    """By a validator, a live invariant, the proof by replay, or the verification of the files."""
    assert seen(one.fault).by == who(one)


@pytest.mark.unreplayable
@pytest.mark.parametrize("name", CLEAN)
def test_a_good_run_raises_no_alarm(name: str) -> None:
    """Whatever may happen in a healthy run, no invariant is broken."""
    assert [f"{finding.rule}: {finding.what}" for finding in watched(good_run(name).envelopes)] == []
