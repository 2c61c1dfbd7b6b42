"""The pool of effector agents: for every SubTask on the stream, one executor and one validator of its own."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterable, Callable, Coroutine
from dataclasses import dataclass, field

from artoo.contracts.envelope import Envelope
from artoo.contracts.execution import SubTaskOutcome
from artoo.contracts.plan import SubTask
from artoo.contracts.solution import Halt

Life = Coroutine[None, None, None]


@dataclass(frozen=True, slots=True)
class Pair:
    """A running executor, what brings its validator to life, and how to take both off the stream."""

    executor: Life
    validator: Callable[[], Life]
    close: Callable[[], None]


@dataclass(slots=True)
class _Running:
    pair: Pair
    tasks: list[asyncio.Task[None]] = field(default_factory=list[asyncio.Task[None]])


WAVE = 8
"""Executors that are started in one turn of the event loop. Tasks that start together take every step together: of
64, no question would leave before the last prompt is made, and the server would wait for all of them."""
_TURNS_TO_LEAVE = 4
"""Turns from an executor's start until its question is with the operating system."""
_QUIET_TURNS = 4
"""Turns without another SubTask after which the validators are made: there is time while the models think."""

POOL_KINDS = frozenset({"SubTask", "SubTaskOutcome", "Halt"})
"""What the pool must see, without loss."""


class EffectorPool:
    """Starts a pair at its SubTask, ends it at its outcome, and cancels all at a Halt. Holds no role.

    A validator is made a little after its executor; what was said to it before is held for it on the stream.
    """

    def __init__(self, messages: AsyncIterable[Envelope], make_pair: Callable[[SubTask], Pair]) -> None:
        self._messages = messages
        self._make_pair = make_pair
        self._running: dict[str, _Running] = {}
        self._alone: list[str] = []
        self._started = 0

    async def run(self) -> None:
        """Works until the messages end; then whatever still runs is cancelled."""
        async with asyncio.TaskGroup() as group:
            async for envelope in self._messages:
                match envelope.payload:
                    case SubTask() as subtask:
                        self._start(group, subtask)
                        await self._let_leave()
                    case SubTaskOutcome() as outcome:
                        self._end(outcome.subtask_id, cancel=False)
                    case Halt():
                        self._end_all()
                    case _:
                        continue
            self._end_all()

    def _start(self, group: asyncio.TaskGroup, subtask: SubTask) -> None:
        pair = self._make_pair(subtask)
        self._running[subtask.subtask_id] = _Running(pair, [group.create_task(pair.executor)])
        self._started += 1
        self._alone.append(subtask.subtask_id)
        if len(self._alone) == 1:
            group.create_task(self._add_validators(group))

    async def _let_leave(self) -> None:
        """After each wave, lets its questions go out before the next one is started."""
        if self._started % WAVE == 0:
            await _turns(_TURNS_TO_LEAVE)

    async def _add_validators(self, group: asyncio.TaskGroup) -> None:
        """Gives every executor its validator, when no more executors are being started."""
        before = -1
        while before != self._started:
            before = self._started
            await _turns(_QUIET_TURNS)
        alone, self._alone = self._alone, []
        for subtask_id in alone:
            running = self._running.get(subtask_id)
            if running is not None:
                running.tasks.append(group.create_task(running.pair.validator()))

    def _end_all(self) -> None:
        for subtask_id in tuple(self._running):
            self._end(subtask_id, cancel=True)

    def _end(self, subtask_id: str, *, cancel: bool) -> None:
        running = self._running.pop(subtask_id, None)
        if running is None:
            return
        running.pair.close()
        if cancel:
            for task in running.tasks:
                task.cancel()


async def _turns(count: int) -> None:
    for _ in range(count):
        await asyncio.sleep(0)
