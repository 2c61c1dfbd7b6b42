"""The end of a workspace, with classes of changes, `--apply` modes, the Review, and the limits of pending changes.

R7 ends the task, the gate applies its changes and reports them.

    R7 ─ Ending ─► gate ─ ConfirmationRequest (with a Review) ─► user ─ ConfirmationAnswer ─► gate ─ Settled ─► R7

The changes are applied as a whole (SPEC section 8): if one change needs consent, all changes stay pending.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Sequence
from enum import StrEnum
from typing import Literal

from pydantic import BaseModel, ConfigDict, Field

from artoo.contracts.base import Contract
from artoo.contracts.changes import CROWD, ChangeKind, Conflict, outermost


class ChangeClass(StrEnum):
    """The classes of changes by their meaning for the user, most dangerous first. All except `silent` need
    consent."""

    DELETION = "deletion"
    PERSISTENCE = "persistence"
    HISTORY = "history"
    SPECIAL = "special"
    ELSEWHERE = "elsewhere"
    LINK = "link"
    MODE = "mode"
    EDIT = "edit"
    SILENT = "silent"

    @property
    def danger(self) -> int:
        """Return the rank of danger, with 0 for the most dangerous. Changes are shown in this order."""
        return _DANGER[self]


_DANGER: dict[ChangeClass, int] = {each: number for number, each in enumerate(ChangeClass)}

# Classes whose changes are always shown one by one. Only the mode `all` applies them without approval.
BY_NAME = frozenset({ChangeClass.DELETION, ChangeClass.PERSISTENCE, ChangeClass.HISTORY, ChangeClass.SPECIAL})


_MADE = frozenset({ChangeKind.CREATED, ChangeKind.LINK})


# How long changes may be pending, and how much room all of them may take, unless the configuration says otherwise.
PENDING_DAYS = 30.0
PENDING_MEGABYTES = 8_192


class ApplyMode(StrEnum):
    """The changes that may be applied without approval.

    `new`: silent changes. `edits`: also edits of ordinary project files. `ask`: no changes. `live`: as `edits`,
    but at the end of every turn instead of at the end of the task. `all`: all changes in project and output
    folder; for containers and CI only, so no settings file may set it."""

    NEW = "new"
    EDITS = "edits"
    ASK = "ask"
    LIVE = "live"
    ALL = "all"

    @property
    def unasked(self) -> frozenset[ChangeClass]:
        """Return the classes that are applied without approval if all changes of a task are of these classes."""
        return _UNASKED[self]


_UNASKED = {
    ApplyMode.NEW: frozenset({ChangeClass.SILENT}),
    ApplyMode.EDITS: frozenset({ChangeClass.SILENT, ChangeClass.EDIT}),
    ApplyMode.ASK: frozenset[ChangeClass](),
    ApplyMode.LIVE: frozenset({ChangeClass.SILENT, ChangeClass.EDIT}),
    ApplyMode.ALL: frozenset(ChangeClass) - {ChangeClass.ELSEWHERE},
}


class Rewritten(BaseModel):
    """The losses of a repository, as git reports them: the branches and tags that are moved back, moved aside or
    removed, and the commits that no ref reaches any more (counted up to 1,000). `repository` is its absolute
    path."""

    model_config = ConfigDict(frozen=True, extra="forbid", defer_build=True)

    repository: str
    branches: int = Field(default=0, ge=0)
    tags: int = Field(default=0, ge=0)
    commits: int = Field(default=0, ge=0)


class ClassifiedChange(BaseModel):
    """One changed path. Sizes are in bytes (None if there is no file).

    `reason` says in English why the change needs consent (`tools.gate_words.why` translates it); it is empty for
    a silent change. `moved_to` is the absolute printable path to which the old content moved; the reason ends
    with it. `detail` holds a link's target, or the old and the new mode. `rewrites`: for one of git's own files,
    the losses of its repository through all its changed files. `diff` is set in reviews only."""

    model_config = ConfigDict(frozen=True, extra="forbid", defer_build=True)

    path: str = Field(description="absolute printable path (contracts.changes.printable_path)")
    change_class: ChangeClass
    kind: ChangeKind
    reason: str = ""
    moved_to: str | None = None
    detail: str = ""
    size_before: int | None = Field(default=None, ge=0)
    size_after: int | None = Field(default=None, ge=0)
    rewrites: Rewritten | None = None
    diff: tuple[str, ...] = ()


def _none(number: int) -> bool:
    return number == 0


def _number() -> int:
    """Return a field for a count that is written only if it is not zero."""
    return Field(default=0, ge=0, exclude_if=_none)


class ClassCount(Contract):
    """The number of changes of one class, by paths.

    For history it also has the counts of `Rewritten` for all repositories together, because moving a branch back
    changes many of git's files.

    Parts of `count`: `moved` counts paths that only moved. Among silent paths, `harmless` ones are no new files
    (git's own files and files that existed before), and other changes imply the `implied` ones: directories above
    new files, and targets of moves."""

    change_class: ChangeClass
    count: int = Field(ge=1)
    branches: int = _number()
    tags: int = _number()
    commits: int = _number()
    moved: int = _number()
    harmless: int = _number()
    implied: int = _number()

    @property
    def parts(self) -> tuple[tuple[str, int], ...]:
        """Return the counts that matter to a user, by name: the class, `moved` and `harmless`."""
        own = self.count - self.moved - self.harmless - self.implied
        named = ((self.change_class.value, own), ("moved", self.moved), ("harmless", self.harmless))
        return tuple((name, number) for name, number in named if number)


class Review(Contract):
    """All changes of a task, as shown to a user. Part of a ConfirmationRequest.

    `counts` and `changes` are in order of danger; `changes` is complete. `conflicts` are paths that the user has
    changed meanwhile, so an approval does not apply them. `unfinished`: the task was abandoned, so no standing
    permission may answer. `went_out`: data that was sent, which discarding the changes does not undo."""

    task_id: str
    counts: tuple[ClassCount, ...] = ()
    changes: tuple[ClassifiedChange, ...] = ()
    conflicts: tuple[Conflict, ...] = ()
    unfinished: bool = False
    went_out: tuple[str, ...] = ()


class Ending(Contract):
    """The order to apply the task's changes, because the task ends. R7 → gate.

    `may_ask` False: no user is asked (an interrupt, or no time is left), and changes that need consent stay
    pending. `may_go_on`: an abandoned task may be resumed, and its subtasks then continue in their forks."""

    task_id: str
    directive: Literal["accept", "success", "abandon"]
    language: str = "en"
    may_ask: bool = True
    may_go_on: bool = False


SettledState = Literal["none", "applied", "pending", "discarded", "partly"]
"""none: nothing was changed. partly: the changes that the user chose are applied, and the rest is pending."""


class Settled(Contract):
    """The outcome of a task's changes. Gate → R7, and in the FinalResult.

    `changes` lists all changes that needed consent and the first thousand silent ones (`unlisted` counts the
    rest); `counts` counts all changes. `applied` are the applied paths, including those from before a resumption
    (empty means all if the state is `applied`). `reason` is a text in the task's language: why changes are
    pending, if there is another reason than missing consent, or why changes were not applied. `expires_at`:
    seconds since the epoch (UTC) after which pending changes may be dropped. `kept_under` is the id of another
    task (of the board) whose workspace holds the changes, and under which they are applied. `stopped`: commands
    that still ran at the task's end; `running`: commands that were then started outside the workspace because the
    user agreed, each as `ID: command`. `unseen`: the user's files that the task's commands could not see."""

    state: SettledState = "none"
    counts: tuple[ClassCount, ...] = ()
    changes: tuple[ClassifiedChange, ...] = ()
    unlisted: int = Field(default=0, ge=0)
    applied: tuple[str, ...] = ()
    conflicts: tuple[Conflict, ...] = ()
    reason: str = ""
    expires_at: float | None = None
    went_out: tuple[str, ...] = ()
    digest: str = ""
    kept_under: str = ""
    stopped: tuple[str, ...] = ()
    running: tuple[str, ...] = ()
    unseen: tuple[str, ...] = ()

    @property
    def waits(self) -> bool:
        """Check whether changes of the task are still pending (exit code 4)."""
        return self.state in ("pending", "partly")

    @property
    def only_conflicts(self) -> bool:
        """Check whether no pending change could be applied, because the user has changed all these files since."""
        return self.waits and bool(self.conflicts) and not self.counts

    @property
    def took_effect(self) -> tuple[str, ...]:
        """Return the paths that were applied: `applied`, or if that is empty, the paths of all applied changes."""
        return self.applied or tuple(one.path for one in self.changes if self.state == "applied")


def in_order_of_danger(changes: tuple[ClassifiedChange, ...]) -> tuple[ClassifiedChange, ...]:
    """Sort by danger, the most dangerous classes first, and by path within a class."""
    return tuple(sorted(changes, key=lambda one: (one.change_class.danger, one.path)))


def counts_of(changes: tuple[ClassifiedChange, ...]) -> tuple[ClassCount, ...]:
    """Count the changes of each class, in order of danger."""
    found: dict[ChangeClass, list[ClassifiedChange]] = {}
    for one in changes:
        found.setdefault(one.change_class, []).append(one)
    told = implied(changes)
    return tuple(count_of(each, found[each], told) for each in ChangeClass if each in found)


def arrived(changes: Iterable[ClassifiedChange]) -> dict[str, str]:
    """Return the new path of each moved file with its old path, if the change at the new path is silent."""
    listed = tuple(changes)
    silent = {one.path for one in listed if one.change_class is ChangeClass.SILENT}
    return {one.moved_to: one.path for one in listed if one.moved_to is not None and one.moved_to in silent}


def with_arrivals(paths: Iterable[str], changes: Iterable[ClassifiedChange]) -> frozenset[str]:
    """Return the paths and the new paths of moved files among them, because applying half a move loses the file."""
    chosen = frozenset(paths)
    return chosen | {one.moved_to for one in changes if one.moved_to is not None and one.path in chosen}


def is_gits(path: str) -> bool:
    """Check whether a path is one of git's own files in a repository."""
    return "/.git/" in f"{path}/"


def implied(changes: Sequence[ClassifiedChange]) -> frozenset[str]:
    """Return silent paths that others imply: targets of moves, and new directories above new or moved paths."""
    there = arrived(changes)
    made = [one.path for one in changes if _is_new(one)]
    above: set[str] = set()
    for path in made:
        while (path := path.rpartition("/")[0]) and path not in above:
            above.add(path)
    return frozenset((*there, *(path for path in made if path in above)))


def crowds(changes: Iterable[ClassifiedChange]) -> dict[str, int]:
    """Return the outermost new directories that contain more than `CROWD` new files (an environment, packages, a
    clone), with the number of files. Only silent changes are counted."""
    made = [one for one in changes if one.change_class is ChangeClass.SILENT and one.kind in _MADE]
    directories = {one.path for one in made if one.kind is ChangeKind.CREATED and one.size_after is None}
    places = (outermost(one.path, directories) for one in made if one.path not in directories)
    return {place: files for place, files in Counter(places).items() if place and files > CROWD}


def _is_new(change: ClassifiedChange) -> bool:
    """Check whether a change is a silent new file, link or directory that is not git's own."""
    return change.kind in _MADE and change.change_class is ChangeClass.SILENT and not is_gits(change.path)


def count_of(
    change_class: ChangeClass, changes: Sequence[ClassifiedChange], told: Collection[str] = ()
) -> ClassCount:
    """Count changes of one class, at least one. `told` are the paths that other changes imply."""
    silent = [one for one in changes if change_class is ChangeClass.SILENT]
    # Several paths may belong to one repository, so count its losses once.
    lost = {one.rewrites.repository: one.rewrites for one in changes if one.rewrites is not None}.values()
    return ClassCount(
        change_class=change_class,
        count=len(changes),
        branches=sum(each.branches for each in lost),
        tags=sum(each.tags for each in lost),
        commits=sum(each.commits for each in lost),
        moved=sum(one.moved_to is not None for one in changes),
        harmless=sum(not _is_new(one) and one.path not in told for one in silent),
        implied=sum(one.path in told for one in silent),
    )
