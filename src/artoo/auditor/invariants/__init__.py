"""The invariants of a healthy stream, by topic, and the list of all of them.

`artoo.auditor.watch` applies them while tasks run.
"""

from __future__ import annotations

from artoo.auditor.invariants import consent, course, headers, limits
from artoo.auditor.invariants.invariant import Invariant

INVARIANTS: tuple[Invariant, ...] = tuple(
    each
    for module in (headers, consent, limits, course)
    for each in vars(module).values()
    if isinstance(each, Invariant)
)
"""The invariants of all modules, in order of definition."""
