"""Things of a layer whose owner's rights a command took away, opened for as long as artoo works with them.

LAYER/N/opened/INODE-MODE    the mode that it has again, noted beside `up` before it is opened

The modes are the task's work: a process that dies meanwhile leaves the notes, and who takes the view next puts the
modes back. A name says it all, so that nothing has to be synced where the file system keeps a journal: the note is
there if the change of mode is. By inode, because a thing may be moved while it is open.
"""

from __future__ import annotations

import errno
import os
import stat
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path

from artoo.world.nodes import at, open_directory

NOTES = "opened"
READ, WORK = 0o500, 0o700
_UPPERS = ("layers/*/*", "commands/*/*")


@contextmanager
def opened_up(
    directory: int, name: str, mode: int, notes: Path | None = None, rights: int = WORK
) -> Generator[int]:
    """A directory of ours, to be read, or changed too, even if a command took its owner's rights away.

    The mode comes back at the end. Without `notes` only then: of a layer that a crash leaves to nobody.
    """
    if mode & rights == rights or os.geteuid() == 0:
        descriptor = open_directory(directory, name)
        try:
            yield descriptor
        finally:
            os.close(descriptor)
        return
    with noted(at(directory, name), mode, notes):
        os.chmod(at(directory, name), mode | rights)
        try:
            descriptor = open_directory(directory, name)
        except OSError:
            os.chmod(at(directory, name), mode)
            raise
        try:
            yield descriptor
        finally:
            os.fchmod(descriptor, mode)  # by descriptor: it may have been moved meanwhile
            os.close(descriptor)


@contextmanager
def with_rights(place: str | bytes, mode: int, rights: int, notes: Path | None = None) -> Generator[None]:
    """The same of anything of ours that is no link and stays at its path."""
    with noted(place, mode, notes):
        try:
            os.chmod(place, mode | rights)
            yield
        finally:
            os.chmod(place, mode)


@contextmanager
def noted(place: str | bytes, mode: int, notes: Path | None) -> Generator[None]:
    """While it lasts, it is on disk that this has that mode. Raises OSError.

    On a full disk it is not: to see what fills it matters more.
    """
    note = None
    if notes is not None:
        note = notes / f"{os.lstat(place).st_ino}-{mode:o}"
        try:
            notes.mkdir(mode=0o700, exist_ok=True)
            note.touch()
        except OSError as error:
            if error.errno not in (errno.ENOSPC, errno.EDQUOT):
                raise
    try:
        yield
    finally:
        if note is not None:
            note.unlink(missing_ok=True)


def put_back(view: Path) -> None:
    """Gives what a process that died left open in the layers of a view its mode again. Raises OSError."""
    notes = [note for home in _UPPERS for note in view.glob(f"{home}/{NOTES}/*")]
    if not notes:
        return
    modes = {int(inode): int(mode, 8) for inode, _, mode in (note.name.partition("-") for note in notes)}
    for upper in (upper for home in _UPPERS for upper in view.glob(f"{home}/up")):
        below = (Path(place, name) for place, names, files in os.walk(upper) for name in (*names, *files))
        for path in reversed([upper, *below]):  # what is in a directory before that
            seen = path.lstat()
            mode = modes.get(seen.st_ino)
            if mode is not None and stat.S_IMODE(seen.st_mode) | WORK == mode | WORK:
                path.chmod(mode)
    for note in notes:
        note.unlink()
