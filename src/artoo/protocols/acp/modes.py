"""The modes of an editor's session, which are those of `--apply`, and their stored choice."""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path

from acp.schema import SessionMode, SessionModeState

from artoo.contracts.settling import ApplyMode
from artoo.disk.whole import write_whole

_SHOWN: dict[ApplyMode, tuple[str, str]] = {
    ApplyMode.NEW: ("New files", "New ordinary files take effect unasked; all else is asked about."),
    ApplyMode.EDITS: ("Edits", "Edits of the project's ordinary files take effect unasked too."),
    ApplyMode.LIVE: ("Live", "New ordinary files and edits take effect at the end of every turn."),
    ApplyMode.ASK: ("Ask", "Nothing takes effect unasked."),
}

OFFERED = frozenset(_SHOWN)
"""The modes that an editor can choose. `all` is not one of them."""


def modes_of(current: ApplyMode) -> SessionModeState:
    """Return all modes, and the current one."""
    return SessionModeState(
        current_mode_id=current.value,
        available_modes=[
            SessionMode(id=mode.value, name=name, description=description)
            for mode, (name, description) in _SHOWN.items()
        ],
    )


MOST = 500
"""Maximum number of sessions whose mode is stored. Older sessions can still be loaded, and begin with the mode
`ask`."""
_FOLDER = "acp-sessions"


def remember(home: Path, name: str, mode: ApplyMode) -> None:
    """Store the mode of a session. If the home cannot be written, the mode lasts as long as the process.
    Blocking."""
    folder = home / _FOLDER
    with suppress(OSError):
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        write_whole(folder / name, mode.value.encode(), sync=False)
        by_age = sorted(folder.iterdir(), key=lambda path: path.stat().st_mtime_ns)
        for path in by_age[:-MOST]:
            path.unlink(missing_ok=True)


def mode_of(home: Path, name: str) -> ApplyMode | None:
    """Return the mode of a session that an editor has opened. Return None if it is not known. Blocking."""
    try:
        return ApplyMode((home / _FOLDER / Path(name).name).read_text(encoding="utf-8"))
    except (OSError, ValueError):
        # the file is missing, or artoo did not write it
        return None
