"""Remembers the sessions that editors have begun and the mode of each, so that both outlive this process.

A session without an exchange is in no other file, and a mode that is forgotten would let files take effect unasked.
"""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path

from artoo.contracts.settling import ApplyMode
from artoo.disk.whole import write_whole

MOST = 500
"""Sessions that are remembered, the latest; older ones are found by their exchanges and begin in `ask`."""
_FOLDER = "acp-sessions"


def remember(home: Path, name: str, mode: ApplyMode) -> None:
    """Note the mode of a session. In a home that cannot be written it lasts as long as the process. Blocking."""
    folder = home / _FOLDER
    with suppress(OSError):
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        write_whole(folder / name, mode.value.encode(), sync=False)
        by_age = sorted(folder.iterdir(), key=lambda path: path.stat().st_mtime_ns)
        for path in by_age[:-MOST]:
            path.unlink(missing_ok=True)


def mode_of(home: Path, name: str) -> ApplyMode | None:
    """Return the mode of a session that an editor has begun; None if none is known. Blocking."""
    try:
        return ApplyMode((home / _FOLDER / Path(name).name).read_text(encoding="utf-8"))
    except (OSError, ValueError):  # not there, or nothing that artoo wrote
        return None
