"""The executor states a number of lines and never calls a tool."""

from __future__ import annotations

from bases import Base, says, single
from planting import LiveFault, with_budget

FAULT = LiveFault(
    with_budget(
        Base("How many lines has a.txt?", single(says("a.txt has 2 lines."), says("2"))),
        calls=3,
    )
)
