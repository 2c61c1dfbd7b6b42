"""A target is blocked on which nothing has failed."""

from __future__ import annotations

from planting import Stream, StreamFault, changed

from artoo.contracts.plan import MustNot, Plan


def plant(stream: Stream) -> None:
    blocked = (("shell", "/srv/data.csv"),)
    plan: Plan = stream.payload("Plan", 1)
    must_not: MustNot = changed(plan.must_not, targets=(*plan.must_not.targets, *blocked))
    stream.change("PlanDirective", blocked_targets=blocked)
    stream.change("Plan", 1, must_not=must_not)
    stream.change("SubTask", 1, must_not=must_not)


FAULT = StreamFault("a second plan", plant)
