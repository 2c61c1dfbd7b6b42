"""When a sandbox is made for a layer's next command: in the pause after the last one, and not for ever."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Coroutine
from dataclasses import dataclass
from typing import Any

from artoo.contracts.errors import SandboxError
from artoo.world.runner import Standing
from artoo.world.stage import Stage

logger = logging.getLogger(__name__)

_PAUSE_SECONDS = 0.005
"""A command that follows at once is not kept waiting for what would come too late for it."""
_LONGEST_SECONDS = 60.0
"""A sandbox that nobody has used until then holds the person's directories for nothing."""


@dataclass(frozen=True, slots=True)
class Ready:
    """A layer of its own for the next command, and the sandbox that stands by over it."""

    stage: Stage
    standing: Standing

    async def dismiss(self) -> None:
        """Ends it, and leaves nothing."""
        try:
            await self.standing.dismiss()
        finally:
            await asyncio.to_thread(self.stage.discard)


Make = Callable[[], Coroutine[Any, Any, Ready]]


class Reserve:
    """At most one sandbox, for one layer. While one may be there, nobody may change the layer: whoever will takes
    or dismisses it before. Used in one event loop.
    """

    def __init__(self) -> None:
        self._make: Make | None = None
        self._timer: asyncio.TimerHandle | None = None
        self._making: asyncio.Task[Ready] | None = None
        self._dismissing: asyncio.Task[None] | None = None

    @property
    def was_used(self) -> bool:
        """Whether anything was ever made here, or is to be."""
        return self._make is not None

    def soon(self, make: Make) -> None:
        """To be made when there is a pause; the one before it was taken."""
        self._make = make
        self.again()

    def again(self) -> None:
        """The same once more, if there was one: it was dismissed, for the layer had to be changed."""
        if self._make is not None:
            self._timer = asyncio.get_running_loop().call_later(_PAUSE_SECONDS, self._begin, self._make)

    def _begin(self, make: Make) -> None:
        self._making = asyncio.create_task(make())
        self._timer = asyncio.get_running_loop().call_later(_LONGEST_SECONDS, self._expire)

    def _expire(self) -> None:
        self._dismissing = asyncio.create_task(self.dismiss())

    async def take(self) -> Ready | None:
        """What there is, as soon as it is made; it is the caller's now."""
        if self._timer is not None:
            self._timer.cancel()
        dismissing = self._dismissing
        if dismissing is not None and dismissing is not asyncio.current_task():
            await asyncio.wait({dismissing})
        making = self._making
        if making is None:
            return None
        await asyncio.wait({making})  # who is cancelled here leaves it
        if self._making is not making or making.cancelled():  # somebody else was quicker; the loop ends
            return None
        self._making = None
        problem = making.exception()
        if not isinstance(problem, SandboxError | OSError):
            return making.result()  # raises what no machine is to blame for
        logger.info("no sandbox stands by: %s", problem)  # the command that comes meets the same, and says so
        return None

    async def dismiss(self) -> None:
        """Ends what there is, and what is about to be made."""
        ready = await self.take()
        if ready is not None:
            await ready.dismiss()
