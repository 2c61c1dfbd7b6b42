"""Complete a chosen part of a change set with the paths that it needs."""

from __future__ import annotations

import os
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass

from artoo.contracts.changes import path_bytes
from artoo.contracts.errors import SandboxError
from artoo.contracts.settling import ChangeClass, ClassifiedChange
from artoo.workspace import git
from artoo.workspace.changes.change_set import ChangeSet
from artoo.workspace.changes.effect import Effect
from artoo.workspace.directory import WorkspaceDirectory
from artoo.workspace.git.act import GitAct

_ORDINARY = frozenset({ChangeClass.SILENT, ChangeClass.EDIT})


def named(directory: WorkspaceDirectory, paths: Collection[str]) -> tuple[str, ...]:
    """Convert paths to the absolute form of change sets. Relative paths start in the project of the task.

    Raises SandboxError if `paths` is empty. Also raises it for the project or a parent of it, because a user who
    chooses a part has not approved everything.
    """
    if not paths:
        raise SandboxError("no path is chosen; name some, or none at all for everything")
    project = directory.record().project
    found: list[str] = []
    for path in paths:
        absolute = path if path.startswith("/") else f"{project}/{path}"
        found.append(os.path.normpath(f"/{absolute.lstrip('/')}"))
        if not path or f"{project}/".startswith(f"{found[-1].rstrip('/')}/"):
            raise SandboxError(
                f"{path!r} is no path of what the task would change: name some of it, or nothing for all"
            )
    return tuple(found)


@dataclass(frozen=True, slots=True)
class ChosenPart:
    """A part of a change set that is applied together: its file effects, its git acts, and the printable paths of
    both."""

    effects: tuple[Effect, ...]
    acts: tuple[GitAct, ...]
    paths: tuple[str, ...]


def part_of(change_set: ChangeSet, paths: Collection[str] | None) -> ChosenPart:
    """Return the changes at these printable paths (None: at all), together with all changes that they depend on.

    A directory stands for all paths in it. A new path needs its parent directories. A directory is removed only
    with all its entries. A moved file is removed only together with its new path. A commit needs the files of the
    checkout. Raises SandboxError for a path that is not in the change set. Also raises it if a needed path must be
    approved by name and is not among `paths`.
    """
    effects = change_set.effects
    files = {effect.path: effect for effect in effects}
    wanted, of_git = (set[bytes](), None) if paths is None else _named(change_set, files, paths)
    acts, going, shown = git.acts(change_set.git, of_git)
    if paths is not None:
        wanted |= going & files.keys()
        complete = _with_needs(files, wanted, _moves(change_set.classes))
        _require_named(change_set, complete - wanted)
        effects = tuple(effect for effect in effects if effect.path in complete)
    return ChosenPart(effects, acts, (*(effect.shown for effect in effects), *sorted(shown)))


def _named(
    change_set: ChangeSet, files: Collection[bytes], paths: Collection[str]
) -> tuple[set[bytes], frozenset[str]]:
    """Return the file effects, and git's changes, at or below these paths. Raises SandboxError."""
    git_paths = {path_bytes(change.path): change.path for change in change_set.git.classes}
    wanted: set[bytes] = set()
    of_git: set[str] = set()
    for path in paths:
        raw = path_bytes(path)
        chosen = {one for one in files if one == raw or one.startswith(raw + b"/")}
        by_git = {shown for one, shown in git_paths.items() if one == raw or one.startswith(raw + b"/")}
        if not chosen and not by_git:
            raise SandboxError(f"{path} is not among what the task would change; `artoo diff` lists it")
        wanted |= chosen
        of_git |= by_git
    return wanted, frozenset(of_git)


def _require_named(change_set: ChangeSet, needed: Collection[bytes]) -> None:
    """Raise SandboxError if a needed change is not an ordinary one and the user has not named it.

    A new parent directory counts as named if a path in it is named.
    """
    both = zip(change_set.effects, change_set.classes, strict=True)
    dragged = [
        one.path
        for effect, one in both
        if effect.path in needed and one.change_class not in _ORDINARY and not _is_new_directory(effect)
    ]
    if dragged:
        raise SandboxError(f"this cannot be applied without {', '.join(dragged[:5])}: name that too")


def _is_new_directory(effect: Effect) -> bool:
    return effect.before is None and effect.makes_directory


def ordinary_part(change_set: ChangeSet) -> tuple[str, ...]:
    """Return the printable paths that `--apply live` applies. These are silent changes and edits.

    All other changes, changes that depend on them, and all changes made with git are applied only at the end.
    """
    if change_set.flood is not None:
        return ()
    files = {effect.path: effect for effect in change_set.effects}
    ordinary = {path_bytes(one.path) for one in change_set.classes if one.change_class in _ORDINARY}
    moves = _moves(change_set.classes)
    return tuple(
        effect.shown
        for path, effect in files.items()
        if path in ordinary and _with_needs(files, {path}, moves) <= ordinary
    )


def _moves(classes: Sequence[ClassifiedChange]) -> Mapping[bytes, bytes]:
    return {path_bytes(one.path): path_bytes(one.moved_to) for one in classes if one.moved_to}


def _with_needs(
    files: Mapping[bytes, Effect], wanted: Collection[bytes], moves: Mapping[bytes, bytes]
) -> frozenset[bytes]:
    """Return the paths, and all paths that they need directly or indirectly."""
    found: set[bytes] = set()
    left = set(wanted)
    while left:
        found |= left
        needed = {other for path in left for other in _needed(files, path)}
        needed |= {moves[path] for path in left if path in moves and moves[path] in files}
        # This is repeated, because a needed path may itself need other paths.
        left = needed - found
    return frozenset(found)


def _needed(files: Mapping[bytes, Effect], path: bytes) -> Iterator[bytes]:
    effect = files[path]
    if effect.before is not None and effect.before.is_directory and not effect.in_place:
        yield from (other for other in files if other.startswith(path + b"/"))
    if effect.after is None:
        return
    above = path
    while above := above.rpartition(b"/")[0]:
        other = files.get(above)
        if other is not None and other.after is not None and not other.in_place:
            yield above
