"""Puts views that a crash may have left in the middle of something back to a command's boundary."""

from __future__ import annotations

import logging
from contextlib import suppress
from pathlib import Path

from artoo.contracts.errors import SandboxError
from artoo.world.joining import finish_join
from artoo.world.landing import finish_all
from artoo.world.opened import put_back
from artoo.world.remove import remove_tree
from artoo.world.view_place import TRUNK, ViewPlace, Views

logger = logging.getLogger(__name__)


def to_boundary(place: ViewPlace) -> None:
    """Finishes what has ended, drops what has not. To be called with the view's lock held.

    Raises SandboxError when there is no room; it can be repeated then.
    """
    put_back(place.base)
    finish_all(place)
    for layer in dict.fromkeys((TRUNK, *place.layer_names())):
        finish_join(place, layer)
        remove_tree(place.layer_home(layer) / "copy")  # only its own process knows what is in it


def views_to_boundary(artoo_home: Path) -> None:
    """All views that no process holds. One that has no room to be finished is left for later, and so is one whose
    place cannot be read, with a word: it concerns no other."""
    for place in Views(artoo_home).remembered():
        try:
            with suppress(SandboxError), place.locked():
                if place.exists:
                    to_boundary(place)
                else:  # cut while it was made, or while it was forgotten
                    remove_tree(place.base)
        except OSError as error:
            logger.warning("the view of task %s is left as it is: %s", place.task_id, error)
