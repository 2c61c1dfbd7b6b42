"""Store the engine's state after a long system prompt on disk, with the limit on files.

A new process can use this state instead of computing it.

first call with a system message ──► stored before?  yes: restored into a slot, in milliseconds
                                                     no:  computed once in a slot (as the call must anyway), stored
"""

from __future__ import annotations

import asyncio
import hashlib
import os
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import cast

from artoo.contracts.errors import ModelUnreachable
from artoo.llm.streamed import objects
from artoo.llm.transport import Json, Transport

# A system message shorter than this is not worth a file.
SHORTEST = 200
# Maximum number of states that are stored for one model (28 KiB per token for the default model). The oldest are
# deleted first.
MOST_FILES = 12
_SECONDS = 60.0
_READING_SECONDS = 600.0


class Prefixes:
    """The stored prefixes of one loaded model. Problems cost only time, so no method raises an error."""

    def __init__(self, folder: Path, server: Transport, slots: int) -> None:
        self._folder = folder
        self._server = server
        self._slots = slots
        self._known: set[str] = set()
        self._next = 0
        self._lock = asyncio.Lock()

    async def prepare(self, body: Mapping[str, object]) -> None:
        """Make sure that a slot holds the static part of this request. The call is fast if this was done before."""
        system = _system_of(body)
        name = f"{hashlib.sha256(system.encode(errors='replace')).hexdigest()[:32]}.state"
        if len(system) < SHORTEST or name in self._known:
            return
        async with self._lock:
            if name in self._known:
                return
            slot, self._next = self._next, (self._next + 1) % self._slots
            with suppress(ModelUnreachable):
                if not await self._restored(slot, name):
                    messages = [{"role": "system", "content": system}, {"role": "user", "content": "."}]
                    reading = {"messages": messages, "max_tokens": 1, "cache_prompt": True, "id_slot": slot}
                    await self._server.post(reading, timeout=_READING_SECONDS)
                    await self._act(slot, "save", name)
                    await asyncio.to_thread(self._forget_oldest)
            self._known.add(name)

    async def _restored(self, slot: int, name: str) -> bool:
        if not (self._folder / name).is_file() or not await self._act(slot, "restore", name):
            return False
        with suppress(OSError):  # another process may have deleted the file meanwhile
            os.utime(self._folder / name)
        return True

    async def _act(self, slot: int, action: str, name: str) -> bool:
        path = f"/slots/{slot}?action={action}"
        return (await self._server.post({"filename": name}, timeout=_SECONDS, path=path)).status == 200

    def _forget_oldest(self) -> None:
        with suppress(OSError):  # another process may delete files at the same time
            files = sorted(self._folder.glob("*.state"), key=lambda file: file.stat().st_mtime, reverse=True)
            for file in files[MOST_FILES:]:
                file.unlink(missing_ok=True)


def _system_of(body: Mapping[str, object]) -> str:
    messages = objects(cast("Json", body.get("messages")))
    content = messages[0].get("content") if messages and messages[0].get("role") == "system" else ""
    return content if isinstance(content, str) else ""
