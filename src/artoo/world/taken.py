"""The trunk of a view, when an act takes it with it: all that the trunk holds takes effect at once.

    VIEWS/TASK/layers/task ─► commit ─► UNDO/TASK/TIME-ID/layer ─► each file changes places with the one it replaces

What comes out of an exchange is the before-image and stays where it came out: no second rename, and no place of its
own. Taken back, the files change places again and the trunk goes to where it was. The journal says where that is,
whenever a crash cuts it.
"""

from __future__ import annotations

import errno
import logging
import os
from collections.abc import Iterable, Sequence
from contextlib import suppress
from pathlib import Path

from artoo.disk.whole import sync_directory
from artoo.world.files import Reach
from artoo.world.journal import Journal, Record, Step, record_bytes
from artoo.world.move import is_state
from artoo.world.nodes import glance
from artoo.world.remove import remove_tree

logger = logging.getLogger(__name__)


def take(record: Record, journal: Journal) -> None:
    """Brings the trunk into the record, if it is not there and nobody has removed the view. Raises OSError."""
    if journal.taken is not None and not record.layer.exists():
        with suppress(FileNotFoundError):
            os.rename(record_bytes(journal.taken), record.layer)


def directories(record: Record, journal: Journal) -> tuple[Path, ...]:
    """Those in which the trunk was and is: durable before the act is done."""
    return () if journal.taken is None else (Path(record_bytes(journal.taken)).parent, record.place)


def give_back(record: Record, journal: Journal) -> None:
    """The view has its trunk again, of an act that was taken back. May be repeated. Raises OSError."""
    if journal.taken is None or not record.layer.exists():
        return
    _let_images_go(journal.steps)
    trunk = Path(record_bytes(journal.taken))
    try:
        os.rename(record.layer, trunk)
    except OSError as error:
        if error.errno not in (errno.ENOENT, errno.ENOTEMPTY, errno.EEXIST):
            raise
        logger.warning("%s is not taken back: somebody has removed the view of its task", trunk)
        remove_tree(record.layer)
        return
    for place in directories(record, journal):
        sync_directory(place)


def _let_images_go(steps: Iterable[Step]) -> None:
    """What a path was before somebody else changed it is nothing that the task made."""
    with Reach() as reach:
        for step in steps:
            if not step.swaps or step.source is None:
                continue
            with suppress(FileNotFoundError):
                directory, name = reach.beside(record_bytes(step.source))
                if is_state(glance(directory, name), step.before):
                    os.unlink(name, dir_fd=directory)


def tidy(record: Record, steps: Sequence[Step]) -> None:
    """Of an act that is done, the layer keeps the before-images alone: what took no effect goes, as with a view.

    What cannot go (a directory that the task closed) goes with the record.
    """
    images = {record_bytes(step.source) for step in steps if step.swaps and step.source is not None}
    for directory, _, names in os.walk(record.layer, topdown=False):
        with suppress(OSError):
            for path in (f"{directory}/{name}" for name in names):
                if path not in images:
                    os.unlink(path)
            os.rmdir(directory)


def bytes_kept(record: Record) -> int:
    """Bytes of all before-images of an act. Raises OSError."""
    swapped = (f"{directory}/{name}" for directory, _, names in os.walk(record.layer) for name in names)
    return record.images.bytes_kept() + sum(os.lstat(path).st_size for path in swapped)
