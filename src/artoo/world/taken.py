"""The trunk of a view, when an act takes it with it: all that the trunk holds takes effect at once.

    VIEWS/TASK/layers/task ─► commit ─► UNDO/TASK/TIME-ID/layer ─► each file changes places with the one it replaces

What comes out of an exchange is the before-image and stays where it came out: no second rename, and no place of its
own. Taken back, the files change places again and the trunk goes to where it was, whenever a crash cuts it.
"""

from __future__ import annotations

import errno
import logging
import os
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path

from artoo.disk.whole import sync_directory
from artoo.world.files import Reach
from artoo.world.journal import Journal, Record, Step
from artoo.world.move import is_state
from artoo.world.nodes import glance
from artoo.world.remove import remove_tree
from artoo.world.view_place import TRUNK, Views

logger = logging.getLogger(__name__)


def take(record: Record, journal: Journal) -> None:
    """Brings the trunk into the record, if it is not there and nobody has removed or remade the view.

    Not of an act that is being taken back: the view has it again, or never lent it. Raises OSError.
    """
    if journal.taken is None or record.is_returning or record.layer.exists():
        return
    trunk = _trunk(record)
    with suppress(FileNotFoundError, NotADirectoryError):
        if trunk.lstat().st_ino == journal.taken:
            trunk.rename(record.layer)


def _trunk(record: Record) -> Path:
    """Where that of its view is, or was: it moves with artoo's home, as the record does."""
    artoo_home = record.place.parents[2]
    return Views(artoo_home).place(record.task_id).layer_home(TRUNK)


def directories(record: Record, journal: Journal) -> tuple[Path, ...]:
    """Those in which the trunk was and is: durable before the act is done."""
    return () if journal.taken is None else (_trunk(record).parent, record.place)


def give_back(record: Record, journal: Journal) -> None:
    """The view has its trunk again, of an act that was taken back. May be repeated. Raises OSError."""
    if journal.taken is None or not record.layer.exists():
        return
    _let_images_go(record, journal.steps)
    trunk = _trunk(record)
    try:
        record.layer.rename(trunk)
    except OSError as error:
        if error.errno not in (errno.ENOENT, errno.ENOTEMPTY, errno.EEXIST):
            raise
        logger.warning("%s is not taken back: somebody has removed the view of its task", trunk)
        remove_tree(record.layer)
        return
    for place in directories(record, journal):
        sync_directory(place)


def _let_images_go(record: Record, steps: Iterable[Step]) -> None:
    """What a path was before somebody else changed it is nothing that the task made."""
    with Reach() as reach:
        for step in steps:
            if (image := record.image(step)) is None or not step.swaps:
                continue
            with suppress(FileNotFoundError):
                directory, name = reach.beside(image)
                if is_state(glance(directory, name), step.before):
                    os.unlink(name, dir_fd=directory)


def tidy(record: Record, steps: Iterable[Step]) -> None:
    """Of an act that is done, the layer keeps the before-images alone: what took no effect goes, as with a view.

    What cannot go now goes with the record.
    """
    layer = os.fspath(record.layer)
    images = {image for step in steps if step.swaps and (image := record.image(step)) is not None}
    ways: set[str] = set()
    for image in images:
        above = image.rpartition("/")[0]
        while above not in ways and len(above) >= len(layer):
            ways.add(above)
            above = above.rpartition("/")[0]
    left = [layer]
    while left:
        here = left.pop()
        with suppress(OSError):
            if here in ways:
                left += (f"{here}/{name}" for name in os.listdir(here))
            elif here not in images:
                remove_tree(Path(here))


def bytes_kept(record: Record) -> int:
    """Bytes of all before-images of an act. Raises OSError."""
    total = record.images.bytes_kept()
    for _, _, names, directory in os.fwalk(record.layer) if record.layer.exists() else ():
        total += sum(os.lstat(name, dir_fd=directory).st_size for name in names)
    return total
