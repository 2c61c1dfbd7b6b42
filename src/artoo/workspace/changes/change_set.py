"""Everything that a task changes, read from its workspace: classified, and bound to a digest.

workspace next to the user's files ─► tree ─► three_way ─► git ─► describe ─► risk_table ─► ChangeSet
"""

from __future__ import annotations

import hashlib
import os
import stat
from collections.abc import Callable, Generator, Mapping, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path

from artoo.contracts.changes import Change, Conflict, Node, PathClass, Trait, digest_of, path_bytes, printable_path
from artoo.contracts.errors import SandboxError
from artoo.contracts.settling import ChangeClass, ClassifiedChange
from artoo.ports.workspace import MIB, Files
from artoo.workspace.changes.base import BaseBook, Manifest, now_ns
from artoo.workspace.changes.describe import BOUNDS, classified, describe, moves, without_caches
from artoo.workspace.changes.effect import Effect, Verdict
from artoo.workspace.changes.path_class import Places
from artoo.workspace.changes.silent_rule import SilentRule
from artoo.workspace.changes.three_way import Compared, compare, with_dependents
from artoo.workspace.changes.tree import Difference, Tree, note_bases, read_tree
from artoo.workspace.directory import WorkspaceDirectory
from artoo.workspace.files.layered import offline_files
from artoo.workspace.files.walker import Walker
from artoo.workspace.fs.stat import NodeState

FLOOD_BYTES = 256 * MIB
FLOOD_PATHS = 5_000
_OWN = "artoo's own files are out of reach of tasks"


JudgePath = Callable[[bytes, int, bool, bytes], tuple[ChangeClass, str]]
"""Returns the class and the reason that a file change would get: absolute path, `st_mode` as git stores it, True if
something is there now, a link's target. A commit's files are judged by it as if they were written."""


@dataclass(frozen=True, slots=True)
class GitQuestion:
    """The question that `workspace/git` answers about a change set.

    `effects` holds everything that differs and is in no conflict, in path order, git's own files included.
    `conflicting`: effects at paths that the user changed too.
    """

    directory: WorkspaceDirectory
    effects: Sequence[Effect]
    conflicting: Sequence[Effect]
    judge_path: JudgePath


@dataclass(frozen=True, slots=True)
class GitPart:
    """The meaning of git's own files in a workspace.

    `taken`: paths of effects that git itself brings over (objects, refs, index, ...): they are no file changes.
    `says`: the class of effects that stay file changes (configuration, hooks). `classes`: one change for each thing
    that git changes instead (a moved ref), already classified. `conflicts` likewise. `digest` of exactly this part:
    an approval is bound to it. `plan` is what `workspace/git` needs to apply it; no other code looks into it.
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
    """The changes of a task against the user's files.

    `effects`, `changes` and `classes` go together by index, in path order; `git.classes` come on top, and conflicts
    are in neither. `digest` (sha256, hex) of exactly this: what would be there, and what it would replace. `flood`:
    why there is so much that the user is asked about it.
    """

    effects: tuple[Effect, ...] = ()
    changes: tuple[Change, ...] = ()
    classes: tuple[ClassifiedChange, ...] = ()
    conflicts: tuple[Conflict, ...] = ()
    digest: str = ""
    flood: str | None = None
    git: GitPart = field(default_factory=GitPart)

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
    if not directory.covered():
        return ChangeSet()
    with _readable(directory):
        compared, counted = _compared(directory)
        if not counted:
            return ChangeSet()
        with closing(offline_files(directory)) as offline:
            found = _judged(directory, compared, counted, artoo_home, judge_git, after or offline)
    return replace(found, digest=_digest(found), flood=flood_of(found.changes))


def read_changes(directory: WorkspaceDirectory, artoo_home: Path, after: Files) -> tuple[Change, ...]:
    """Return what a workspace changes, conflicts included and marked. Blocking.

    For a report while the task works. Raises SandboxError.
    """
    with _readable(directory):
        compared, _ = _compared(directory)
    both = frozenset(one.shown for one in compared.conflicts if not (one.makes_directory or one.removes_directory))
    effects = sorted((*compared.effects, *compared.conflicts), key=lambda one: one.path)
    return tuple(
        one.model_copy(update={"traits": (*one.traits, Trait.CHANGED_MEANWHILE)}) if one.path in both else one
        for one in describe(effects, Places.of(directory.record().roots, artoo_home), after)
    )


@contextmanager
def _readable(directory: WorkspaceDirectory) -> Generator[None]:
    try:
        yield
    except OSError as error:
        raise SandboxError(
            f"the changes of task {directory.task_id} cannot be read: {error}; nothing was applied"
        ) from error


def _compared(directory: WorkspaceDirectory) -> tuple[Compared, list[Effect]]:
    """Return what differs, and all effects that count: caches stay in the workspace.

    The bases of what a call changed that a crash interrupted are recorded now.
    """
    covered, overlay = directory.covered(), directory.record().is_overlay
    manifest = None if overlay else Manifest.read(directory.manifest)
    read_ns = now_ns()
    tree = read_tree(covered, Tree(), Tree(), manifest, overlay=overlay, all_of_it=True)
    book = BaseBook(directory.base_file, read_ns)
    note_bases(book, covered, manifest, Tree(), tree, read_ns)
    gone = () if manifest is None else [key for key in manifest.entries if key not in tree.seen]
    with Walker() as users:
        effects = Difference(covered, Tree(), tree, users, overlay).effects(gone)
        counted = without_caches(effects)
        return compare(counted, book.bases, users), counted


def _judged(
    directory: WorkspaceDirectory,
    compared: Compared,
    counted: list[Effect],
    artoo_home: Path,
    judge_git: JudgeGit,
    after: Files,
) -> ChangeSet:
    rule = SilentRule(Places.of(directory.record().roots, artoo_home))
    git = judge_git(
        GitQuestion(
            directory=directory,
            effects=compared.effects,
            conflicting=tuple(compared.conflicts),
            judge_path=partial(_judge_path, rule, after),
        )
    )
    compared = with_dependents(compared.without(git.taken), counted)
    return _meant(compared, rule, git, after)


def _meant(compared: Compared, rule: SilentRule, git: GitPart, after: Files) -> ChangeSet:
    """Describe and classify. Paths in artoo's own files are conflicts: a task may never change them."""
    places = rule.places
    described = list(zip(compared.effects, describe(compared.effects, places, after), strict=True))
    kept = [one for one in described if one[1].path_class is not PathClass.ARTOO]
    own = (
        Conflict(path=change.path, reason=_OWN) for _, change in described if change.path_class is PathClass.ARTOO
    )
    effects = tuple(effect for effect, _ in kept)
    moved = moves(effects)
    return ChangeSet(
        effects=effects,
        changes=tuple(change for _, change in kept),
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
        conflicts=tuple(sorted((*compared.described(), *own), key=lambda one: one.path)),
        git=git,
    )


def _judge_path(
    rule: SilentRule, after: Files, path: bytes, mode: int, existed: bool, target: bytes
) -> tuple[ChangeClass, str]:
    """Judge one path of a commit as if it were written now (`JudgePath`)."""
    node = Node.LINK if stat.S_ISLNK(mode) else Node.DIRECTORY if stat.S_ISDIR(mode) else Node.FILE
    new = NodeState(node, stat.S_IMODE(mode) or 0o644, os.geteuid(), os.getegid(), target=target)
    old = new._replace(node=Node.FILE if node is Node.LINK else node) if existed else None
    effect = Effect(b"/", path, printable_path(path), old, new)
    (change,) = describe((effect,), rule.places, after)
    found = classified(
        change, within=change.path_class in BOUNDS or rule.places.within_bounds(path), unusual=rule.unusual(effect)
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
