"""Feed a log's messages to new roles in order, compare their messages, with the longest wait.

    for each message of the log:  its role must publish an equal message ──► it is put into the inboxes
    a role's message that is not in the log is held, and published in order when the task goes live

The roles run as they do in any task. A role may be ahead of the log. The conductor does not go on in the log before
a role has published its next message there. If a role needs an answer from outside the stream that is not in the
log, it waits until the task goes live. In a replay, it waits for ever.
"""

from __future__ import annotations

import asyncio
from collections import defaultdict
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from datetime import datetime

from artoo.contracts.envelope import Envelope
from artoo.contracts.execution import CallStatus, ExecutionResult, ToolCalled
from artoo.contracts.recording import TaskResumed
from artoo.contracts.roles import Role
from artoo.contracts.solution import Decided, Halt, RoleFailure, StoppedBy
from artoo.contracts.steering import SampleMeasured
from artoo.ports.clock import Clock
from artoo.ports.stopwatch import Stopwatch
from artoo.ports.waiting import limits_here
from artoo.runtime.replay.difference import alike, difference_at
from artoo.runtime.replay.recording import Recording, Speaker

PLAYED = frozenset(
    {Role.PERCEIVER, Role.PLANNER, Role.DISPATCHER, Role.EXECUTOR, Role.AGENT_VALIDATOR, Role.META_VALIDATOR}
    | {Role.SOLVER}
)
"""Roles that are run again. The messages of all other roles are taken from the log."""

PATIENCE = 20.0
"""Number of seconds of real time without any progress after which a message counts as missing."""

GRACE = 2.0
"""The same limit if the role has published another message meanwhile, or waits for something that is not in the
log."""


class NoAnswer(Exception):
    """Raised at a point where, according to the log, a role failed while it was waiting. The role thus fails again.
    The role fails there again."""


@dataclass(slots=True)
class Held:
    """A message that a role has published although it is not in the log. `send` publishes it on the bus."""

    speaker: Speaker
    envelope: Envelope
    send: Callable[[], object]


@dataclass(slots=True)
class Waiter:
    """A role that waits for something that is not in the log. `what` describes it."""

    what: str
    done: asyncio.Future[None]
    limits: tuple[asyncio.Timeout, ...]


@dataclass(slots=True)
class Conductor:
    """Leads one task through its log, message by message. `repeat` puts a message into inboxes. `open_up` is called
    when the task goes live.

    If `open_up` is None, the task never goes live, and `run` returns at the end of the log.
    """

    recording: Recording
    clock: ReplayClock
    repeat: Callable[[Envelope], None]
    open_up: Callable[[], Awaitable[None]] | None = None
    patience: float = PATIENCE
    grace: float = GRACE
    live: bool = False
    opening: bool = False
    overdue: bool = False
    held: list[Held] = field(default_factory=list[Held])
    waiting: dict[Speaker, list[Waiter]] = field(default_factory=lambda: defaultdict(list))
    _unsaid: dict[tuple[Speaker, str], list[Envelope]] = field(default_factory=lambda: defaultdict(list))
    _said: set[str] = field(default_factory=set[str])
    _changed: asyncio.Event = field(default_factory=asyncio.Event)

    _request_id: str = ""
    _logged: frozenset[str] = frozenset()

    def __post_init__(self) -> None:
        self._logged = frozenset(each.id for each in self.recording.stream)
        asked = (each.id for each in self.recording.stream if each.payload is self.recording.request)
        self._request_id = next(asked, "")
        for envelope in self.recording.stream:
            if envelope.sender in PLAYED:
                self._unsaid[_speaker(envelope), envelope.kind].append(envelope)

    def is_logged(self, envelope: Envelope) -> bool:
        """Return whether the message is in the log."""
        return envelope.id in self._logged

    # --- what roles do ------------------------------------------------------------------------------------------

    def say(self, said: Envelope, send: Callable[[], object]) -> Envelope:
        """Return the message in the log that equals `said`. If there is none, hold `said` until the task is
        live."""
        speaker = _speaker(said)
        candidates = self._unsaid.get((speaker, said.kind), [])
        for index, logged in enumerate(candidates):
            if alike(logged.payload, said.payload):
                del candidates[index]
                self._said.add(logged.id)
                self._changed.set()
                return logged
        self.held.append(Held(speaker, said, send))
        self._changed.set()
        return said

    def has_result(self, speaker: Speaker) -> bool:
        """Return whether the log has a result of an attempt that the speaker has not published again."""
        return bool(self._unsaid.get((speaker, ExecutionResult.kind())))

    async def until_live(self, speaker: Speaker, what: str) -> None:
        """Wait until the task is live, because `what` is not in the log. Raises NoAnswer if the log shows that the
        role failed at this point."""
        if self.live:
            return
        waiter = Waiter(what, asyncio.get_running_loop().create_future(), limits_here())
        self.waiting[speaker].append(waiter)
        self._changed.set()
        try:
            await waiter.done
        finally:
            self.waiting[speaker].remove(waiter)

    def elapsed_ms(self) -> float | None:
        """Return the recorded time of the next decision or sample of the solver (R7). After the last one, it is
        None, or infinite if the time budget was used up.
        """
        looks = [
            each[0]
            for (speaker, kind), each in self._unsaid.items()
            if each and speaker[0] is Role.SOLVER and kind in (Decided.kind(), SampleMeasured.kind())
        ]
        first = min(looks, key=lambda each: (each.at, each.id), default=None)
        if first is not None and isinstance(first.payload, Decided | SampleMeasured):
            return first.payload.elapsed_ms
        return float("inf") if self.overdue else None

    # --- the lead -----------------------------------------------------------------------------------------------

    async def run(self) -> None:
        """Repeat the whole log, then let the task go live. Raises Difference if a role does not publish a message
        of the log again."""
        for number, envelope in enumerate(self.recording.stream):
            if envelope.sender in PLAYED:
                await self._expect(number, envelope)
            self.clock.move(envelope.at, stopped=isinstance(envelope.payload, TaskResumed))
            self.overdue = False
            self.repeat(envelope)
            await asyncio.sleep(0)
        if self.open_up is not None:
            self.opening = True
            await self.open_up()
            self._go_live()

    async def _expect(self, number: int, envelope: Envelope) -> None:
        """Return when the role has published this message again. Raises Difference if the role does not."""
        while envelope.id not in self._said:
            self._changed.clear()
            self._help(envelope)
            speaker = _speaker(envelope)
            astray = any(each.speaker == speaker for each in self.held) or bool(self.waiting.get(speaker))
            try:
                async with asyncio.timeout(self.grace if astray else self.patience):
                    await self._changed.wait()
            except TimeoutError:
                raise difference_at(self.recording.stream, number, self._instead(speaker)) from None

    def _instead(self, speaker: Speaker) -> tuple[list[Envelope], list[str]]:
        """Return the messages of a role that are not in the log, and descriptions of what the role is waiting
        for."""
        said = [each.envelope for each in self.held if each.speaker == speaker]
        return said, [waiter.what for waiter in self.waiting.get(speaker, [])]

    def _help(self, envelope: Envelope) -> None:
        """Trigger a message that was not caused by another message, but by time or by a failure outside of the
        stream."""
        match envelope.payload:
            case ToolCalled(call=call) if call.status is CallStatus.INTERRUPTED:
                self._expire(_speaker(envelope))
            case ExecutionResult(infrastructure=str()):
                self._expire(_speaker(envelope))
            case RoleFailure():
                for waiter in self.waiting.get(_speaker(envelope), []):
                    _fail(waiter)
            case _ if envelope.sender is Role.SOLVER and self._is_timers(envelope):
                self.clock.move(envelope.at)
                self.overdue = isinstance(envelope.payload, Halt) and envelope.payload.stopped_by is StoppedBy.TIME
                self.clock.wake()
            case _:
                return

    def _is_timers(self, envelope: Envelope) -> bool:
        """Return whether the solver's timer caused the message. Only in that case is the request the direct cause
        of a message of the solver.
        """
        return envelope.cause_id == self._request_id

    def _expire(self, speaker: Speaker) -> None:
        now = asyncio.get_running_loop().time()
        for waiter in self.waiting.get(speaker, []):
            for limit in waiter.limits[-1:]:
                if not limit.expired():
                    limit.reschedule(now)

    def _go_live(self) -> None:
        """Publish the held messages in order, then let the waiting roles continue."""
        self.live = True
        self.clock.go_live()
        held, self.held = self.held, []
        for each in held:
            each.send()
        for waiters in self.waiting.values():
            for waiter in waiters:
                if not waiter.done.done():
                    waiter.done.set_result(None)


def _speaker(envelope: Envelope) -> Speaker:
    return envelope.sender, envelope.subtask_id


def _fail(waiter: Waiter) -> None:
    if not waiter.done.done():
        waiter.done.set_exception(NoAnswer(f"in the log, the role failed here while it waited for {waiter.what}"))


class ReplayClock:
    """The clock of a replayed or resumed task. Implements Clock. It uses `real` after the task has gone live. Time
    in which the task was stopped does not count."""

    def __init__(self, real: Clock, start: datetime) -> None:
        self._real = real
        self._at = start
        self._passed = 0.0
        self._offset: float | None = None
        self._sleeping: set[asyncio.Future[None]] = set()

    def now(self) -> datetime:
        """Return the time of the last message that was repeated."""
        return self._at if self._offset is None else self._real.now()

    def monotonic(self) -> float:
        """Return the seconds for which the task has run."""
        return self._passed if self._offset is None else self._offset + self._real.monotonic()

    async def sleep(self, seconds: float) -> None:
        """Wait until `wake` is called. After the task has gone live, wait for the given seconds."""
        if self._offset is not None:
            await self._real.sleep(seconds)
            return
        waking = asyncio.get_running_loop().create_future()
        self._sleeping.add(waking)
        try:
            await waking
        finally:
            self._sleeping.discard(waking)

    def move(self, at: datetime, *, stopped: bool = False) -> None:
        """Set the time to `at`. `stopped`: true if the task did not run in the meantime, so that its running time
        stays the same."""
        if not stopped:
            self._passed += max(0.0, (at - self._at).total_seconds())
        self._at = at

    def wake(self) -> None:
        """End every sleep."""
        for waking in self._sleeping:
            if not waking.done():
                waking.set_result(None)

    def go_live(self) -> None:
        """Use the real clock from now on."""
        self._offset = self._passed - self._real.monotonic()
        self.wake()


class RecordedWatch(Stopwatch):
    """The solver's stopwatch. It shows the recorded time as long as `recorded` returns one."""

    def __init__(self, clock: Clock, recorded: Callable[[], float | None]) -> None:
        super().__init__(clock)
        self._recorded = recorded

    def elapsed_ms(self) -> float:
        """Return the elapsed milliseconds in the log. After the end of the log, return those of the clock."""
        recorded = self._recorded()
        return super().elapsed_ms() if recorded is None else recorded
