"""Keeps what a consented change of history loses, for as long as it can be undone.

REPOSITORY/refs/artoo/TASK/OBJECT   a name for a commit or tag that would have none: what has a name git keeps

The names are part of the act that is applied: undo removes them with it, and so does forgetting the undo.
"""

from __future__ import annotations

import logging
import os
import re
from collections.abc import Collection, Iterable, Sequence
from contextlib import suppress
from pathlib import Path

from artoo.contracts.changes import printable_path
from artoo.world.difference import Difference
from artoo.world.git_layout import read_file
from artoo.world.git_shadow import CannotJudge, Shadow
from artoo.world.journal import record_bytes
from artoo.world.remove import remove_tree
from artoo.world.scan import Effect, scan
from artoo.world.stage import Layer
from artoo.world.view_place import ViewPlace

logger = logging.getLogger(__name__)

KEPT = "refs/artoo"
_MOST = 10_000


def keeping_refs(
    place: ViewPlace, artoo_home: Path, difference: Difference, chosen: Collection[Effect]
) -> list[Effect]:
    """The effects that make the names, for repositories of which something chosen is lost. Raises OSError."""
    staging = place.base / "keep"
    remove_tree(staging)
    effects: list[Effect] = []
    paths = {effect.path for effect in chosen}
    for number, (repository, lost) in enumerate(difference.lost.items()):
        prefix = os.fsencode(repository) + b"/"
        layer = next((one.layer for one in chosen if one.path.startswith(prefix)), None)
        if layer is None or not lost.tips or not (repository / "refs").is_dir():
            continue
        upper = staging / str(number)
        _lay_down(upper / repository.relative_to(layer.root) / KEPT / _name(place.task_id), lost.tips[:_MOST])
        effects += [
            effect
            for effect in scan((Layer(layer.root, upper, upper),), _MOST + 100)
            if effect.before is None and effect.path not in paths
        ]
    return effects


def is_kept_name(path: str) -> bool:
    """Whether a path of an act is one of these names, or a directory of them."""
    return f"/{KEPT}/" in path or path.endswith(f"/{KEPT}")


def forget_names(paths: Iterable[str]) -> None:
    """Removes the names at these paths (printable), packed ones too. What git refuses stays, and is logged."""
    for path in paths:
        repository, found, rest = path.partition(f"/{KEPT}/")
        if not found or "/" not in rest:
            continue
        place = Path(record_bytes(repository))
        with suppress(FileNotFoundError, NotADirectoryError, IsADirectoryError):
            (place / KEPT / rest).unlink()
        name = f"{KEPT}/{rest}"
        if name.encode() in (read_file(place / "packed-refs") or b""):
            _remove_packed(place, name)


def _remove_packed(repository: Path, name: str) -> None:
    worktree = repository.parent if repository.name == ".git" else repository
    try:
        Shadow(repository, (str(worktree),)).git(
            "-c", "core.hooksPath=/dev/null", "update-ref", "--no-deref", "-d", name
        )
    except CannotJudge as error:
        logger.warning("%s in %s could not be removed: %s", name, repository, error)


def _lay_down(directory: Path, tips: Sequence[str]) -> None:
    directory.mkdir(parents=True)
    for tip in tips:
        (directory / tip).write_text(f"{tip}\n", encoding="ascii")


def _name(task_id: str) -> str:
    """A task's id as git takes it in a name."""
    return re.sub(r"[^A-Za-z0-9-]", "-", printable_path(os.fsencode(task_id)))
