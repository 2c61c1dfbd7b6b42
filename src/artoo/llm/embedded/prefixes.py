"""The engine's state after a prompt's static part, kept on disk: a new process's first call then already hits it.

    first call with a system message ──► saved before?  yes: restored into a slot, in milliseconds
                                                        no:  read once into a slot (as the call must anyway), saved

llama.cpp saves and restores slots through its HTTP interface alone. That listens on a UNIX socket whose name is
gone as soon as the model is loaded; this process reaches it through the descriptor that it kept. Where the
system has no such descriptors (macOS), nothing is kept and nothing is lost but time.
"""

from __future__ import annotations

import hashlib
import http.client
import json
import os
import socket
import threading
from collections.abc import Callable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import cast

SHORTEST = 200
"""Characters of a system message that are worth a file."""
MOST_FILES = 12
"""Saved states of one model, 28 KiB a token for the default one; the oldest go first."""
_SECONDS = 60.0

_LOOK_SECONDS = 0.1

Stopped = Callable[[], bool]
"""Whether nobody waits for the answer any more."""

Complete = Callable[[dict[str, object], Stopped], None]
"""Runs one chat completion to its end, or until it is stopped."""


class Prefixes:
    """Saved prefixes of one loaded model. Every problem costs time and nothing else, so nothing here raises."""

    def __init__(self, folder: Path, listener: int, slots: int, complete: Complete) -> None:
        """`listener`: a descriptor (O_PATH) of the server's socket, closed by `close`."""
        self._folder = folder
        self._listener = listener
        self._slots = slots
        self._complete = complete
        self._known: set[str] = set()
        self._next = 0
        self._lock = threading.Lock()

    def prepare(self, body: Mapping[str, object], stopped: Stopped) -> None:
        """Sees to it that a slot holds the static part of this request. Blocks, until it is stopped at most; quick
        when it was done before.
        """
        system = _system_of(body)
        if len(system) < SHORTEST:
            return
        name = f"{hashlib.sha256(system.encode()).hexdigest()[:32]}.state"
        while not self._lock.acquire(timeout=_LOOK_SECONDS):
            if stopped():
                return
        try:
            self._prepare(system, name, stopped)
        finally:
            self._lock.release()

    def _prepare(self, system: str, name: str, stopped: Stopped) -> None:
        if name in self._known:
            return
        slot, self._next = self._next, (self._next + 1) % self._slots
        if not self._restored(name, slot):
            self._read(system, slot, stopped)
            if stopped():  # what the slot holds is a part of it
                return
            self._act(slot, "save", name)
            self._forget_oldest()
        self._known.add(name)

    def close(self) -> None:
        """Lets go of the socket. Idempotent."""
        listener, self._listener = self._listener, -1
        if listener >= 0:
            os.close(listener)

    def _restored(self, name: str, slot: int) -> bool:
        if not (self._folder / name).is_file():
            return False
        restored = self._act(slot, "restore", name)
        if restored:
            with suppress(OSError):  # another process that cleans up has taken it meanwhile
                os.utime(self._folder / name)
        return restored

    def _read(self, system: str, slot: int, stopped: Stopped) -> None:
        messages = [{"role": "system", "content": system}, {"role": "user", "content": "."}]
        self._complete({"messages": messages, "max_tokens": 1, "cache_prompt": True, "id_slot": slot}, stopped)

    def _act(self, slot: int, action: str, name: str) -> bool:
        connection = _Connection(self._listener)
        try:
            body = json.dumps({"filename": name})
            headers = {"Content-Type": "application/json"}
            connection.request("POST", f"/slots/{slot}?action={action}", body, headers)
            return connection.getresponse().status == 200
        except (OSError, http.client.HTTPException):
            return False
        finally:
            connection.close()

    def _forget_oldest(self) -> None:
        try:
            files = sorted(self._folder.glob("*.state"), key=lambda file: file.stat().st_mtime, reverse=True)
            for file in files[MOST_FILES:]:
                file.unlink(missing_ok=True)
        except OSError:
            return  # another process cleans up as well


def keep_listener(path: Path) -> int | None:
    """A descriptor that reaches a socket whose name is about to go; None where this system has none."""
    if not hasattr(os, "O_PATH") or not Path("/proc/self/fd").is_dir():
        return None
    try:
        return os.open(path, os.O_PATH | os.O_CLOEXEC)
    except OSError:
        return None


class _Connection(http.client.HTTPConnection):
    """HTTP over the socket that a descriptor stands for."""

    def __init__(self, listener: int) -> None:
        super().__init__("localhost", timeout=_SECONDS)
        self._listener = listener

    def connect(self) -> None:
        self.sock = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self.sock.settimeout(_SECONDS)
        self.sock.connect(f"/proc/self/fd/{self._listener}")


def _system_of(body: Mapping[str, object]) -> str:
    messages = body.get("messages")
    first = cast("list[object]", messages)[0] if isinstance(messages, list) and messages else None
    if not isinstance(first, dict):
        return ""
    message = cast("dict[str, object]", first)
    content = message.get("content")
    return content if message.get("role") == "system" and isinstance(content, str) else ""
