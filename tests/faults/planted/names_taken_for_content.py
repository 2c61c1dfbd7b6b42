"""A question about what files contain is answered with a list of names."""

from __future__ import annotations

from bases import Base, single

from faults import LiveFault, with_budget

FAULT = LiveFault(
    with_budget(
        Base(
            "Which of the files here contains the text ERROR?",
            single({"tool": "glob", "input": "*.txt", "is_final": True}),
        ),
        calls=2,
    )
)
