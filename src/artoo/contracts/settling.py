"""The end of a workspace, with classes of changes, `--apply` modes, the Review, and the limits of pending changes.

R7 (solver) ends the task. The gate then applies the changes and reports that.

    R7 ─ Ending ─► gate ─ ConfirmationRequest (with a Review) ─► user ─ ConfirmationAnswer ─► gate ─ Settled ─► R7

The changes are applied all together (SPEC section 8). If one change needs consent, all changes stay pending.
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
    """The classes of changes by what they mean for the user, the most dangerous first. All except `silent` need
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
        """Return how dangerous the class is, with 0 for the most dangerous one. Changes are shown in this order."""
        return _DANGER[self]


_DANGER: dict[ChangeClass, int] = {each: number for number, each in enumerate(ChangeClass)}

# Classes whose changes are always shown individually. Only the mode `all` applies them without approval.
BY_NAME = frozenset({ChangeClass.DELETION, ChangeClass.PERSISTENCE, ChangeClass.HISTORY, ChangeClass.SPECIAL})


_MADE = frozenset({ChangeKind.CREATED, ChangeKind.LINK})


# For how long changes may be pending, and how much disk space all of them may use, unless the configuration says
# otherwise.
PENDING_DAYS = 30.0
PENDING_MEGABYTES = 8_192


class ApplyMode(StrEnum):
    """The modes that decide which changes may be applied without approval.

    `new`: silent changes. `edits`: silent changes, and edits of ordinary files in the project. `ask`: no changes.
    `live`: the same as `edits`, but at the end of every turn and not only at the end of the task. `all`: all
    changes in the project and the output folder. It is meant only for containers and CI, so no settings file may
    contain it."""

    NEW = "new"
    EDITS = "edits"
    ASK = "ask"
    LIVE = "live"
    ALL = "all"

    @property
    def unasked(self) -> frozenset[ChangeClass]:
        """Return the classes of this mode. The changes of a task are applied without approval if all of them have
        one of these classes."""
        return _UNASKED[self]


_UNASKED = {
    ApplyMode.NEW: frozenset({ChangeClass.SILENT}),
    ApplyMode.EDITS: frozenset({ChangeClass.SILENT, ChangeClass.EDIT}),
    ApplyMode.ASK: frozenset[ChangeClass](),
    ApplyMode.LIVE: frozenset({ChangeClass.SILENT, ChangeClass.EDIT}),
    ApplyMode.ALL: frozenset(ChangeClass) - {ChangeClass.ELSEWHERE},
}


class Rewritten(BaseModel):
    """What a repository loses, as git reports it: branches and tags that are moved back, moved aside or removed,
    and commits that no ref reaches any more (counted up to 1,000). `repository` is its absolute path."""

    model_config = ConfigDict(frozen=True, extra="forbid", defer_build=True)

    repository: str
    branches: int = Field(default=0, ge=0)
    tags: int = Field(default=0, ge=0)
    commits: int = Field(default=0, ge=0)


class ClassifiedChange(BaseModel):
    """One changed path. Sizes are in bytes (None if there is no file).

    `reason` says in English why the change needs consent (`tools.gate_words.why` translates it). It is empty for a
    silent change. `moved_to` is the absolute printable path to which the old content was moved. The reason ends
    with it. `detail` is the target of a link, or the old and the new mode. `rewrites`: set for one of git's own
    files. It says what the repository loses by the changes in all of its files. `diff` is set only in reviews."""

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
    """Return a field for a count that is left out of the JSON if it is zero."""
    return Field(default=0, ge=0, exclude_if=_none)


class ClassCount(Contract):
    """The number of changed paths in one class.

    For the class history, it also has the counts in `Rewritten` for all repositories together, because moving a
    branch back changes many of git's files.

    `moved`, `harmless` and `implied` are parts of `count`. `moved` counts the paths that were only moved. Among
    silent paths, `harmless` counts those that are no new files of the user (git's own files, and files that existed
    before). `implied` counts those that other changes imply (directories above new files, and targets of moves)."""

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
        """Return the counts that matter to a user, by their names: the class, `moved` and `harmless`."""
        own = self.count - self.moved - self.harmless - self.implied
        named = ((self.change_class.value, own), ("moved", self.moved), ("harmless", self.harmless))
        return tuple((name, number) for name, number in named if number)


class Review(Contract):
    """All changes of a task, as a user is shown them. It is a part of a ConfirmationRequest.

    `counts` and `changes` are ordered by danger. `changes` is complete. `conflicts` are paths that the user has
    changed meanwhile. An approval does not apply them. `unfinished`: true if the task was abandoned. No standing
    permission may give the answer then. `went_out`: data that were sent to other machines. Discarding the changes
    does not undo that."""

    task_id: str
    counts: tuple[ClassCount, ...] = ()
    changes: tuple[ClassifiedChange, ...] = ()
    conflicts: tuple[Conflict, ...] = ()
    unfinished: bool = False
    went_out: tuple[str, ...] = ()


class Ending(Contract):
    """The order to settle the changes of a task, because the task ends. R7 → gate.

    If `may_ask` is False, no user is asked (after an interrupt, or when no time is left), and changes that need
    consent stay pending. `may_go_on`: true if an abandoned task may be resumed, so that its subtasks then continue
    in their forks."""

    task_id: str
    directive: Literal["accept", "success", "abandon"]
    language: str = "en"
    may_ask: bool = True
    may_go_on: bool = False


SettledState = Literal["none", "applied", "pending", "discarded", "partly"]
"""none: nothing was changed. partly: the changes that the user chose are applied, and the others are pending."""


class Settled(Contract):
    """What happened to the changes of a task at its end. The gate sends it to R7 (solver), and the FinalResult
    contains it.

    `changes` lists all changes that needed consent and the first thousand silent ones. `unlisted` is the number of
    the others. `counts` counts all changes. `applied` are the paths that were applied, including those from before
    a resumption. If it is empty and the state is `applied`, all were applied. `reason` is a text in the language of
    the task. It says why changes are pending if there is another reason than missing consent, or why they were not
    applied. `expires_at`: the time after which pending changes may be deleted (seconds since the epoch, UTC).
    `kept_under` is the id of another task (on the board). Its workspace contains the changes, which are applied
    under this id. `stopped`: commands that were still running when the task ended. `running`: those of them that
    were then started outside of the workspace because the user agreed, each as `ID: command`. `unseen`: the user's
    files that the commands of the task could not see."""

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
        """Return whether changes of the task are still pending (exit code 4)."""
        return self.state in ("pending", "partly")

    @property
    def only_conflicts(self) -> bool:
        """Return whether no pending change could be applied, because the user has since changed all of these
        files."""
        return self.waits and bool(self.conflicts) and not self.counts

    @property
    def took_effect(self) -> tuple[str, ...]:
        """Return the paths that were applied. They are `applied`, or if that is empty, the paths of all applied
        changes."""
        return self.applied or tuple(one.path for one in self.changes if self.state == "applied")


def in_order_of_danger(changes: tuple[ClassifiedChange, ...]) -> tuple[ClassifiedChange, ...]:
    """Sort changes by their danger, the most dangerous classes first, and by path within a class."""
    return tuple(sorted(changes, key=lambda one: (one.change_class.danger, one.path)))


def counts_of(changes: tuple[ClassifiedChange, ...]) -> tuple[ClassCount, ...]:
    """Count the changes of each class. The classes are ordered by danger."""
    found: dict[ChangeClass, list[ClassifiedChange]] = {}
    for one in changes:
        found.setdefault(one.change_class, []).append(one)
    told = implied(changes)
    return tuple(count_of(each, found[each], told) for each in ChangeClass if each in found)


def arrived(changes: Iterable[ClassifiedChange]) -> dict[str, str]:
    """Return the new path of each moved file together with the old one, if the change at the new path is silent."""
    listed = tuple(changes)
    silent = {one.path for one in listed if one.change_class is ChangeClass.SILENT}
    return {one.moved_to: one.path for one in listed if one.moved_to is not None and one.moved_to in silent}


def with_arrivals(paths: Iterable[str], changes: Iterable[ClassifiedChange]) -> frozenset[str]:
    """Return the paths, and the new paths of those that are moved files. If only half of a move were applied, the
    file would be lost."""
    chosen = frozenset(paths)
    return chosen | {one.moved_to for one in changes if one.moved_to is not None and one.path in chosen}


def is_gits(path: str) -> bool:
    """Return whether a path is one of git's own files in a repository."""
    return "/.git/" in f"{path}/"


def implied(changes: Sequence[ClassifiedChange]) -> frozenset[str]:
    """Return the silent paths that other changes imply. They are the targets of moves, and new directories above
    new or moved paths."""
    there = arrived(changes)
    made = [one.path for one in changes if _is_new(one)]
    above: set[str] = set()
    for path in made:
        while (path := path.rpartition("/")[0]) and path not in above:
            above.add(path)
    return frozenset((*there, *(path for path in made if path in above)))


_IN_A_CROWD = (ChangeClass.SILENT, ChangeClass.PERSISTENCE)


def crowds(changes: Iterable[ClassifiedChange]) -> dict[str, int]:
    """Return the outermost new directories that contain more than `CROWD` new files, each with the number of files.
    Examples are an environment, packages, and a clone. Files that start by themselves later are counted too."""
    made = [one for one in changes if one.change_class in _IN_A_CROWD and one.kind in _MADE]
    directories = {one.path for one in made if one.kind is ChangeKind.CREATED and one.size_after is None}
    places = (outermost(one.path, directories) for one in made if one.path not in directories)
    return {place: files for place, files in Counter(places).items() if place and files > CROWD}


def _is_new(change: ClassifiedChange) -> bool:
    """Return whether a change is a silent new file, link or directory, and not one of git's own."""
    return change.kind in _MADE and change.change_class is ChangeClass.SILENT and not is_gits(change.path)


def count_of(
    change_class: ChangeClass, changes: Sequence[ClassifiedChange], told: Collection[str] = ()
) -> ClassCount:
    """Return the number of changes in one class, which is at least one. `told` are the paths that other changes
    imply."""
    silent = [one for one in changes if change_class is ChangeClass.SILENT]
    # Several paths may belong to the same repository, whose losses are counted once.
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
