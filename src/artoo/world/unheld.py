"""Attributes of a root that the file system of its layer cannot hold: missing there, nobody took them away.

LAYER/N/unheld    their names, a JSON list; not there where all are held
"""

from __future__ import annotations

import json
from collections.abc import Collection
from pathlib import Path

from artoo.world.nodes import NodeState

_NOTE = "unheld"


def note_unheld(upper: Path, names: Collection[str]) -> None:
    """Raises OSError (disk full)."""
    if names:
        upper.with_name(_NOTE).write_text(json.dumps(sorted(names)), encoding="utf-8")


def unheld(upper: Path) -> frozenset[str]:
    """The names for one layer's root. Raises OSError."""
    try:
        return frozenset(json.loads(upper.with_name(_NOTE).read_bytes()))
    except FileNotFoundError:
        return frozenset()


def with_unheld(state: NodeState, there: NodeState, names: Collection[str]) -> NodeState:
    """What a layer makes of its root, with what it could not hold of what is `there` below it."""
    if not names:
        return state
    missing = {name: value for name, value in there.xattrs if name in names}
    return state._replace(xattrs=tuple(sorted((missing | dict(state.xattrs)).items())))
