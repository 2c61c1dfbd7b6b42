"""Runs the attempts of `escape_attempts.py` in one backend, as the user that starts it.

    python escape_victim.py NUMBER BASE

NUMBER is the backend's place among the candidates. BASE/home is a home with a project; BASE/outside holds pipes and
services that have listeners. Prints one JSON object: `name` of the backend and `through`, the attempts that reached
something; or `problem`, when the backend does not work here.
"""

from __future__ import annotations

import asyncio
import json
import os
import socket
import stat
import sys
import threading
from collections.abc import Callable
from pathlib import Path

from escape_attempts import ATTEMPTS, ONE_BY_ONE, PRELUDE
from living import World

from artoo.sandbox.backends.select import candidates
from artoo.sandbox.backends.selftest import prove


class Outside:
    """What lies beyond the workspace, with a reader at every pipe and a listener at every socket."""

    def __init__(self, base: Path, world: World) -> None:
        self.heard: list[bytes] = []
        self._base, self._lock = base, threading.Lock()
        outside = base / "outside"
        (outside / "deep").mkdir(parents=True)
        (outside / "file").write_bytes(b"whole\n")
        (world.home / ".closed").mkdir(mode=0o700)
        (world.home / ".closed" / "key").write_bytes(b"closed\n")
        pipes = [outside / "pipe", outside / "deep" / "pipe", world.home / "pipe"]
        for path in pipes:
            os.mkfifo(path)
            path.chmod(0o666)
            descriptor = os.open(path, os.O_RDWR)
            self._listen(lambda descriptor=descriptor: os.read(descriptor, 100))
        for path in (outside / "service", world.home / "service"):
            server = socket.socket(socket.AF_UNIX)
            server.bind(str(path.relative_to(base)))
            server.listen()
            self._listen(lambda server=server: server.accept()[0].recv(100))
        datagrams = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        datagrams.bind(str((outside / "datagrams").relative_to(base)))
        self._listen(lambda: datagrams.recv(100))
        for path in (world.home / "zero", world.project / "zero", outside / "zero"):
            if os.geteuid() == 0:
                os.mknod(path, 0o666 | stat.S_IFCHR, os.makedev(1, 5))

    def _listen(self, hear: Callable[[], bytes]) -> None:
        def listening() -> None:
            while data := hear():
                with self._lock:
                    self.heard.append(data)

        threading.Thread(target=listening, daemon=True).start()

    def is_whole(self) -> bool:
        seen = (self._base / "outside" / "file").lstat()
        return (self._base / "outside" / "file").read_bytes() == b"whole\n" and seen.st_mode & 0o022 == 0


async def _through(base: Path, world: World) -> dict[str, str]:
    """All attempts, in one command."""
    attempts = {name: f"{PRELUDE}\n{code}" for name, code in ATTEMPTS.items()}
    words = (ONE_BY_ONE, str(base / "outside"), str(world.home), str(os.getpid()), "")
    argv = ("/usr/bin/python3", "-I", "-S", "-c", *words)
    async with world.sandbox() as commands:
        process = await commands.start(*argv, stdin=json.dumps(attempts).encode())
        ended = await process.wait(200.0)
        assert ended is not None, process.printed
    if ended.status != "ok" or ended.stderr.text:
        return {"all": f"{ended.status}: {ended.stderr.text}"}
    return dict(json.loads(line) for line in ended.stdout.text.splitlines())


async def main() -> None:
    number, base = int(sys.argv[1]), Path(sys.argv[2])
    os.chdir(base)
    found = list(candidates())
    if number >= len(found):
        print(json.dumps({"problem": "there is no such backend"}))
        return
    backend = found[number].backend
    world = World.made(base, backend)
    if problem := await prove(backend, world.artoo_home):
        print(json.dumps({"problem": f"{found[number].key}: {problem}"}))
        return
    outside, hostname = Outside(base, world), socket.gethostname()
    through = await _through(base, world)
    through |= {name.decode(): "was heard outside" for name in outside.heard}
    if not outside.is_whole() or socket.gethostname() != hostname:
        through["outside"] = "is changed"
    print(json.dumps({"name": backend.name, "through": through}))


if __name__ == "__main__":
    asyncio.run(main())
