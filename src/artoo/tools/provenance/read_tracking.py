"""Remember the files that a task was shown, and refuse to overwrite newer or partly read ones.

A file is not replaced if someone else saved it after it was shown, or if only a part of it was shown. Text that was
written from an older state would overwrite the user's save, and text that was written from the first lines would
delete the other lines.
"""

from __future__ import annotations

import os
from collections import OrderedDict
from collections.abc import Callable, Iterable
from itertools import islice
from pathlib import Path
from typing import NamedTuple

from artoo.contracts.changes import Change, path_bytes
from artoo.ports.workspace import Files, FileStat

_MOST = 2_000
"""Maximum number of files that are remembered. The file that was shown longest ago is forgotten first."""
_MOST_COMPARED = 300
"""Maximum number of files that are compared before a turn, because each comparison is a system call. The files that
were shown last are compared."""
_SAVED = "was saved by somebody else after you saw it; read it again, and keep what is new"
_PART = (
    "is longer than what was shown of it; edit_file changes a part, read_file with offset shows the rest, and if "
    "nothing of it is to stay, remove it first"
)


class _State(NamedTuple):
    inode: int
    size: int
    modified_ns: int


class _Seen(NamedTuple):
    state: _State
    whole: bool
    told: bool = False


class LookedAt:
    """The files that a task's tools and prompts have shown, each with its state at that time."""

    def __init__(self) -> None:
        self._seen = OrderedDict[Path, _Seen]()

    @property
    def empty(self) -> bool:
        """Check whether no file was shown."""
        return not self._seen

    def showing(self, real: Path, found: FileStat) -> Callable[[bool], None]:
        """Return a function that records that the file at a resolved path was shown. Its argument says whether the
        whole file was shown."""
        # The state is read before the content, so that a save between both is reported and not missed.
        state = _state_of(found)

        def note(whole: bool) -> None:
            before = self._seen.get(real)
            if before is not None and before.whole and not whole:
                # A partial read does not update the state, because it does not show everything that was saved.
                return
            self._seen[real] = _Seen(state, whole)
            self._seen.move_to_end(real)
            if len(self._seen) > _MOST:
                self._seen.popitem(last=False)

        return note

    def forget(self, changes: Iterable[Change]) -> None:
        """Forget the files that the task itself has changed."""
        for change in changes:
            self._seen.pop(Path(os.fsdecode(path_bytes(change.path))), None)

    def why_not_replaced(self, real: Path, found: FileStat | None) -> str:
        """Return the reason why a file may not be replaced because its current content was not shown. Return "" if
        it may be replaced."""
        seen = self._seen.get(real)
        if seen is None or found is None:
            return ""
        if _state_of(found) != seen.state:
            return _SAVED
        return "" if seen.whole else _PART

    def saved_since(self, files: Files) -> tuple[Path, ...]:
        """Return the files that someone else saved after they were shown. Each save is returned once. Blocking."""
        saved: list[Path] = []
        for real, seen in list(islice(reversed(self._seen.items()), _MOST_COMPARED)):
            if seen.told:
                continue
            found = files.stat(real)
            if found is None or _state_of(found) != seen.state:
                saved.append(real)
                self._seen[real] = seen._replace(told=True)
        return tuple(saved)


def _state_of(found: FileStat) -> _State:
    return _State(found.inode, found.size, found.mtime_ns)
