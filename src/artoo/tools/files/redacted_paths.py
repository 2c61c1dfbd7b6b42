"""What is told of a closed place instead of shown, by the class of the place: nobody looks at what stands there."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path

from artoo.contracts.changes import PathClass
from artoo.workspace.changes.path_class import Places

_CLOSED: Mapping[PathClass, str] = {
    PathClass.ARTOO: "artoo's own records, not shown",
    PathClass.SECRET: "in the closed part of the home, where credentials may be; not shown",
    PathClass.PERSISTENCE: "a start-up file or settings of a program, closed, not shown",
}


def withheld(real: Path, places: Places) -> str | None:
    """What is said of a real path in place of its content; None when that may be shown.

    A hidden file in a directory that is open, such as `~/.bashrc`, is the task's own writing if the user has none.
    """
    if not places.is_hidden(os.fsencode(real)):
        return None
    if not places.is_hidden(os.fsencode(real.parent)) and not os.path.lexists(real):
        return None
    return closed_as(places.classify(os.fsencode(real)))


def closed_as(path_class: PathClass) -> str:
    """What is said of a closed place of this class."""
    return _CLOSED.get(path_class, "in a closed place, not shown")
