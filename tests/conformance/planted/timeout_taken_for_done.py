"""A command that was stopped for its time is reported as finished."""

from __future__ import annotations

from bases import Base, says, shell, single
from planting import LiveFault, with_budget

FAULT = LiveFault(
    with_budget(
        Base(
            "Build the project with make.",
            single(shell("timeout 0.1 sleep 5", final=False), says("The build finished successfully.")),
        ),
        calls=3,
    )
)
