"""The tool prints 2, the executor says 7."""

from __future__ import annotations

from bases import Base, says, shell, single
from planting import LiveFault, with_budget

FAULT = LiveFault(
    with_budget(
        Base("How many lines has a.txt?", single(shell("wc -l < a.txt", final=False), says("a.txt has 7 lines."))),
        calls=3,
    )
)
