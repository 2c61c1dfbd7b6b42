"""What of a git repository goes together: of HEAD without its index, or a branch without its objects, git makes
something that nobody did.

state     where HEAD and the names are, what is staged, an operation under way, and the record of it
files     those whose entry in the index is another one: what is staged or committed is in them
objects   what state needs; more of them than it needs hurts nobody
"""

from __future__ import annotations

import os
import re
from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from artoo.ports.world import Files
from artoo.world.git_index import INDEX, staged_by_path
from artoo.world.git_layout import Holders, Part, inner_path, part_of, read_file, without_worktree
from artoo.world.scan import Effect

_STATE = frozenset({Part.STATE, Part.INDEX, Part.OPERATION})
_COMMIT = re.compile(rb"([0-9a-f]{40}|[0-9a-f]{64})\s*")
_BRANCHES = "refs/heads/"

Moved = Callable[[bytes], bool]
"""Whether the index says something else of a path (relative to where the files are)."""


def is_object(inner: str) -> bool:
    """Whether a path of a repository is one of its objects, or a directory of them."""
    return part_of(inner) is Part.STATE and inner.startswith("objects/")


def is_state(inner: str) -> bool:
    """Whether a path of a repository is of its state."""
    return part_of(inner) in _STATE and inner != "objects" and not is_object(inner)


def decides(inner: str) -> bool:
    """Whether state cannot be without this: a record that only grew elsewhere leaves the rest what it is."""
    return is_state(inner) and not without_worktree(inner).startswith("logs")


def worktree_of(repository: Path) -> Path | None:
    """Where the files are of which the repository's own index speaks; None where that is elsewhere, or nowhere."""
    return repository.parent if repository.name == ".git" else None


def moved_entries(old: bytes | None, new: bytes | None) -> Moved:
    """What differs between two indexes (None: there is none). In one that cannot be read here everything may."""
    was, now = (dict[bytes, bytes]() if content is None else staged_by_path(content) for content in (old, new))
    if was is None or now is None:
        return lambda path: True
    return lambda path: was.get(path) != now.get(path)


@dataclass(frozen=True, slots=True)
class Unit:
    """What goes together of one repository in a difference, by path. `branches`: the commits at which branches
    would stand, by the path of their names."""

    repository: Path
    state: frozenset[bytes]
    files: frozenset[bytes]
    objects: frozenset[bytes]
    branches: dict[bytes, str]

    @property
    def whole(self) -> frozenset[bytes]:
        """What is in conflict if one of it is."""
        return self.state | self.files if self.branches else self.state | self.files | self.objects

    def decides(self, path: bytes) -> bool:
        """Whether a conflict at this path is one of all of it. A reflog counts: that of HEAD tells where HEAD was
        taken meanwhile, where the task left it alone."""
        return path in self.files or path in self.state

    def needed_by(self, path: bytes, *, removed: bool) -> frozenset[bytes]:
        """What must come with a path that is applied. Where objects are removed, others may stand for them."""
        if path in self.state:
            return self.state | self.files | self.objects
        return self.objects if removed and path in self.objects else frozenset()


def units_of(effects: Sequence[Effect], before: Files, after: Files) -> tuple[Unit, ...]:
    """Those of all repositories of which the effects change state or objects. Blocking."""
    holders = Holders(before, after)
    members: dict[Path, list[tuple[bytes, str]]] = defaultdict(list)
    for effect in effects:
        directory = any(state is not None and state.is_directory for state in (effect.before, effect.after))
        holder = holders.of(effect.path, is_directory=directory)
        if holder is not None:
            members[holder].append((effect.path, inner_path(effect.path, holder)))
    return tuple(
        unit
        for repository, found in members.items()
        if (unit := _unit(repository, found, effects, before, after)).state or unit.objects
    )


def _unit(
    repository: Path,
    members: Iterable[tuple[bytes, str]],
    effects: Sequence[Effect],
    before: Files,
    after: Files,
) -> Unit:
    state = {path: inner for path, inner in members if is_state(inner)}
    branches: dict[bytes, str] = {}
    for path, inner in state.items():
        found = _COMMIT.fullmatch(_read(Path(os.fsdecode(path)), after) or b"") if _is_branch(inner) else None
        if found is not None:
            branches[path] = found[1].decode()
    return Unit(
        repository,
        frozenset(state),
        frozenset(_files(repository, effects, before, after) if INDEX in state.values() else ()),
        frozenset(path for path, inner in members if is_object(inner)),
        branches,
    )


def _is_branch(inner: str) -> bool:
    return inner.startswith(_BRANCHES) or without_worktree(inner) == "HEAD"


def _files(repository: Path, effects: Sequence[Effect], before: Files, after: Files) -> Iterable[bytes]:
    worktree = worktree_of(repository)
    if worktree is None:
        return
    start, own = os.fsencode(worktree) + b"/", os.fsencode(repository) + b"/"
    moved = moved_entries(_read(repository / INDEX, before), _read(repository / INDEX, after))
    for effect in effects:
        path = effect.path
        if path.startswith(start) and not path.startswith(own) and moved(path.removeprefix(start)):
            yield path


def _read(path: Path, files: Files) -> bytes | None:
    place = files.at(path)
    return None if place is None else read_file(place)
