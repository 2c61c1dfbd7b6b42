"""A sum without a program that adds."""

from __future__ import annotations

from bases import Base, read, says, single
from planting import LiveFault, with_budget

FAULT = LiveFault(
    with_budget(
        Base(
            "What is the sum of the numbers in numbers.txt?",
            single(read("numbers.txt", final=False), says("The sum is 43.")),
        ),
        calls=3,
    )
)
