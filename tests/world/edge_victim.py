"""Runs attempts of `edge_attempts.py` in one tier, as whoever starts it: `python edge_victim.py TIER BASE WHICH`.

BASE/home is a home with a project, BASE/outside holds pipes and services that others listen to. Prints one JSON
object: `got`, by attempt, what it reached; or `problem`, when the tier does not work here.
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
from dataclasses import replace
from pathlib import Path

from edge_attempts import BOUNDS, EDGE, ONE_BY_ONE, PRELUDE

from artoo.ports.sandbox import MIB, Limits, Roots, Sandbox, SandboxRequest
from artoo.world.choose import candidates
from artoo.world.selftest import prove

_CROWD = 200
"""Threads that whoever starts it has besides, as the programs of a desktop do: more than a self-test may have."""
_TIGHT = Limits(
    wall_seconds=20.0, processes=100, memory_bytes=200 * MIB, disk_bytes=200 * MIB, paths=8_000, output_bytes=MIB
)


class Outside:
    """What lies beyond the view, with a reader at every pipe and a listener at every socket."""

    def __init__(self, base: Path) -> None:
        self.heard: list[bytes] = []
        self._base, self._lock = base, threading.Lock()
        outside, home = base / "outside", base / "home"
        (outside / "deep").mkdir(parents=True, exist_ok=True)
        (home / "project").mkdir(parents=True, exist_ok=True)
        (outside / "file").write_bytes(b"whole\n")
        (home / ".closed").mkdir(mode=0o700, exist_ok=True)
        (home / ".closed" / "key").write_bytes(b"closed\n")
        self.pipes = [outside / "pipe", outside / "deep" / "pipe", home / "pipe", home / "project" / "pipe"]
        for path in self.pipes:
            os.mkfifo(path)
            path.chmod(0o666)
        for path in self.pipes:
            descriptor = os.open(path, os.O_RDWR)
            self._listen(lambda descriptor=descriptor: os.read(descriptor, 100))
        for path in (outside / "service", home / "service"):
            server = socket.socket(socket.AF_UNIX)
            server.bind(str(path.relative_to(base)))
            server.listen()
            self._listen(lambda server=server: server.accept()[0].recv(100))
        datagrams = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        datagrams.bind(str((outside / "datagrams").relative_to(base)))
        self._listen(lambda: datagrams.recv(100))
        for path in (home / "zero", home / "project" / "zero", outside / "zero"):
            if os.geteuid() == 0:
                os.mknod(path, 0o666 | stat.S_IFCHR, os.makedev(1, 5))

    def _listen(self, hear: Callable[[], bytes]) -> None:
        def listening() -> None:
            while data := hear():
                with self._lock:
                    self.heard.append(data)

        threading.Thread(target=listening, daemon=True).start()

    def whole(self) -> bool:
        seen = (self._base / "outside" / "file").lstat()
        return (self._base / "outside" / "file").read_bytes() == b"whole\n" and seen.st_mode & 0o022 == 0


def _sandbox(tier: str, artoo_home: Path) -> Sandbox | None:
    """`TIER`, or `TIER+N` for its Nth further variant; None when there are fewer."""
    name, _, number = tier.partition("+")
    found = [candidate for candidate in candidates(artoo_home) if candidate.tier == name]
    if int(number or 0) >= len(found):
        return None
    candidate = found[int(number or 0)]
    return candidate.build(candidate.stage_homes)


def _request(base: Path, code: str, name: str, limits: Limits) -> SandboxRequest:
    home = base / "home"
    argv = ("/usr/bin/python3", "-I", "-S", "-c", code, str(base / "outside"), str(home), str(os.getpid()), name)
    roots = Roots(home, home / "project", home / "project")
    return SandboxRequest(argv, home / "project", roots, "edge", limits=limits)


async def _edge(sandbox: Sandbox, base: Path, *, read_only: bool) -> dict[str, str]:
    """All attempts at the edge, in one command."""
    request = _request(base, ONE_BY_ONE, "", Limits(wall_seconds=200.0))
    attempts = {name: f"{PRELUDE}\n{code}" for name, code in EDGE.items()}
    run = await sandbox.look(replace(request, stdin=json.dumps(attempts).encode(), read_only=read_only))
    if run.status not in ("ok", "error") or run.stderr.text:
        return {"all": f"{run.status}: {run.stderr.text}"}
    return dict(json.loads(line) for line in run.stdout.text.splitlines())


async def _bound(sandbox: Sandbox, base: Path, name: str, turn: asyncio.Semaphore) -> str:
    async with turn:
        run = await sandbox.look(_request(base, f"{PRELUDE}\n{BOUNDS[name]}", name, _TIGHT))
        return f"{run.status}: {run.stderr.text}" if "THROUGH" in run.stdout.text else ""


async def _bounds(sandbox: Sandbox, base: Path) -> dict[str, str]:
    turn = asyncio.Semaphore(2)
    found = await asyncio.gather(*(_bound(sandbox, base, name, turn) for name in BOUNDS))
    return dict(zip(BOUNDS, found, strict=True))


async def main() -> None:
    tier, base, which = sys.argv[1], Path(sys.argv[2]), sys.argv[3]
    os.chdir(base)
    for _ in range(_CROWD):
        threading.Thread(target=threading.Event().wait, daemon=True).start()
    artoo_home = base / "home" / ".artoo"
    artoo_home.mkdir(parents=True)
    sandbox = _sandbox(tier, artoo_home)
    problem = "there is no such variant" if sandbox is None else (await prove(sandbox, base)).problem
    if sandbox is None or problem:
        print(json.dumps({"problem": problem}))
        return
    if which == "bounds":
        (base / "home" / "project").mkdir()
        print(json.dumps({"got": await _bounds(sandbox, base)}))
        return
    outside, hostname = Outside(base), socket.gethostname()
    got = await _edge(sandbox, base, read_only=False)
    got |= {f"{name} (read-only)": said for name, said in (await _edge(sandbox, base, read_only=True)).items()}
    got |= {name.decode(): "was heard outside" for name in outside.heard}
    if not outside.whole() or socket.gethostname() != hostname:
        got["outside"] = "is changed"
    print(json.dumps({"got": got}))


if __name__ == "__main__":
    asyncio.run(main())
