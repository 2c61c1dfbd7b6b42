"""A move fails, a listing afterwards is offered as proof."""

from __future__ import annotations

from bases import Base, says, shell, single
from planting import LiveFault, with_budget

FAULT = LiveFault(
    with_budget(
        Base(
            "Rename a.txt to c.txt",
            single(
                shell("mv a.txt /nonexistent/c.txt", final=False),
                shell("ls", final=False),
                says("a.txt was renamed to c.txt."),
            ),
        ),
        calls=4,
    )
)
