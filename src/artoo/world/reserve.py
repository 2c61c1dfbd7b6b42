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


class _Held:
    """One that is made, and held until it is taken, nobody has wanted it for long, or the loop ends.

    It is a task that holds it: whoever ends the loop ends its tasks first, so that nothing is left of it then.
    """

    def __init__(self, make: Make) -> None:
        self._ready: Ready | None = None
        self._made = asyncio.Event()
        self._taken = asyncio.Event()
        self._task = asyncio.create_task(self._hold(make))
        self._task.add_done_callback(lambda _: self._made.set())  # it may be cancelled before it begins

    async def _hold(self, make: Make) -> None:
        try:
            self._ready = await make()
            self._made.set()
            async with asyncio.timeout(_LONGEST_SECONDS):
                await self._taken.wait()
        except TimeoutError:
            pass
        except (SandboxError, OSError) as problem:  # the command that comes meets the same, and says so
            logger.info("no sandbox stands by: %s", problem)
        finally:
            ready, self._ready = self._ready, None
            if ready is not None:
                await ready.dismiss()

    async def take(self) -> Ready | None:
        """It, as soon as it is made, or nothing once nothing is left of it. Who is cancelled here leaves it."""
        await self._made.wait()
        ready, self._ready = self._ready, None
        if ready is not None:
            self._taken.set()
            return ready
        await asyncio.wait({self._task})
        if not self._task.cancelled():
            self._task.result()  # raises what no machine is to blame for
        return None


class Reserve:
    """At most one sandbox, for one layer. While one may be there, nobody may change the layer: whoever will takes
    or dismisses it before. Used in one event loop.
    """

    def __init__(self) -> None:
        self._make: Make | None = None
        self._timer: asyncio.TimerHandle | None = None
        self._held: _Held | None = None

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
        self._held = _Held(make)

    async def take(self) -> Ready | None:
        """What there is, as soon as it is made; it is the caller's now."""
        if self._timer is not None:
            self._timer.cancel()
        held = self._held
        if held is None:
            return None
        ready = await held.take()
        if self._held is held:
            self._held = None
        return ready

    async def dismiss(self) -> None:
        """Ends what there is, and what is about to be made."""
        ready = await self.take()
        if ready is not None:
            await ready.dismiss()
