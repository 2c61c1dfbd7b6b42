"""End a task's workspace: R7 says that the task ends, the gate applies its changes and reports that.

    R7 ─ Ending ─► gate ─ ConfirmationRequest (with a Review) ─► user ─ ConfirmationAnswer ─► gate ─ Settled ─► R7

The difference is settled as a whole (SPEC section 8): when one change needs consent, all of it waits.
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
    """The meaning of a change for the user, most dangerous first. All but `silent` need consent."""

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
        """Return the rank of danger, 0 for the most dangerous: the order in which changes are shown."""
        return _DANGER[self]


_DANGER: dict[ChangeClass, int] = {each: number for number, each in enumerate(ChangeClass)}

# Classes whose changes are shown one by one, however many there are; of the modes only `all` covers them.
BY_NAME = frozenset({ChangeClass.DELETION, ChangeClass.PERSISTENCE, ChangeClass.HISTORY, ChangeClass.SPECIAL})


_MADE = frozenset({ChangeKind.CREATED, ChangeKind.LINK})


class ApplyMode(StrEnum):
    """The changes that may take effect without approval.

    `new`: silent changes. `edits`: edits of ordinary project files too. `ask`: nothing. `live`: as `edits`, and at
    the end of every turn instead of at the end of the task. `all`: everything in project and output folder; for
    containers and CI only, so it is never set in a file.
    """

    NEW = "new"
    EDITS = "edits"
    ASK = "ask"
    LIVE = "live"
    ALL = "all"

    @property
    def unasked(self) -> frozenset[ChangeClass]:
        """Return the classes that are applied without approval, if all of a task's changes are of such."""
        return _UNASKED[self]


_UNASKED = {
    ApplyMode.NEW: frozenset({ChangeClass.SILENT}),
    ApplyMode.EDITS: frozenset({ChangeClass.SILENT, ChangeClass.EDIT}),
    ApplyMode.ASK: frozenset[ChangeClass](),
    ApplyMode.LIVE: frozenset({ChangeClass.SILENT, ChangeClass.EDIT}),
    ApplyMode.ALL: frozenset(ChangeClass) - {ChangeClass.ELSEWHERE},
}


class Rewritten(BaseModel):
    """Describe the loss of a repository, as git says it: how many of its branches and tags are moved back, aside or
    removed, and how many commits have no name any more (counted up to 1,000). `repository`: its directory,
    absolute.
    """

    model_config = ConfigDict(frozen=True, extra="forbid", defer_build=True)

    repository: str
    branches: int = Field(default=0, ge=0)
    tags: int = Field(default=0, ge=0)
    commits: int = Field(default=0, ge=0)


class ClassifiedChange(BaseModel):
    """Describe one path of a difference. Sizes in bytes (None where there is no file).

    `reason` says why it needs consent, in English (`tools.gate_words.why` translates); empty for a silent one.
    `moved_to`: the absolute printable path at which its old content stands now, and which ends the reason. `detail`
    is what no other field can say: a link's target, the old and the new mode. `rewrites`: of one of git's files,
    what its repository loses by them all. `diff` is filled in reviews only.
    """

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

    For history also what `Rewritten` counts, of all repositories together, because a branch that is moved back
    changes many of git's files.

    Among `count`: `moved` only stand elsewhere now. Of what is silent, `harmless` are no new files (git's own, what
    was there before), and `implied` are told by others: directories above new files, and where moved ones arrive.
    """

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
        """Return what a user would count, each by its name: that of the class, `moved`, `harmless`."""
        own = self.count - self.moved - self.harmless - self.implied
        named = ((self.change_class.value, own), ("moved", self.moved), ("harmless", self.harmless))
        return tuple((name, number) for name, number in named if number)


class Review(Contract):
    """Show a whole difference, shown to a user. Part of a ConfirmationRequest.

    `counts` and `changes` are in order of danger; `changes` is complete. `conflicts` are paths that the person has
    changed meanwhile: they are not part of what an approval applies. `unfinished`: the task was abandoned, so no
    standing permission may answer. `went_out`: data that was sent, which discarding does not undo.
    """

    task_id: str
    counts: tuple[ClassCount, ...] = ()
    changes: tuple[ClassifiedChange, ...] = ()
    conflicts: tuple[Conflict, ...] = ()
    unfinished: bool = False
    went_out: tuple[str, ...] = ()


class Ending(Contract):
    """Report that the task has decided its end; its difference is to be settled. R7 → gate.

    `may_ask` False: no user is asked (an interrupt, or no time is left); what needs consent is kept pending.
    `may_go_on`: an abandoned task may be resumed, and its subtasks go on in the forks that they left.
    """

    task_id: str
    directive: Literal["accept", "success", "abandon"]
    language: str = "en"
    may_ask: bool = True
    may_go_on: bool = False


SettledState = Literal["none", "applied", "pending", "discarded", "partly"]
"""none: nothing was changed. partly: the person chose a part, it is applied, and the rest is pending."""


class Settled(Contract):
    """Report the outcome of a task's changes. Gate → R7, and in the FinalResult.

    `changes` lists all that needed consent, and of the silent ones the first thousand (`unlisted` counts the rest);
    `counts` counts all. `applied` are the paths that took effect, also in an earlier life of the task (empty means
    all when the state is `applied`). `reason` says in the task's language why it waits, if not for
    consent alone, or why something was not applied. `expires_at`: seconds since the epoch (UTC) after which a
    pending difference may be dropped. `kept_under` is the task in whose view it lies, and under whose id it is
    settled, where that is another: a task of the board. `stopped`: commands that still ran at the task's end;
    `running`: commands that were then started outside the workspace because the user agreed, each as `ID: command`.
    `unseen`: what its commands could not see of the user's files.
    """

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
        """Return the paths that were applied, also where `applied` leaves them to be those of `changes`."""
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
    """Return where moved files are now, and where they were: these are not new. Only what is silent there."""
    listed = tuple(changes)
    silent = {one.path for one in listed if one.change_class is ChangeClass.SILENT}
    return {one.moved_to: one.path for one in listed if one.moved_to is not None and one.moved_to in silent}


def with_arrivals(paths: Iterable[str], changes: Iterable[ClassifiedChange]) -> frozenset[str]:
    """Return the paths, and for moved files among them the place where they are now: half of a move is a loss."""
    chosen = frozenset(paths)
    return chosen | {one.moved_to for one in changes if one.moved_to is not None and one.path in chosen}


def is_gits(path: str) -> bool:
    """Check whether a path is one of git's own, in a repository."""
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
    """Return outermost new directories with more than `CROWD` new files in them (an environment, packages, a
    clone), and how many these are. No path that needs consent is among them."""
    made = [one for one in changes if one.change_class is ChangeClass.SILENT and one.kind in _MADE]
    directories = {one.path for one in made if one.kind is ChangeKind.CREATED and one.size_after is None}
    places = (outermost(one.path, directories) for one in made if one.path not in directories)
    return {place: files for place, files in Counter(places).items() if place and files > CROWD}


def _is_new(change: ClassifiedChange) -> bool:
    """Check whether a user would call it new, or it is a directory that holds such."""
    return change.kind in _MADE and change.change_class is ChangeClass.SILENT and not is_gits(change.path)


def count_of(
    change_class: ChangeClass, changes: Sequence[ClassifiedChange], told: Collection[str] = ()
) -> ClassCount:
    """Count these, at least one, all of one class. `told`: what others of the difference imply."""
    silent = [one for one in changes if change_class is ChangeClass.SILENT]
    # Several paths may belong to one repository, whose losses count once.
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
