"""What takes effect unasked in a session, as modes that an editor shows: those of `artoo --apply`."""

from __future__ import annotations

from acp.schema import SessionMode, SessionModeState

from artoo.contracts.settling import ApplyMode

_SHOWN: dict[ApplyMode, tuple[str, str]] = {
    ApplyMode.NEW: ("New files", "New ordinary files take effect unasked; all else is asked about."),
    ApplyMode.EDITS: ("Edits", "Edits of the project's ordinary files take effect unasked too."),
    ApplyMode.LIVE: ("Live", "New ordinary files and edits take effect at the end of every turn."),
    ApplyMode.ASK: ("Ask", "Nothing takes effect unasked."),
}

OFFERED = frozenset(_SHOWN)
"""The modes that an editor can choose: `all` is not among them."""


def modes_of(current: ApplyMode) -> SessionModeState:
    """All of them, and which one holds."""
    return SessionModeState(
        current_mode_id=current.value,
        available_modes=[
            SessionMode(id=mode.value, name=name, description=description)
            for mode, (name, description) in _SHOWN.items()
        ],
    )
