"""Attributes of a root that the file system of its layer cannot hold: missing there, nobody took them away.

LAYER/N/unheld    their names, a JSON list; not there where all are held
"""

from __future__ import annotations

import json
from collections.abc import Collection
from pathlib import Path

from pydantic import TypeAdapter, ValidationError

from artoo.contracts.errors import SandboxError
from artoo.disk.whole import write_whole
from artoo.world.nodes import NodeState

_NOTE = "unheld"
_NAMES = TypeAdapter(frozenset[str])


def note_unheld(upper: Path, names: Collection[str]) -> None:
    """Before the layer's directory has its name: without the note they would seem to be removed. Raises OSError
    (disk full)."""
    note = upper.with_name(_NOTE)
    if names:
        write_whole(note, json.dumps(sorted(names)).encode())
    else:
        note.unlink(missing_ok=True)


def unheld(upper: Path) -> frozenset[str]:
    """The names for one layer's root. Raises OSError, and SandboxError where the note is damaged."""
    note = upper.with_name(_NOTE)
    try:
        return _NAMES.validate_json(note.read_bytes())
    except FileNotFoundError:
        return frozenset()
    except ValidationError as error:
        raise SandboxError(f"{note} cannot be read: {error}; keep it and report this") from error


def with_unheld(state: NodeState, there: NodeState, names: Collection[str]) -> NodeState:
    """What a layer makes of its root, with what it could not hold of what is `there` below it."""
    if not names:
        return state
    missing = {name: value for name, value in there.xattrs if name in names}
    return state._replace(xattrs=tuple(sorted((missing | dict(state.xattrs)).items())))
