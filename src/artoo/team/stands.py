"""What the board says of a task whose changes wait: how it stands, and whether anybody goes on with it."""

from __future__ import annotations

from dataclasses import replace

from artoo.contracts.agents import BoardState
from artoo.runtime.changes.pending_changes import Pending

UNKNOWN = "unknown"
"""How a task stands that the board does not have: its books are new, or an old copy."""

_FORSAKEN = (None, BoardState.FAILED, BoardState.CANCELLED)


def standing(one: Pending, state: BoardState | None) -> Pending:
    """The same with how its task stands on the board (None: it is not there), where it is the team's."""
    if not one.on_board:
        return one
    return replace(one, stands=UNKNOWN if state is None else state.value, forsaken=state in _FORSAKEN)
