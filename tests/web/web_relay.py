"""A wire between browser and server that can go dead without a word, as it does when a laptop sleeps."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager, suppress


class Relay:
    """Passes bytes on while it is awake. What was connected when it fell asleep stays dead, and is not closed."""

    def __init__(self, target: int) -> None:
        self._target = target
        self._awake = asyncio.Event()
        self._awake.set()
        self._life = 0
        self.dead = asyncio.Event()
        """Set as soon as a connection hangs: something was sent through it, and did not arrive."""

    def sleep(self) -> None:
        """From now on nothing gets through."""
        self._awake.clear()
        self._life += 1

    def wake(self) -> None:
        """New connections get through again."""
        self._awake.set()

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """One connection."""
        life = self._life
        far_reader, far_writer = await asyncio.open_connection("127.0.0.1", self._target)
        try:
            async with asyncio.TaskGroup() as group:
                group.create_task(self._pass(reader, far_writer, life))
                group.create_task(self._pass(far_reader, writer, life))
        finally:
            for one in (writer, far_writer):
                one.close()

    async def _pass(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, life: int) -> None:
        with suppress(ConnectionError):
            while data := await reader.read(65_536):
                if self._life != life or not self._awake.is_set():
                    self.dead.set()
                    await asyncio.Event().wait()
                writer.write(data)
                await writer.drain()
            writer.close()


@asynccontextmanager
async def relayed(target: int) -> AsyncGenerator[tuple[Relay, int]]:
    """A relay to this port of this machine, and its own port."""
    relay, running = Relay(target), set[asyncio.Task[None]]()

    def accept(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.ensure_future(relay.serve(reader, writer))
        running.add(task)
        task.add_done_callback(running.discard)

    server = await asyncio.start_server(accept, "127.0.0.1", 0)
    try:
        yield relay, int(server.sockets[0].getsockname()[1])
    finally:
        server.close()
        for task in tuple(running):
            task.cancel()
        await asyncio.gather(*running, return_exceptions=True)
