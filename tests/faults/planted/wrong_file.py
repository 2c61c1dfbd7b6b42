"""The answer comes from another file than the request names."""

from __future__ import annotations

from bases import Base, shell, single

from faults import LiveFault, with_budget

FAULT = LiveFault(with_budget(Base("How many lines has a.txt?", single(shell("wc -l < b.txt"))), calls=2))
