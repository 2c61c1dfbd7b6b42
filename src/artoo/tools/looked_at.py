"""What a task was shown of the person's files: one that is saved afterwards is not written over unread.

Until a task first changes a file, its view shows that file as it is on the disk. A text that was made from an older
state would take the person's save away, and settling could not tell, for that save is then the base.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

_MOST = 2_000
"""Files that are remembered; the longest unseen go first."""


class _State(NamedTuple):
    inode: int
    size: int
    modified_ns: int


class LookedAt:
    """The person's files that one task's tools and prompts have shown, each as it was then."""

    def __init__(self) -> None:
        self._states = OrderedDict[Path, _State]()

    def showing(self, real: Path, place: Path) -> Callable[[], None]:
        """The file is about to be read from `place`: its real path while the task has not changed it. What is
        returned notes that it was shown.

        Before its content is read: a save in between is then one too many that is seen, not one too few.
        """
        state = _state_of(place) if real == place else None

        def note() -> None:
            if state is not None:
                self._states[real] = state
                self._states.move_to_end(real)
                if len(self._states) > _MOST:
                    self._states.popitem(last=False)

        return note

    def saved_since(self, real: Path, place: Path | None) -> bool:
        """Whether somebody else changed it after it was last shown; false for what was never shown."""
        noted = self._states.get(real)
        return noted is not None and real == place and _state_of(real) not in (None, noted)


def _state_of(place: Path) -> _State | None:
    try:
        status = place.stat(follow_symlinks=False)
    except OSError:
        return None
    return _State(status.st_ino, status.st_size, status.st_mtime_ns)
