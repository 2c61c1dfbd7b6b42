"""The index of one task's log for the page: places of lines, which of them matter, and the task's state.

Built once and carried on as the log grows, for all pages that look at the task: ten pages read a log once.
"""

from __future__ import annotations

import asyncio
import re
import time
from array import array
from collections import OrderedDict
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

MOST_OPEN = 16
"""The most indexes that are kept without a reader; others are built again when they are wanted."""

MOST_ROWS = 400
"""Rows of one answer."""

SLICE_SECONDS = 0.15
"""How long a reading thread goes on before others have their turn."""

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
"""Kinds whose messages are built. The others come by the ten thousand, and building each of them would take most of
the time of opening a long log: what counts of them is read from the line as it is."""

_SUBTASK = re.compile(rb'"subtask_id":"([^"\\]{1,100})"')
_ACT = re.compile(rb'"act":"([^"\\]{1,200})"')
_USAGE = re.compile(rb'"(prompt|completion|cached)_tokens":(\d{1,12})')
_CALL = re.compile(rb'"tool":"([^"\\]{1,60})","input":"((?:[^"\\]|\\.){0,120})')


@dataclass(frozen=True, slots=True)
class Fold:
    """A run of lines that say little, in the short view: the first one's number, and how many."""

    first: int
    count: int


class ShortView:
    """The entries of a log that matter, and the runs of lines that do not, as the log grows line by line."""

    def __init__(self) -> None:
        self._first = array("Q")
        """The first line of every entry: nine bytes an entry, with its flag, for a log of a million events."""
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
        """Return these entries, as far as they are there. One of a single line that matters has the count 0."""
        found = list[Fold]()
        for place in range(first, min(first + count, self.count)):
            line = self._first[place]
            after = self._first[place + 1] if place + 1 < self.count else self._lines
            found.append(Fold(line, after - line if self._quiet[place] else 0))
        return found


class TaskIndex:
    """One log, as far as it was read. Its methods block; one thread at a time calls them (`Indexes.read`)."""

    def __init__(self, directory: Path) -> None:
        self._tail = LogTail(directory)
        self._short = ShortView()
        self.state = TaskState()
        self.version = 0
        """Grows with everything that a drawing could show."""
        self.counted = 0
        """Lines that are in the views; those that were read and are not yet counted come later."""

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
        """Return these lines, as far as they exist, at most `MOST_ROWS`."""
        first = min(max(0, first), self.counted)
        return self._rows(range(first, min(first + min(count, MOST_ROWS), self.counted)))

    def short(self, first: int, count: int) -> list[Row | Fold]:
        """Return entries of the short view."""
        entries = self._short.entries(max(0, first), min(count, MOST_ROWS))
        rows = iter(self._rows([one.first for one in entries if not one.count]))
        return [one if one.count else next(rows) for one in entries]

    def _rows(self, numbers: Sequence[int]) -> list[Row]:
        return [row_of(number, line) for number, line in zip(numbers, self._tail.lines(numbers), strict=True)]

    def fields(self, number: int) -> dict[str, object]:
        """Return one line, whole. Raises IndexError, MessageUnreadable, OSError."""
        if number >= self.counted:
            raise IndexError(f"this log has no line {number}")
        return self._tail.fields(number)

    def _count(self, line: bytes) -> None:
        number = self.counted
        # The kind stands at the beginning of a line; a text of the user could contain the same characters.
        found = _KIND.search(line, 0, 400)
        kind = GAP_KEY if found is None else found[1].decode()
        try:
            self._tell(kind, line)
        except MessageUnreadable:
            self.state.unreadable += 1
        self._short.add(quiet=quiet(kind, line))
        self.counted = number + 1

    def _tell(self, kind: str, line: bytes) -> None:
        if kind in BUILT:
            self.state.apply(codec.from_fields(self._tail.whole(line)))
        elif not _counted(self.state, kind, line):
            return
        self.version += 1


def _counted(state: TaskState, kind: str, line: bytes) -> bool:
    """Take from a line of another kind what counts. False: nothing does."""
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
    """The indexes of the tasks that are looked at now, latest last, and the one thread that reads logs.

    One, because what reading takes for a moment stays with its thread: each of several would keep its largest
    (docs/design/web.md).
    """

    def __init__(self) -> None:
        self._open: OrderedDict[Path, TaskIndex] = OrderedDict()
        self._alive: WeakValueDictionary[Path, TaskIndex] = WeakValueDictionary()
        """All indexes in use. A followed task must not be read from its beginning at each look."""
        self._reader = ThreadPoolExecutor(1, "artoo-page-reader")

    def of(self, directory: Path) -> TaskIndex:
        """Return the index of the log in this directory, and build it if necessary."""
        # An evicted index lives on while a stream reads it, and is found again here.
        index = self._alive.get(directory)
        if index is None:
            index = self._alive[directory] = TaskIndex(directory)
        self._open[directory] = index
        self._open.move_to_end(directory)
        while len(self._open) > MOST_OPEN:
            self._open.popitem(last=False)
        return index

    async def advanced(self, directory: Path, seconds: float = SLICE_SECONDS) -> tuple[TaskIndex, bool]:
        """Advance the index for about `seconds`. Returns it, and whether it has reached the end of the log."""
        index = self.of(directory)
        return index, await self.read(index.advance, seconds)

    async def read(self, look: Callable[_Asked, _Found], *asked: _Asked.args, **named: _Asked.kwargs) -> _Found:
        """Run `look`, which reads files, in the reading thread, and return its result."""
        return await asyncio.get_running_loop().run_in_executor(self._reader, partial(look, *asked, **named))

    def close(self) -> None:
        """Stop the reading thread."""
        self._reader.shutdown(wait=False, cancel_futures=True)
