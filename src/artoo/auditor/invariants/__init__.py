"""The invariants that hold on every healthy stream. `artoo.auditor.watch` applies them while tasks run."""

from __future__ import annotations

from artoo.auditor.invariants import consent, course, headers, limits
from artoo.auditor.invariants.invariant import Invariant

INVARIANTS: tuple[Invariant, ...] = (
    *headers.INVARIANTS,
    *consent.INVARIANTS,
    *limits.INVARIANTS,
    *course.INVARIANTS,
)
