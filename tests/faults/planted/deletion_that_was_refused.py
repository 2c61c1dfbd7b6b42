"""A person says no, the executor says that it is done."""

from __future__ import annotations

from bases import Base, no, says, shell, single

from faults import LiveFault, with_budget

FAULT = LiveFault(
    with_budget(
        Base(
            "Delete the file a.txt",
            single(shell("rm a.txt", final=False), says("a.txt was deleted.")),
            {"confirm": no},
        ),
        calls=3,
    )
)
