"""Starts a supervisor below a keeper, which kills everything when artoo lets go of it."""

from __future__ import annotations

import asyncio
import json
import socket
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

from artoo.contracts.errors import SandboxError
from artoo.sandbox.limits.cgroup import Group, open_group
from artoo.sandbox.limits.looking import machine_tasks
from artoo.sandbox.limits.monitor import OnExcess, SandboxMonitor
from artoo.sandbox.protocols import Layout
from artoo.sandbox.supervisor.client import SupervisorClient
from artoo.sandbox.supervisor.starting import file_of, starting_environment

_PACKAGE = Path(__file__).parent.parent
_KEEPER, _SUPERVISOR = str(_PACKAGE / "keeper" / "keeper.py"), str(_PACKAGE / "supervisor" / "supervisor.py")
_START_SECONDS, _END_SECONDS = 30.0, 10.0


class KeptSupervisor:
    """A supervisor, its keeper, and the watch over all that runs below them."""

    def __init__(self, keeper: subprocess.Popen[bytes], control: socket.socket, channel: socket.socket) -> None:
        self._keeper = keeper
        self._control = control
        self._group: Group | None = None
        self._monitor: SandboxMonitor | None = None
        self.client = SupervisorClient(channel)

    @classmethod
    async def start(
        cls, confinement: Mapping[str, object], prefix: list[str], layout: Layout, on_excess: OnExcess
    ) -> KeptSupervisor:
        """Start a supervisor that is confined so; `prefix` are words before its own. Raises SandboxError."""
        directories = (*(copy for _, copy in layout.copies), layout.scratch)
        group = await open_group(layout.limits, directories)
        try:
            kept = _start(confinement, prefix, layout, group)
        except OSError as error:
            if group is not None:
                await group.close()
            raise SandboxError(f"the sandbox could not be started: {error}") from error
        kept._group = group
        try:
            kept._monitor = SandboxMonitor(await kept._wait_until_ready(), directories, layout.limits, on_excess)
            kept._monitor.start()
        except BaseException:
            await kept.close()
            raise
        return kept

    @property
    def alive(self) -> bool:
        """True until the supervisor has ended."""
        return self.client.alive

    @property
    def monitor(self) -> SandboxMonitor:
        assert self._monitor is not None, "the supervisor is not ready"
        return self._monitor

    async def close(self) -> None:
        """Kill everything below the keeper, and wait for it. Idempotent."""
        if self._monitor is not None:
            await self._monitor.stop()
        self.client.close()
        self._control.close()  # the keeper kills everything now
        try:
            await asyncio.to_thread(self._keeper.wait, _END_SECONDS)
        except subprocess.TimeoutExpired:
            self._keeper.kill()
            await asyncio.to_thread(self._keeper.wait)
        if self._group is not None:
            await self._group.close()

    async def _wait_until_ready(self) -> int:
        """Return the supervisor's pid. Raises SandboxError."""
        try:
            async with asyncio.timeout(_START_SECONDS):
                said = await asyncio.get_running_loop().sock_recv(self._control, 4096)
        except TimeoutError:
            raise SandboxError(f"the sandbox did not start within {_START_SECONDS:.0f} seconds") from None
        answer = json.loads(said or b'{"error": "its first process ended at once"}')
        if "error" in answer:
            raise SandboxError(f"the sandbox could not be started: {answer['error']}; run: artoo doctor")
        return (await self.client.ready())[0]


def _start(
    confinement: Mapping[str, object], prefix: list[str], layout: Layout, group: Group | None
) -> KeptSupervisor:
    """Start the keeper. Raises OSError."""
    control, keepers = socket.socketpair()
    # macOS has no packets with borders on a connected stream.
    kind = socket.SOCK_SEQPACKET if sys.platform.startswith("linux") else socket.SOCK_DGRAM
    channel, supervisors = socket.socketpair(socket.AF_UNIX, kind)
    python, number = (sys.executable, "-I", "-S"), str(supervisors.fileno())
    # The kernel counts all processes and threads of a user: at most as many as the machine has (macOS: unknown).
    process_limit = layout.limits.processes + (machine_tasks() or 4096)
    argv = [*prefix, *python, _SUPERVISOR, number, f"process-limit={process_limit}"]
    env = starting_environment()
    plan = {**confinement, "argv": argv, "env": env}
    with keepers, supervisors, file_of(json.dumps(plan).encode()) as config:
        given = (config.fileno(), keepers.fileno(), supervisors.fileno())
        words = (*python, _KEEPER, *map(str, given))
        try:
            keeper = subprocess.Popen(
                words if group is None else group.joining(words),
                cwd="/",
                env=env,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                pass_fds=given,
            )
        except OSError:
            control.close()
            channel.close()
            raise
    control.setblocking(False)
    return KeptSupervisor(keeper, control, channel)
