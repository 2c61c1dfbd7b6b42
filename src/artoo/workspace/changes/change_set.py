"""Compute the change set with conflicts and digest, and report a flood of paths or bytes.

workspace next to the user's files ─► tree ─► compare ─► git ─► describe ─► ChangeSet
"""

from __future__ import annotations

import hashlib
import os
import stat
from collections.abc import Callable, Collection, Generator, Iterable, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path

from artoo.contracts.changes import Change, Conflict, Node, PathClass, Trait, digest_of, path_bytes, printable_path
from artoo.contracts.errors import SandboxError
from artoo.contracts.settling import ChangeClass, ClassifiedChange
from artoo.ports.workspace import MIB
from artoo.sandbox.reading.path_set import upwards
from artoo.workspace.changes.base import Base, BaseBook, BaseManifest, now_ns, same_version
from artoo.workspace.changes.describe import BOUNDS, classified, describe, moves, without_caches
from artoo.workspace.changes.effect import Effect, Verdict
from artoo.workspace.changes.path_class import Places
from artoo.workspace.changes.silent_rule import SilentRule
from artoo.workspace.changes.tree import Difference, Tree, note_bases, read_tree
from artoo.workspace.directory import WorkspaceDirectory
from artoo.workspace.files.walker import Walker
from artoo.workspace.fs.names import text_of
from artoo.workspace.fs.stat import NodeState

# The result for a path depends on three versions of it, namely its base, the user's version and the task's version:
#
# | task's version | user's version now | result |
# |---|---|---|
# | same as the base | any | none, because the task did not change it in the end |
# | any other | same as the task's | none, because the change is already there |
# | any other | same as the base | an effect |
# | any other | any other | a conflict; the user's version stays |
# | a new path in a missing directory | none | a conflict |
# | deletes a directory with a conflict inside, or a file whose move target conflicts | as the base | a conflict |
# | only times of a file or link differ from the base | any other | none; the user's version stays |
#
# The base is the version that the task found when it first changed a path. A path without a base did not exist when
# the task first changed it. Contents are compared by their sha256 and not by their times, because clocks can be set
# and have a coarse resolution. A file is not read again only if it still has the base's inode, size, mtime and
# ctime (`base.same_version`).
_APPEARED = "it appeared since the task began"
_GONE = "it was removed since the task began"
_CHANGED = "it was changed since the task began"
_OVERTAKEN = "it was changed while a command of the task ran that changes it too"
_MOVED = "the place that it is moved to is in conflict"
_HOMELESS = "the directory that it belongs in is not there"
_HOLDS = "it holds a path that is in conflict"
_CHANGED_METADATA = "its mode, owner or attributes were changed since the task began"


@dataclass(frozen=True, slots=True)
class Compared:
    """The effects that can be applied, in path order, and the effects in conflict with their reasons."""

    effects: tuple[Effect, ...] = ()
    conflicts: Mapping[Effect, str] = field(default_factory=dict[Effect, str])

    def described(self) -> list[Conflict]:
        """Return the conflicts in the form that the user reads."""
        return [Conflict(path=effect.shown, reason=reason) for effect, reason in self.conflicts.items()]

    def without(self, taken: Collection[bytes]) -> Compared:
        """Return a copy without the paths in `taken`."""
        conflicts = {effect: reason for effect, reason in self.conflicts.items() if effect.path not in taken}
        return Compared(tuple(one for one in self.effects if one.path not in taken), conflicts)


def compare(effects: Iterable[Effect], bases: Mapping[str, Base | None], files: Walker) -> Compared:
    """Compare path by path. Reads the user's `files` where metadata are not sufficient. Blocking.

    A file that changes after it was read here is noticed by the commit, which compares the states again.
    """
    kept: list[Effect] = []
    conflicts: dict[Effect, str] = {}
    going = set[bytes]()
    for effect in effects:
        base = bases.get(effect.shown)
        if effect.after is None or effect.removes_directory:
            going.add(effect.path)
        homeless = effect.path.rpartition(b"/")[0] in going
        if _unchanged_by_task(effect, base, homeless):
            continue
        reason = _conflict(effect, base, files)
        # Conflicts depend on content and metadata. A difference of only the times never causes a conflict.
        if reason is None:  # binds the approval to exactly the content that is replaced
            replaced = None if effect.before is None else base
            kept.append(effect if replaced is None else effect._replace(before_digest=replaced.sha256))
        elif not (_already_done(effect) or _only_times(effect, base)):
            conflicts[effect] = reason
    return Compared(tuple(kept), conflicts)


def with_dependents(found: Compared, all_effects: Iterable[Effect]) -> Compared:
    """Mark all effects that depend on a path in conflict as conflicts too. The remaining effects can be applied."""
    made = {effect.path for effect in all_effects if effect.makes_directory}
    # A new conflict may cause others, so this is repeated until none is added.
    while more := _stuck(found, made):
        kept = tuple(effect for effect in found.effects if effect not in more)
        found = replace(found, effects=kept, conflicts={**found.conflicts, **more})
    return found


def _stuck(found: Compared, made: set[bytes]) -> dict[Effect, str]:
    """Return effects that depend on a path in conflict. `made`: the directories that the task made and the user has
    not."""
    absent = made - {effect.path for effect in found.effects}
    if not found.conflicts and not absent:
        return {}
    # Contents that the task writes only to paths in conflict. These are moved files. If their old paths were
    # removed, the contents would be lost.
    arriving = {one.digest for one in found.conflicts if one.after is not None and one.after.size}
    arriving -= {None, *(one.digest for one in found.effects)}
    holding = {above for one in found.conflicts for above in upwards(text_of(one.shown))}
    more: dict[Effect, str] = {}
    for effect in found.effects:
        if effect.after is not None and effect.path.rpartition(b"/")[0] in absent:
            more[effect] = _HOMELESS
        elif effect.after is None and effect.before_digest in arriving:
            more[effect] = _MOVED
        elif effect.removes_directory and text_of(effect.shown) in holding:
            more[effect] = _HOLDS
    return more


def _unchanged_by_task(effect: Effect, base: Base | None, homeless: bool) -> bool:
    """True if the task's version equals the base. `homeless`: true if the directory of the path is deleted."""
    wanted, real = effect.after, effect.before
    if base is None:
        # There are three possible reasons: the user made the path, both made it, or the workspace holds a copy that
        # the task never changed.
        if wanted is None or real is None:
            return wanted is real or (wanted is None and not homeless)
        return effect.in_place or (wanted.is_directory and real.is_directory)
    return _only_times(effect, base) and (
        wanted is not None and (wanted.is_directory or wanted.mtime_ns == base.was.mtime_ns)
    )


def _only_times(effect: Effect, base: Base | None) -> bool:
    """True if the task changed nothing but times. In that case the user's version stays, and there is no
    conflict."""
    wanted = effect.after
    if base is None or wanted is None or wanted.node is not base.was.node or not wanted.same_metadata(base.was):
        return False
    if wanted.node is Node.FILE:
        return base.sha256 is not None and effect.digest == base.sha256
    return wanted.is_directory or _same_thing(wanted, base.was)


def _already_done(effect: Effect) -> bool:
    """True if the user made the same change. Content and metadata are equal; times are ignored."""
    return (
        effect.in_place
        and effect.before is not None
        and effect.after is not None
        and effect.before.same_metadata(effect.after)
    )


def _conflict(effect: Effect, base: Base | None, files: Walker) -> str | None:
    real = effect.before
    if base is None:
        return None if real is None else _APPEARED
    if real is None:
        return _GONE
    if real.node is not base.was.node:
        return _CHANGED
    if not real.same_metadata(base.was):
        return _CHANGED_METADATA
    if base.overtaken:
        return _OVERTAKEN
    return None if real.is_directory or _same_content(effect, real, base, files) else _CHANGED


def _same_content(effect: Effect, real: NodeState, base: Base, files: Walker) -> bool:
    if real.node is not Node.FILE:
        return _same_thing(real, base.was)
    if same_version(base.was, real):
        return True
    if base.sha256 is None or real.size != base.was.size:  # None: the base could not be read
        return False
    return files.digest(text_of(effect.shown), real) == base.sha256


def _same_thing(state: NodeState, was: NodeState) -> bool:
    return (state.target, state.rdev) == (was.target, was.rdev)


FLOOD_BYTES = 256 * MIB
FLOOD_PATHS = 5_000
_OWN = "artoo's own files are out of reach of tasks"


JudgePath = Callable[[bytes, int, bool, bytes], tuple[ChangeClass, str]]
"""Returns the class and the reason that a file change would get. The arguments are the absolute path, `st_mode` as
git stores it, whether the path exists now, and the target of a link. With this function, the files in a commit are
judged like files that are written now."""


@dataclass(frozen=True, slots=True)
class GitQuestion:
    """The question about a change set that `workspace/git` answers.

    `effects` holds all differences without a conflict, in path order. Git's own files are among them.
    `conflicting`: the effects at paths that the user has changed too.
    """

    directory: WorkspaceDirectory
    effects: Sequence[Effect]
    conflicting: Sequence[Effect]
    judge_path: JudgePath


@dataclass(frozen=True, slots=True)
class GitPart:
    """The meaning of the changes in git's own files.

    `taken`: the paths of effects that git itself transfers (such as objects, refs and the index). They are not
    listed as file changes. `says`: the classes of effects in git's files that remain file changes (configuration
    and hooks). `classes`: one classified change for each git operation, such as a moved ref. It replaces the file
    changes. `conflicts`: the conflicts of these git operations. `digest`: the digest of exactly this part. An
    approval is bound to it. `plan`: the data with which `workspace/git` applies this part. No other code reads it.
    """

    taken: frozenset[bytes] = frozenset()
    says: Mapping[bytes, Verdict] = field(default_factory=dict[bytes, Verdict])
    classes: tuple[ClassifiedChange, ...] = ()
    conflicts: tuple[Conflict, ...] = ()
    digest: str = ""
    plan: object = None


JudgeGit = Callable[[GitQuestion], GitPart]


def no_git(question: GitQuestion) -> GitPart:
    """Treat every path as an ordinary file, in which case git operations are not reported."""
    return GitPart()


@dataclass(frozen=True, slots=True)
class ChangeSet:
    """The changes of a task against the user's files.

    `effects`, `changes` and `classes` correspond by index, in path order. `git.classes` come in addition to them.
    Paths in conflict are in none of these lists. `digest`: sha256 (hex) of the new state and of the state that it
    replaces. `flood`: the reason why the change set needs approval because of its size, or None.
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
        """True if the user's files already equal those of the workspace."""
        return not (self.effects or self.conflicts or self.git.classes or self.git.conflicts)

    @property
    def all_classes(self) -> tuple[ClassifiedChange, ...]:
        """The file changes and git's changes, in the order of their paths."""
        return tuple(sorted((*self.classes, *self.git.classes), key=lambda one: one.path))

    @property
    def all_conflicts(self) -> tuple[Conflict, ...]:
        return (*self.conflicts, *self.git.conflicts)

    @property
    def silent(self) -> bool:
        """True if nothing in the change set needs approval."""
        loud = any(one.change_class is not ChangeClass.SILENT for one in self.all_classes)
        return not loud and not self.all_conflicts and self.flood is None


def read_change_set(directory: WorkspaceDirectory, artoo_home: Path, *, judge_git: JudgeGit = no_git) -> ChangeSet:
    """Read the change set of a workspace. Blocking. The caller holds its lock, and no process should write to it.

    Raises SandboxError when the change set cannot be read completely.
    """
    if not directory.covered():
        return ChangeSet()
    with _readable(directory):
        compared, counted = _compared(directory)
        if not counted:
            return ChangeSet()
        found = _judged(directory, compared, counted, artoo_home, judge_git)
    return replace(found, digest=_digest(found), flood=flood_of(found.changes))


def read_changes(directory: WorkspaceDirectory, artoo_home: Path) -> tuple[Change, ...]:
    """Return the changes of a workspace, for a report while the task works. Conflicts are included and marked as
    such.

    Blocking. Raises SandboxError.
    """
    with _readable(directory):
        compared, _ = _compared(directory)
    both = frozenset(one.shown for one in compared.conflicts if not (one.makes_directory or one.removes_directory))
    effects = sorted((*compared.effects, *compared.conflicts), key=lambda one: one.path)
    return tuple(
        one.model_copy(update={"traits": (*one.traits, Trait.CHANGED_MEANWHILE)}) if one.path in both else one
        for one in describe(effects, Places.of(directory.record().roots, artoo_home))
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
    """Return the compared effects, and all effects except those in caches. Effects in caches stay in the workspace.

    A crash may have interrupted a call before the bases of its changed paths were recorded. They are recorded now.
    """
    covered, overlay = directory.covered(), directory.record().is_overlay
    manifest = None if overlay else BaseManifest.read(directory.manifest)
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
) -> ChangeSet:
    rule = SilentRule(Places.of(directory.record().roots, artoo_home))
    git = judge_git(
        GitQuestion(
            directory=directory,
            effects=compared.effects,
            conflicting=tuple(compared.conflicts),
            judge_path=partial(_judge_path, rule),
        )
    )
    compared = with_dependents(compared.without(git.taken), counted)
    return _meant(compared, rule, git)


def _meant(compared: Compared, rule: SilentRule, git: GitPart) -> ChangeSet:
    """Describe and classify the effects. A change of artoo's own files becomes a conflict, because no task may
    change them."""
    places = rule.places
    described = list(zip(compared.effects, describe(compared.effects, places), strict=True))
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


def _judge_path(rule: SilentRule, path: bytes, mode: int, existed: bool, target: bytes) -> tuple[ChangeClass, str]:
    """Judge one path of a commit as if it were written now (`JudgePath`)."""
    node = Node.LINK if stat.S_ISLNK(mode) else Node.DIRECTORY if stat.S_ISDIR(mode) else Node.FILE
    new = NodeState(node, stat.S_IMODE(mode) or 0o644, os.geteuid(), os.getegid(), target=target)
    old = new._replace(node=Node.FILE if node is Node.LINK else node) if existed else None
    effect = Effect(b"/", path, printable_path(path), old, new)
    (change,) = describe((effect,), rule.places)
    found = classified(
        change, within=change.path_class in BOUNDS or rule.places.within_bounds(path), unusual=rule.unusual(effect)
    )
    return found.change_class, found.reason


def _digest(found: ChangeSet) -> str:
    """Compute the digest over the new state (the digest of the changes) and the content that it replaces."""
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
    """Return the reason why a change set needs approval because of its size. Return None if it is not that
    large."""
    total = sum(change.size_after or 0 for change in changes)
    if total > FLOOD_BYTES:
        return f"{total / MIB:,.0f} MiB of data are written"
    if len(changes) > FLOOD_PATHS:
        return f"{len(changes):,} paths change"
    return None
