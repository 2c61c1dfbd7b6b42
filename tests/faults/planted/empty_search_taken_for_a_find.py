"""A search finds nothing, the executor names a file."""

from __future__ import annotations

from bases import Base, says, single

from faults import LiveFault, with_budget

FAULT = LiveFault(
    with_budget(
        Base(
            "Which of the files here contains the text zebra?",
            single({"tool": "find_text", "input": "zebra"}, says("zebra.txt contains it.")),
        ),
        calls=3,
    )
)
