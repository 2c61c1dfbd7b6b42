"""A search finds nothing, the executor names a file; the judge sees the search's own record."""

from __future__ import annotations

from bases import Base, judged, says, single
from planting import LiveFault, with_budget

FAULT = LiveFault(
    with_budget(
        Base(
            "Which of the files here contains the text zebra?",
            single(
                {"tool": "search_text", "input": "zebra"},
                says("zebra.txt contains it."),
                criteria=["it names the files that contain the text"],
                ValidationReport=judged(("fail", "")),
            ),
        ),
        calls=4,
    )
)
