"""The history of a task's changes after its end, and the present state for later prompts.

The log ends with the task. A later apply, discard or undo adds a line to `settled.jsonl`, and pending changes are
in a workspace. Both exist only on this machine.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

from artoo.contracts.errors import SandboxError
from artoo.contracts.request import Act, Turn
from artoo.contracts.settling import ClassCount, Settled, implied
from artoo.tasklog.reader import summary_of
from artoo.workspace.directory import Workspaces
from artoo.workspace.settlement.history import SettledRecord, settled_records
from artoo.workspace.settlement.pending import PendingRecord, read_pending

State = Literal["waits", "waited", "applied", "part applied", "discarded", "expired", "put back"]
"""The present state of a task's changes. `waited`: they were pending at the end of the task, and it is not recorded
what happened later."""


@dataclass(frozen=True, slots=True)
class Became:
    """One event in the history of a task's changes. `at`: the time in seconds since the epoch. None means at the
    end of the task. `paths` may contain only the first of all `count` paths. `left`: the number of paths that could
    not be restored.
    """

    act: Act
    at: float | None = None
    paths: tuple[str, ...] = ()
    count: int = 0
    left: int = 0


@dataclass(frozen=True, slots=True)
class PendingSummary:
    """The pending changes of a task. The fields are their counts, the times since when and until when they are
    pending (None: without an end), the number of further paths in conflict, and the reason in the language of the
    request.
    """

    counts: tuple[ClassCount, ...] = ()
    since: float | None = None
    until: float | None = None
    conflicts: int = 0
    reason: str = ""


@dataclass(frozen=True, slots=True)
class Afterwards:
    """The events in the history of a task's changes, oldest first, and their present state. `waited`: the changes
    that were pending at the end of the task, if no later event is recorded.
    """

    became: tuple[Became, ...] = ()
    waits: PendingSummary | None = None
    waited: PendingSummary | None = None

    @property
    def state(self) -> State | None:
        """Return the present state; None if the task changed nothing."""
        if self.waits is not None:
            return "waits"
        if self.waited is not None:
            return "waited"
        if not self.became:
            return None
        last = self.became[-1].act
        if last == "undone":
            return "put back"
        stands = False
        for one in self.became:
            stands = one.act == "applied" or (stands and one.act != "undone")
        return "part applied" if stands and last != "applied" else last


@dataclass(frozen=True, slots=True)
class SettledBooks:
    """The history of all tasks of one home."""

    acts: Mapping[str, Sequence[SettledRecord]] = field(default_factory=dict[str, Sequence[SettledRecord]])
    waiting: Mapping[str, PendingRecord | None] = field(default_factory=dict[str, PendingRecord | None])

    @classmethod
    def of(cls, home: Path) -> SettledBooks:
        """Read the history as it is now. Entries that cannot be read are skipped. Blocking."""
        acts: dict[str, list[SettledRecord]] = defaultdict(list)
        waiting: dict[str, PendingRecord | None] = {}
        try:
            for record in settled_records(home):
                acts[record.task_id].append(record)
            places = [place for place in Workspaces(home).listed() if not place.is_brought]
        except (OSError, SandboxError):
            return cls(acts, waiting)
        for place in places:
            try:
                waiting[place.task_id] = read_pending(place)
            except SandboxError:
                waiting[place.task_id] = None
        return cls(acts, waiting)

    def afterwards(self, task_id: str, ended: Settled | None) -> Afterwards:
        """Return the history of one task. `ended`: the changes in the task's result. It is None if the task has not
        ended."""
        # The work on a board task is recorded under the id of the board task. If a run was discarded earlier, that
        # is recorded under the id of the run.
        settled = ended or Settled()
        own = self.acts.get(task_id, ())
        name = task_id if own else settled.kept_under or task_id
        acts = self.acts.get(name, ())
        became = [*_at_its_end(settled), *map(_later, acts)]
        if name in self.waiting:
            record = self.waiting[name]
            if record is not None and not record.cut_off:
                now = PendingSummary(record.counts, record.since, record.due, record.conflicts, record.reason)
                return Afterwards(tuple(became), now)
            if settled.waits:
                clashes = len(settled.conflicts)
                now = PendingSummary(settled.counts, None, settled.expires_at, clashes, settled.reason)
                return Afterwards(tuple(became), now)
        elif settled.waits and not acts:
            return Afterwards(tuple(became), waited=PendingSummary(settled.counts))
        return Afterwards(tuple(became))


def _at_its_end(settled: Settled) -> tuple[Became, ...]:
    if settled.state == "discarded":
        return (Became("discarded"),)
    told = implied(settled.changes)
    paths = tuple(path for path in settled.took_effect if path not in told)
    count = len(paths) + (settled.unlisted if settled.state == "applied" else 0)
    return (Became("applied", None, paths, count),) if count else ()


def _later(record: SettledRecord) -> Became:
    act = _ACTS.get(record.what, "applied")
    return Became(act, record.at, record.paths, record.count, record.left)


_ACTS: Mapping[str, Act] = {"discarded": "discarded", "expired": "expired", "undone": "undone"}


MOST_PATHS = 200
"""Maximum number of paths of one turn that are passed on. A prompt lists fewer of them."""


def with_what_became(home: Path, history: Sequence[Turn], project: Path) -> tuple[Turn, ...]:
    """Return the turns, each with the present state of its changes. The state lists the paths that are pending and
    those that were applied, discarded or restored, relative to the project. Blocking.
    """
    # The state may change between two requests, so it is read again each time.
    if not any(turn.task_id for turn in history):
        return tuple(history)
    books = SettledBooks.of(home)
    return tuple(_looked_up(home, books, turn, f"{project}/") for turn in history)


def _looked_up(home: Path, books: SettledBooks, turn: Turn, project: str) -> Turn:
    told = summary_of(home, turn.task_id) if turn.task_id is not None else None
    # the task has not ended, or its log no longer exists
    if told is None or told.result is None:
        return turn
    changes = told.result.changes
    after = books.afterwards(told.task_id, changes)
    known = implied(changes.changes)
    settled = known | {path for one in after.became if one.act == "applied" for path in one.paths}
    left = [one.path for one in changes.changes if one.path not in settled] if after.waits is not None else []
    became = tuple(
        (one.act, _named([path for path in one.paths if path not in known], project)) for one in after.became
    )
    return turn.model_copy(update={"waits": _named(left, project), "became": became})


def _named(paths: Sequence[str], project: str) -> tuple[str, ...]:
    return tuple(path.removeprefix(project) for path in paths[:MOST_PATHS])
