"""What a task was shown of the person's files. One that was saved afterwards, or of which only a part was shown, is
not replaced unread.

Until a task first changes a file, its view shows it as it is on the disk. A text that was made from an older state
would take the person's save away, and settling could not tell, for that save is then the base. A text that was made
from the first lines would take the rest away.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

_MOST = 2_000
"""Files that are remembered; the longest unseen go first."""
_SAVED = "was saved by somebody else after you saw it; read it again, and keep what is new"
_PART = (
    "is longer than what was shown of it; edit_file changes a part, read_file with lines shows the rest, and if "
    "nothing of it is to stay, remove it first"
)


class _State(NamedTuple):
    inode: int
    size: int
    modified_ns: int


class _Seen(NamedTuple):
    state: _State
    whole: bool


class LookedAt:
    """The person's files that one task's tools and prompts have shown, each as it was then."""

    def __init__(self) -> None:
        self._seen = OrderedDict[Path, _Seen]()

    def showing(self, real: Path, place: Path) -> Callable[[bool], None]:
        """The file is about to be read from `place`: its real path while the task has not changed it. What is
        returned notes that it was shown, given whether that is all that was wanted of it.

        Before its content is read: a save in between is then one too many that is seen, not one too few.
        """
        state = _state_of(place) if real == place else None

        def note(whole: bool) -> None:
            before = self._seen.get(real)
            if state is None or (before is not None and before.whole and not whole):
                return  # a few lines do not tell what else was saved
            self._seen[real] = _Seen(state, whole)
            self._seen.move_to_end(real)
            if len(self._seen) > _MOST:
                self._seen.popitem(last=False)

        return note

    def why_not_replaced(self, real: Path, place: Path | None) -> str:
        """What stands against replacing a file by a text that was not made from it as it is now; empty: nothing.

        Nothing does where it was never shown, or the task has changed it itself.
        """
        seen = self._seen.get(real)
        now = _state_of(real) if real == place else None
        if seen is None or now is None:
            return ""
        if now != seen.state:
            return _SAVED
        return "" if seen.whole else _PART


def _state_of(place: Path) -> _State | None:
    try:
        status = place.stat(follow_symlinks=False)
    except OSError:
        return None
    return _State(status.st_ino, status.st_size, status.st_mtime_ns)
