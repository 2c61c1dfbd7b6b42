"""The executor says that it has written a file, and has only looked."""

from __future__ import annotations

from bases import Base, exists, says, shell, single
from planting import LiveFault, with_budget

FAULT = LiveFault(
    with_budget(
        Base(
            "Write the word hi to out.txt",
            single(shell("ls", final=False), says("I have written hi to out.txt."), criteria=[exists("out.txt")]),
        ),
        calls=3,
    )
)
