"""Everything that a task changes, read from its workspace: classified, and bound to a digest.

workspace next to the user's files ─► scan ─► three_way ─► git ─► describe ─► risk_table ─► ChangeSet
"""

from __future__ import annotations

import hashlib
import os
import stat
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path

from artoo.contracts.changes import Change, Conflict, Node, PathClass, Trait, digest_of, path_bytes, printable_path
from artoo.contracts.errors import SandboxError
from artoo.contracts.settling import ChangeClass, ClassifiedChange
from artoo.ports.workspace import MIB, Files
from artoo.workspace.changes.base import Base, BaseBook, read_base
from artoo.workspace.changes.describe import describe
from artoo.workspace.changes.effect import Effect
from artoo.workspace.changes.manifest import Manifest
from artoo.workspace.changes.moves import moves
from artoo.workspace.changes.path_class import Places
from artoo.workspace.changes.pycache import split_caches
from artoo.workspace.changes.risk_table import BOUNDS, classified
from artoo.workspace.changes.scan import scan
from artoo.workspace.changes.silent_rule import SilentRule
from artoo.workspace.changes.three_way import Compared, compare, with_dependents
from artoo.workspace.changes.time_window import Moment
from artoo.workspace.changes.upper_index import Index, look
from artoo.workspace.changes.verdict import Verdict
from artoo.workspace.directory import Covered, WorkspaceDirectory, WorkspaceKind, WorkspaceRecord
from artoo.workspace.files.layered import offline_files
from artoo.workspace.files.rooted import real_files
from artoo.workspace.fs.stat import NodeState

FLOOD_BYTES = 256 * MIB
FLOOD_PATHS = 5_000
_OWN = "artoo's own files are out of reach of tasks"


JudgePath = Callable[[bytes, int, bool, bytes], tuple[ChangeClass, str]]
"""Returns the class and the reason that a file change would get: absolute path, `st_mode` as git stores it, True if
something is there now, a link's target. A commit's files are judged by it as if they were written."""


@dataclass(frozen=True, slots=True)
class GitQuestion:
    """What git's specialist is given. `before`: the user's files now; `after`: the files as the workspace has them.

    `effects` holds everything that differs and is in no conflict, in path order, git's own files included.
    `conflicting`: effects at paths that the user changed too.
    """

    directory: WorkspaceDirectory
    record: WorkspaceRecord
    effects: Sequence[Effect]
    conflicting: Sequence[Effect]
    before: Files
    after: Files
    judge_path: JudgePath


@dataclass(frozen=True, slots=True)
class GitPart:
    """What git's own files in a workspace mean.

    `taken`: paths of effects that git itself brings over (objects, refs, index, ...): they are no file changes.
    `says`: the class of effects that stay file changes (configuration, hooks). `classes`: one change for each thing
    that git changes instead (a moved ref), already classified. `conflicts` likewise. `digest` of exactly this part:
    an approval is bound to it. `plan` is what `workspace/git` needs to apply it; nobody else looks into it.
    """

    taken: frozenset[bytes] = frozenset()
    says: Mapping[bytes, Verdict] = field(default_factory=dict[bytes, Verdict])
    classes: tuple[ClassifiedChange, ...] = ()
    conflicts: tuple[Conflict, ...] = ()
    digest: str = ""
    plan: object = None


JudgeGit = Callable[[GitQuestion], GitPart]


def no_git(question: GitQuestion) -> GitPart:
    """Judge nothing: every path is an ordinary file."""
    return GitPart()


@dataclass(frozen=True, slots=True)
class ChangeSet:
    """What a task changes against the user's files.

    `effects`, `changes` and `classes` go together by index, in path order; `git.classes` come on top, and conflicts
    are in neither. `digest` (sha256, hex) of exactly this: what would be there, and what it would replace. `flood`:
    why there is so much that the user is asked about it. `notes`: bounds that were met, for the reader; what lies
    beyond a bound is asked about, never silent.
    """

    effects: tuple[Effect, ...] = ()
    changes: tuple[Change, ...] = ()
    classes: tuple[ClassifiedChange, ...] = ()
    conflicts: tuple[Conflict, ...] = ()
    digest: str = ""
    flood: str | None = None
    git: GitPart = field(default_factory=GitPart)
    notes: tuple[str, ...] = ()

    @property
    def empty(self) -> bool:
        """True if the user's files are already as the workspace has them."""
        return not (self.effects or self.conflicts or self.git.classes or self.git.conflicts)

    @property
    def all_classes(self) -> tuple[ClassifiedChange, ...]:
        """File changes and git's, in the order of their paths."""
        return tuple(sorted((*self.classes, *self.git.classes), key=lambda one: one.path))

    @property
    def all_conflicts(self) -> tuple[Conflict, ...]:
        return (*self.conflicts, *self.git.conflicts)

    @property
    def silent(self) -> bool:
        """True if none of it needs approval."""
        loud = any(one.change_class is not ChangeClass.SILENT for one in self.all_classes)
        return not loud and not self.all_conflicts and self.flood is None


def read_change_set(
    directory: WorkspaceDirectory, artoo_home: Path, *, judge_git: JudgeGit = no_git, after: Files | None = None
) -> ChangeSet:
    """Read the change set of a workspace. Blocking; its lock is held, and no process should write to it.

    `after`: its files if a sandbox lives; None: they are read from the disk (`files.layered`). Raises SandboxError
    when they cannot be read completely.
    """
    covered = directory.covered()
    if not covered:
        return ChangeSet()
    try:
        if after is not None:
            return _read(directory, covered, artoo_home, judge_git, after)
        offline = offline_files(directory)
        try:
            return _read(directory, covered, artoo_home, judge_git, offline)
        finally:
            offline.close()
    except OSError as error:
        raise SandboxError(
            f"the changes of task {directory.task_id} cannot be read: {error}; nothing was applied"
        ) from error


def read_changes(directory: WorkspaceDirectory, artoo_home: Path, after: Files) -> tuple[Change, ...]:
    """Return what a workspace changes, conflicts included and marked. Blocking.

    For a report while the task works. Raises SandboxError.
    """
    record = directory.record()
    bases = read_base(directory.base_file)
    manifest = Manifest.read(directory.manifest) if record.kind is WorkspaceKind.COPY else None
    try:
        scanned, _ = split_caches(scan(directory.covered(), manifest))
        compared = compare(scanned, bases)
    except OSError as error:
        raise SandboxError(f"the changes of task {directory.task_id} cannot be read: {error}") from error
    both = frozenset(effect.shown for effect, _ in compared.conflicts if not _is_directory(effect))
    effects = sorted((*compared.effects, *(effect for effect, _ in compared.conflicts)), key=lambda one: one.path)
    return tuple(
        one.model_copy(update={"traits": (*one.traits, Trait.CHANGED_MEANWHILE)}) if one.path in both else one
        for one in describe(effects, Places.of(record.roots, artoo_home), after)
    )


def _is_directory(effect: Effect) -> bool:
    return any(state is not None and state.is_directory for state in (effect.before, effect.after))


def _read(
    directory: WorkspaceDirectory, covered: tuple[Covered, ...], artoo_home: Path, judge_git: JudgeGit, after: Files
) -> ChangeSet:
    record = directory.record()
    places = Places.of(record.roots, artoo_home)
    manifest = Manifest.read(directory.manifest) if record.kind is WorkspaceKind.COPY else None
    bases = _bases(directory, covered, manifest)
    scanned, left_out = split_caches(scan(covered, manifest))
    compared = compare(scanned, bases)
    git = judge_git(
        GitQuestion(
            directory=directory,
            record=record,
            effects=compared.effects,
            conflicting=tuple(effect for effect, _ in compared.conflicts),
            before=real_files(),
            after=after,
            judge_path=partial(_judge_path, places, after),
        )
    )
    compared = with_dependents(_without(compared, git.taken), scanned, bases)
    found = _meant(compared, places, bases, git, after)
    notes = (f"{len(left_out):,} compiled files and tool caches stay in the workspace",) if left_out else ()
    return replace(found, digest=_digest(found), flood=flood_of(found.changes), notes=notes)


def _bases(
    directory: WorkspaceDirectory, covered: tuple[Covered, ...], manifest: Manifest | None
) -> dict[str, Base]:
    """Return the bases, also of what a call changed that a crash interrupted."""
    book = BaseBook(directory.base_file, Moment.now())
    book.load()
    look(book, covered, manifest, Index())
    return book.bases


def _without(compared: Compared, taken: frozenset[bytes]) -> Compared:
    """Remove what git brings over itself."""
    if not taken:
        return compared
    return Compared(
        tuple(effect for effect in compared.effects if effect.path not in taken),
        tuple(one for one in compared.conflicts if one[0].path not in taken),
    )


def _meant(compared: Compared, places: Places, bases: Mapping[str, Base], git: GitPart, after: Files) -> ChangeSet:
    """Describe and classify. Paths in artoo's own files are conflicts: a task may never change them."""
    described = list(zip(compared.effects, describe(compared.effects, places, after), strict=True))
    kept = [one for one in described if one[1].path_class is not PathClass.ARTOO]
    own = (
        Conflict(path=change.path, reason=_OWN) for _, change in described if change.path_class is PathClass.ARTOO
    )
    conflicts = (*(conflict for _, conflict in compared.conflicts), *own)
    changes = tuple(change for _, change in kept)
    moved = moves(changes, bases)
    rule = SilentRule(places)
    return ChangeSet(
        effects=tuple(effect for effect, _ in kept),
        changes=changes,
        classes=tuple(
            classified(
                change,
                within=change.path_class in BOUNDS or places.within_bounds(effect.path),
                unusual=rule.unusual(effect),
                moved_to=moved.get(change.path),
                says=git.says.get(effect.path),
            )
            for effect, change in kept
        ),
        conflicts=tuple(sorted(conflicts, key=lambda one: one.path)),
        git=git,
    )


def _judge_path(
    places: Places, after: Files, path: bytes, mode: int, existed: bool, target: bytes
) -> tuple[ChangeClass, str]:
    """See JudgePath."""
    node = Node.LINK if stat.S_ISLNK(mode) else Node.DIRECTORY if stat.S_ISDIR(mode) else Node.FILE
    new = NodeState(node, stat.S_IMODE(mode) or 0o644, os.geteuid(), os.getegid(), target=target)
    old = new._replace(node=Node.FILE if node is Node.LINK else node) if existed else None
    effect = Effect(b"/", path, printable_path(path), old, new)
    (change,) = describe((effect,), places, after)
    found = classified(
        change,
        within=change.path_class in BOUNDS or places.within_bounds(path),
        unusual=SilentRule(places).unusual(effect),
    )
    return found.change_class, found.reason


def _digest(found: ChangeSet) -> str:
    """Bind what is new by the changes' own digest, and what it replaces by its content."""
    total = hashlib.sha256(digest_of(found.changes).encode())
    for effect in found.effects:
        was = effect.before
        old = "-" if was is None else f"{was.node} {effect.before_digest} {was.target!r}"
        total.update(effect.path + b"\0" + old.encode() + b"\n")
    for conflict in found.conflicts:
        total.update(b"!" + path_bytes(conflict.path) + b"\n")
    total.update(found.git.digest.encode())
    return total.hexdigest()


def flood_of(changes: Sequence[Change]) -> str | None:
    """Return why there is so much that the user is asked about it; None when there is not."""
    total = sum(change.size_after or 0 for change in changes)
    if total > FLOOD_BYTES:
        return f"{total / MIB:,.0f} MiB of data are written"
    if len(changes) > FLOOD_PATHS:
        return f"{len(changes):,} paths change"
    return None
