"""The judge passes a claim with a quote that stands in no evidence."""

from __future__ import annotations

from bases import Base, judged, read, says, single
from planting import LiveFault, with_budget

FAULT = LiveFault(
    with_budget(
        Base(
            "Which words stand in a.txt? Answer with a short sentence.",
            single(
                read("a.txt", final=False),
                says("The words are red and green."),
                criteria=["the sentence names the words"],
                ValidationReport=judged(("pass", "red and green")),
            ),
        ),
        calls=4,
    )
)
