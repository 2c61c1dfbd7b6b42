"""The pool of effector agents: for every SubTask on the stream, one executor and one validator of its own."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterable, Callable, Coroutine
from dataclasses import dataclass

from artoo.contracts.envelope import Envelope
from artoo.contracts.execution import SubTaskOutcome
from artoo.contracts.plan import SubTask
from artoo.contracts.solution import Halt


@dataclass(frozen=True, slots=True)
class Pair:
    """A running executor with its validator, and how to take both off the stream."""

    executor: Coroutine[None, None, None]
    validator: Coroutine[None, None, None]
    close: Callable[[], None]


POOL_KINDS = frozenset({"SubTask", "SubTaskOutcome", "Halt"})
"""What the pool must see, without loss."""


class EffectorPool:
    """Starts a pair at its SubTask, ends it at its outcome, and cancels all at a Halt. Holds no role."""

    def __init__(self, messages: AsyncIterable[Envelope], make_pair: Callable[[SubTask], Pair]) -> None:
        self._messages = messages
        self._make_pair = make_pair
        self._running: dict[str, tuple[Pair, tuple[asyncio.Task[None], ...]]] = {}

    async def run(self) -> None:
        """Works until the messages end; then whatever still runs is cancelled."""
        async with asyncio.TaskGroup() as group:
            async for envelope in self._messages:
                match envelope.payload:
                    case SubTask() as subtask:
                        self._start(group, subtask)
                    case SubTaskOutcome() as outcome:
                        self._end(outcome.subtask_id, cancel=False)
                    case Halt():
                        self._end_all()
                    case _:
                        continue
            self._end_all()

    def _start(self, group: asyncio.TaskGroup, subtask: SubTask) -> None:
        pair = self._make_pair(subtask)
        tasks = (group.create_task(pair.executor), group.create_task(pair.validator))
        self._running[subtask.subtask_id] = (pair, tasks)

    def _end_all(self) -> None:
        for subtask_id in tuple(self._running):
            self._end(subtask_id, cancel=True)

    def _end(self, subtask_id: str, *, cancel: bool) -> None:
        pair, tasks = self._running.pop(subtask_id, (None, ()))
        if pair is None:
            return
        pair.close()
        if cancel:
            for task in tasks:
                task.cancel()
