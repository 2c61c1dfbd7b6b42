"""The first look at what is around a request, taken while R1 still reads it."""

from __future__ import annotations

import asyncio

from artoo.ports.surroundings import Surroundings, SurroundingsSource

_TURNS = 3
"""Turns of the event loop in which R1's own question goes out: the look is a thread, and would compete with it."""


class EarlyLook:
    """R2's view of the surroundings (implements SurroundingsSource).

    R2 cannot plan without the listing, which takes a thread and a millisecond or more (measured: 1.2 to 3.4 ms of a
    chain of six calls). When R1 asks a model, that time is free. Only R2's first look at the words of the request
    itself is answered with what was seen then; every other look is taken when it is asked for.
    """

    def __init__(self, source: SurroundingsSource, request: str) -> None:
        self._source = source
        self._request = request
        self._seen: asyncio.Future[Surroundings] | None = None
        self._asked = False

    async def run(self) -> None:
        """Looks, unless R2 was quicker. Run it beside the roles; it ends by itself."""
        for _ in range(_TURNS):
            await asyncio.sleep(0)
        if self._asked:
            return
        seen = self._seen = asyncio.get_running_loop().create_future()
        try:
            seen.set_result(await self._source.look(self._request))
        finally:
            seen.cancel()

    async def look(self, request: str) -> Surroundings:
        """See SurroundingsSource."""
        first, self._asked = not self._asked, True
        if first and self._seen is not None and request == self._request:
            return await self._seen
        return await self._source.look(request)
