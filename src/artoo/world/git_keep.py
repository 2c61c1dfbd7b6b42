"""Keeps what a consented change of history loses, and what an undo brings back without its names, as long as the
change can be undone.

REPOSITORY/refs/artoo/TASK/OBJECT   a name for a commit or tag that would have none: what has a name git keeps

The names are part of the act: undo removes them with it, and so does forgetting the undo.
"""

from __future__ import annotations

import logging
import os
import re
import tempfile
from collections.abc import Collection, Iterable, Sequence
from contextlib import suppress
from pathlib import Path

from artoo.contracts.changes import printable_path
from artoo.world.difference import Difference
from artoo.world.git_layout import read_file
from artoo.world.git_shadow import CannotJudge, Shadow, shadow_of
from artoo.world.journal import record_bytes
from artoo.world.remove import remove_tree
from artoo.world.scan import Effect, scan
from artoo.world.stage import Layer
from artoo.world.union import RealFiles
from artoo.world.view_place import ViewPlace

logger = logging.getLogger(__name__)

KEPT = "refs/artoo"
_OBJECT = re.compile(rb"\b(?:[0-9a-f]{40}|[0-9a-f]{64})\b")
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
        lay_down(names_place(upper / repository.relative_to(layer.root), place.task_id), lost.tips[:_MOST])
        effects += [
            effect
            for effect in scan((Layer(layer.root, upper, upper),), _MOST + 100)
            if effect.before is None and effect.path not in paths
        ]
    return effects


def names_place(repository: Path, task_id: str) -> Path:
    """The directory of a task's names."""
    return repository / KEPT / _name(task_id)


def unnamed(repository: Path, told: Iterable[bytes]) -> list[str]:
    """What files of names and reflogs told of, if it is there and nothing names it. Raises CannotJudge, OSError."""
    oids = dict.fromkeys(oid.decode() for content in told for oid in _OBJECT.findall(content))
    if not oids:
        return []
    with tempfile.TemporaryDirectory(prefix="artoo-git-") as scratch:
        shadow = shadow_of(repository, RealFiles(), Path(scratch) / "now")
        commits, tags = shadow.commits(oids), shadow.tags(oids)
        without = {*shadow.beyond(commits, logs=True), *(set(tags) - set(shadow.refs().values()))}
    return [oid for oid in oids if oid in without][:_MOST]


def loose_names(place: Path) -> list[str]:
    """The paths (printable) of a task's names that git has not packed. Raises OSError."""
    return [printable_path(os.fsencode(name)) for name in sorted(place.iterdir())] if place.is_dir() else []


def is_kept_name(path: str) -> bool:
    """Whether a path of an act is one of these names, or a directory of them."""
    return f"/{KEPT}/" in path or path.endswith(f"/{KEPT}")


def forget_names(paths: Iterable[str]) -> None:
    """Removes the names at these paths (printable), packed ones too. What git or the system refuses stays, and is
    logged: that is no reason to keep an act for ever."""
    for path in paths:
        repository, found, rest = path.partition(f"/{KEPT}/")
        if not found or "/" not in rest:
            continue
        place = Path(record_bytes(repository))
        name = f"{KEPT}/{rest}"
        try:
            (place / name).unlink()
        except (FileNotFoundError, NotADirectoryError, IsADirectoryError):
            pass
        except OSError as error:
            logger.warning("%s in %s could not be removed: %s", name, place, error)
        if name.encode() in (read_file(place / "packed-refs") or b""):
            _remove_packed(place, name)


def forget_directory(printable: str, owned: Collection[str]) -> None:
    """Removes all names in one of a task's directories, but those that records own."""
    place = Path(record_bytes(printable))
    repository = place.parents[2]
    start = f"{KEPT}/{place.name}/"
    listed = (line.partition(b" ")[2] for line in (read_file(repository / "packed-refs") or b"").splitlines())
    packed = [
        printable_path(os.fsencode(repository) + b"/" + one) for one in listed if one.startswith(start.encode())
    ]
    with suppress(OSError):  # what is there is removed as far as it can be
        packed += loose_names(place)
    forget_names(path for path in dict.fromkeys(packed) if path not in owned)
    for directory in (place, place.parent):
        with suppress(OSError):  # it holds more
            directory.rmdir()


def _remove_packed(repository: Path, name: str) -> None:
    worktree = repository.parent if repository.name == ".git" else repository
    try:
        Shadow(repository, (str(worktree),)).git(
            "-c", "core.hooksPath=/dev/null", "update-ref", "--no-deref", "-d", name
        )
    except CannotJudge as error:
        logger.warning("%s in %s could not be removed: %s", name, repository, error)


def lay_down(directory: Path, tips: Sequence[str]) -> None:
    """Makes names. Raises OSError."""
    directory.mkdir(parents=True, exist_ok=True)
    for tip in tips:
        (directory / tip).write_text(f"{tip}\n", encoding="ascii")


def _name(task_id: str) -> str:
    """A task's id as git takes it in a name."""
    return re.sub(r"[^A-Za-z0-9-]", "-", printable_path(os.fsencode(task_id)))
