"""Start an executor and a validator for each SubTask, and cancel them at a Halt.

Each SubTask gets an executor and a validator of its own.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterable, Callable, Coroutine
from dataclasses import dataclass

from artoo.contracts.envelope import Envelope
from artoo.contracts.execution import SubTaskOutcome
from artoo.contracts.plan import SubTask
from artoo.contracts.solution import Halt

Life = Coroutine[None, None, None]

POOL_KINDS = frozenset({"SubTask", "SubTaskOutcome", "Halt"})
"""The kinds of messages that the pool must receive without loss."""


@dataclass(frozen=True, slots=True)
class Pair:
    """The coroutines of an executor and its validator, and a function that closes their ports."""

    executor: Life
    validator: Life
    close: Callable[[], None]


class EffectorPool:
    """Starts a pair for each SubTask, ends the pair when the outcome is published, and cancels all pairs at a Halt.
    It is not a role."""

    def __init__(self, messages: AsyncIterable[Envelope], make_pair: Callable[[SubTask], Pair]) -> None:
        self._messages = messages
        self._make_pair = make_pair
        self._running: dict[str, tuple[Pair, tuple[asyncio.Task[None], ...]]] = {}

    async def run(self) -> None:
        """Work until there are no more messages. Then cancel the pairs that are still running."""
        async with asyncio.TaskGroup() as group:
            async for envelope in self._messages:
                match envelope.payload:
                    case SubTask(subtask_id=subtask_id) as subtask:
                        pair = self._make_pair(subtask)
                        lives = (group.create_task(pair.executor), group.create_task(pair.validator))
                        self._running[subtask_id] = pair, lives
                    case SubTaskOutcome(subtask_id=subtask_id) if subtask_id in self._running:
                        self._running.pop(subtask_id)[0].close()
                    case Halt():
                        self._end_all()
                    case _:
                        continue
            self._end_all()

    def _end_all(self) -> None:
        for pair, lives in self._running.values():
            pair.close()
            for life in lives:
                life.cancel()
        self._running.clear()
