"""The index of a task's log for the web UI, with line positions, folded rows, steps, and at most 16 open logs.

The index is built once and extended as the log grows. All clients share it, so ten open pages read a log only once.
"""

from __future__ import annotations

import asyncio
import re
import time
from array import array
from collections import OrderedDict, deque
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import ParamSpec, TypeVar
from weakref import WeakValueDictionary

from artoo.contracts import codec
from artoo.contracts.confirmation import ConfirmationAnswer, ConfirmationRequest
from artoo.contracts.conversation import ChecklistUpdated
from artoo.contracts.errors import MessageUnreadable
from artoo.contracts.execution import CallStatus, CorrectionSignal, SubTaskOutcome
from artoo.contracts.plan import DispatchManifest, Plan, PlanRefused, SubTask
from artoo.contracts.recording import TaskOpened, TaskResumed
from artoo.contracts.request import Interrupt, TaskSpec, UserRequest
from artoo.contracts.settling import Ending, Settled
from artoo.contracts.solution import (
    Decided,
    FinalResult,
    Halt,
    OutcomeSummary,
    PlanDirective,
    ReplanRequest,
    RoleFailure,
)
from artoo.contracts.steering import (
    PlanAnswered,
    PlanProposed,
    QuestionAnswered,
    QuestionAsked,
    SampleMeasured,
    UserMessage,
)
from artoo.tasklog.layout import GAP_KEY
from artoo.tasklog.state import Call, TaskState
from artoo.tasklog.tail import LogTail
from artoo.web.rows import Row, quiet, row_of
from artoo.web.steps import MOST_STEPS, Step, is_step, step_of

MOST_OPEN = 16
"""The most indexes that are cached without a reader. Other indexes are rebuilt on demand."""

MOST_ROWS = 400
"""The most rows of one answer."""

SLICE_SECONDS = 0.15
"""How long the reading thread reads one log before it serves other requests."""

_Asked = ParamSpec("_Asked")
_Found = TypeVar("_Found")
_KIND = re.compile(rb'"kind":"([A-Za-z]{1,64})"')

BUILT = frozenset(
    kind.__name__
    for kind in (
        *(TaskOpened, UserRequest, TaskSpec, Plan, PlanRefused, DispatchManifest, SubTask, CorrectionSignal),
        *(SubTaskOutcome, OutcomeSummary, ReplanRequest, Decided, PlanDirective, FinalResult, TaskResumed),
        *(ConfirmationRequest, ConfirmationAnswer, RoleFailure, Interrupt, Halt, Ending, Settled),
        *(QuestionAsked, QuestionAnswered, PlanProposed, PlanAnswered),
        *(UserMessage, ChecklistUpdated, SampleMeasured),
    )
)
"""Kinds whose lines are decoded to messages. A long log has tens of thousands of other lines, and decoding them
would take most of the time, so their few relevant fields are read from the raw line by regular expressions."""

_SUBTASK = re.compile(rb'"subtask_id":"([^"\\]{1,100})"')
_ACT = re.compile(rb'"act":"([^"\\]{1,200})"')
_USAGE = re.compile(rb'"(prompt|completion|cached)_tokens":(\d{1,12})')
_CALL = re.compile(rb'"tool":"([^"\\]{1,60})","input":"((?:[^"\\]|\\.){0,120})')


@dataclass(frozen=True, slots=True)
class Fold:
    """A run of quiet lines, which the short view folds, with the number of its first line and the line count."""

    first: int
    count: int


class ShortView:
    """The short view of a log, with an entry for each important line, and an entry for each run of quiet lines."""

    def __init__(self) -> None:
        self._first = array("Q")
        """The first line of every entry. With its flag an entry takes only nine bytes, so a million events fit."""
        self._quiet = bytearray()
        self._lines = 0

    @property
    def count(self) -> int:
        """Return the number of entries so far."""
        return len(self._first)

    def add(self, *, quiet: bool) -> None:
        """Add the next line of the log."""
        if not (quiet and self._quiet and self._quiet[-1]):
            self._first.append(self._lines)
            self._quiet.append(quiet)
        self._lines += 1

    def entries(self, first: int, count: int) -> list[Fold]:
        """Return these entries, as far as they exist. The entry of an important line has the count 0."""
        found = list[Fold]()
        for place in range(first, min(first + count, self.count)):
            line = self._first[place]
            after = self._first[place + 1] if place + 1 < self.count else self._lines
            found.append(Fold(line, after - line if self._quiet[place] else 0))
        return found


class TaskIndex:
    """The index of one log, as far as it was read. Methods block, and only the thread of `Indexes` calls them."""

    def __init__(self, directory: Path) -> None:
        self._tail = LogTail(directory)
        self._short = ShortView()
        self.state = TaskState()
        self.version = 0
        """A counter that increases with every line that can change the drawings."""
        self.counted = 0
        """The number of lines in the views, which may be less than the number of lines read."""
        self.step_count = 0
        self._steps = deque[tuple[int, Step | None]](maxlen=MOST_STEPS)
        """The latest steps with their lines, each None until a page shows it."""

    @property
    def short_count(self) -> int:
        """Return the number of entries of the short view."""
        return self._short.count

    def advance(self, seconds: float = SLICE_SECONDS) -> bool:
        """Read new lines for about `seconds`. Returns True at the end of the log."""
        until = time.monotonic() + seconds
        while True:
            lines = self._tail.read()
            for line in lines:
                self._count(line)
            if not lines:
                return True
            if time.monotonic() >= until:
                return False

    def rows(self, first: int, count: int) -> list[Row]:
        """Return `count` lines from line `first`, as far as they exist, at most `MOST_ROWS`."""
        first = min(max(0, first), self.counted)
        return self._rows(range(first, min(first + min(count, MOST_ROWS), self.counted)))

    def short(self, first: int, count: int) -> list[Row | Fold]:
        """Return `count` entries of the short view from entry `first`, if they exist, at most `MOST_ROWS`."""
        entries = self._short.entries(max(0, first), min(count, MOST_ROWS))
        rows = iter(self._rows([one.first for one in entries if not one.count]))
        return [one if one.count else next(rows) for one in entries]

    def _rows(self, numbers: Sequence[int]) -> list[Row]:
        return [row_of(number, line) for number, line in zip(numbers, self._tail.lines(numbers), strict=True)]

    def fields(self, number: int) -> dict[str, object]:
        """Return all fields of one line. Raises IndexError, MessageUnreadable, OSError."""
        if number >= self.counted:
            raise IndexError(f"this log has no line {number}")
        return self._tail.fields(number)

    def steps(self) -> list[Step]:
        """Return the latest commands and texts of the executors, oldest first, at most `MOST_STEPS`."""
        for place, (number, known) in enumerate(self._steps):
            if known is None:
                self._steps[place] = number, step_of(number, self._tail.fields(number))
        return [step for _, step in self._steps if step is not None]

    def _count(self, line: bytes) -> None:
        number = self.counted
        # The kind is searched only at the beginning of a line, because a user's text could contain the pattern.
        found = _KIND.search(line, 0, 400)
        kind = GAP_KEY if found is None else found[1].decode()
        try:
            self._tell(kind, line)
        except MessageUnreadable:
            self.state.unreadable += 1
        if is_step(kind, line):
            self._steps.append((number, None))
            self.step_count += 1
        self._short.add(quiet=quiet(kind, line))
        self.counted = number + 1

    def _tell(self, kind: str, line: bytes) -> None:
        if kind in BUILT:
            self.state.apply(codec.from_fields(self._tail.whole(line)))
        elif not _counted(self.state, kind, line):
            return
        self.version += 1


def _counted(state: TaskState, kind: str, line: bytes) -> bool:
    """Update the state from a line that is not decoded. Returns False if the line does not change the state."""
    if kind == "ModelCalled":
        usage = dict(reversed(_USAGE.findall(line)[:3]))
        state.add_model_call(*(int(usage.get(name, 0)) for name in (b"prompt", b"cached", b"completion")))
    elif kind in ("ToolStarted", "ToolCalled"):
        act, call = _found(_ACT, line), _CALL.search(line)
        tool, given = ("", "") if call is None else (each.decode("utf-8", "replace") for each in call.groups())
        known = Call(act, _found(_SUBTASK, line), tool, given)
        if kind == "ToolStarted":
            state.begin_call(known)
        else:
            known.status = CallStatus.OK if b'"status":"ok"' in line else CallStatus.ERROR
            state.end_call(known)
    elif kind == "ExecutionResult":
        state.begin_check(_found(_SUBTASK, line))
    elif kind == GAP_KEY:
        state.missing += 1
    else:
        return False
    return True


def _found(pattern: re.Pattern[bytes], line: bytes) -> str:
    found = pattern.search(line)
    return "" if found is None else found[1].decode("utf-8", "replace")


class Indexes:
    """The indexes of recently shown tasks, latest last, and the one thread that reads logs.

    There is only one thread, because the C library keeps the peak memory of each thread, and several threads would
    keep several peaks (docs/design/web.md).
    """

    def __init__(self) -> None:
        self._open: OrderedDict[Path, TaskIndex] = OrderedDict()
        self._alive: WeakValueDictionary[Path, TaskIndex] = WeakValueDictionary()
        """All indexes in use, so that a task with an open stream is not read from its beginning again."""
        self._reader = ThreadPoolExecutor(1, "artoo-page-reader")

    def of(self, directory: Path) -> TaskIndex:
        """Return the index of the log in this directory, and build it if necessary."""
        # A stream may still hold an index that was evicted from `_open`, so the index is reused.
        index = self._alive.get(directory)
        if index is None:
            index = self._alive[directory] = TaskIndex(directory)
        self._open[directory] = index
        self._open.move_to_end(directory)
        while len(self._open) > MOST_OPEN:
            self._open.popitem(last=False)
        return index

    async def advanced(self, directory: Path, seconds: float = SLICE_SECONDS) -> tuple[TaskIndex, bool]:
        """Advance the index for about `seconds`. Returns the index, and True at the end of the log."""
        index = self.of(directory)
        return index, await self.read(index.advance, seconds)

    async def read(self, look: Callable[_Asked, _Found], *asked: _Asked.args, **named: _Asked.kwargs) -> _Found:
        """Run `look`, which reads files, in the reading thread, and return its result."""
        return await asyncio.get_running_loop().run_in_executor(self._reader, partial(look, *asked, **named))

    def close(self) -> None:
        """Stop the reading thread."""
        self._reader.shutdown(wait=False, cancel_futures=True)
