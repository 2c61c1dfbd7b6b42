"""Sandboxes without an overlay: commands work in plain copies, held by Landlock, by seatbelt, or by nothing.

    artoo ──► keeper ──► supervisor ──► commands          confined to the copies; no network
        └───► keeper ──► supervisor ──► commands          approved by the user as unconfined; started when needed

What confines is applied before the supervisor starts, so that commands inherit it and share one set of processes.
"""

from __future__ import annotations

import asyncio
import os
import re
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path

from artoo.contracts.errors import SandboxError
from artoo.ports.sandbox import Roots
from artoo.ports.workspace import BackendName, Command, EndStatus, Process
from artoo.sandbox.backends import landlock, seatbelt
from artoo.sandbox.backends.copy_layout import PathMap, TranslatedOutput
from artoo.sandbox.backends.kept_supervisor import KeptSupervisor
from artoo.sandbox.network.proxy_env import no_network_environment
from artoo.sandbox.protocols import Layout, Sandbox
from artoo.sandbox.reading.environment import QUIET, cleaned
from artoo.sandbox.reading.hidden_paths import hidden_paths
from artoo.sandbox.reading.programs import worked_in
from artoo.sandbox.reading.readable_settings import lay_git_extract
from artoo.sandbox.supervisor.process import RunningCommands, SandboxProcess

UNCONFINED = "ran without confinement in the copy of the project, after an approval"
NO_BACKEND = "nothing on this machine confines commands, so each one needs an approval; artoo doctor says why"
NO_NETWORK = (
    "this sandbox ({}) cannot open single hosts: the command needs an approval to run without confinement; "
    "artoo doctor says how to get a better sandbox"
)
REFUSED = "the sandbox refused it something: it can run without confinement after an approval"

_REFUSED_BY_SYSTEM = re.compile(
    rb"permission denied|operation not permitted|read-only file system|EACCES|EPERM|EROFS", re.I
)
_CEILINGS = "GIT_CEILING_DIRECTORIES"


@dataclass(frozen=True, slots=True)
class CopyBackend:
    """Implements `protocols.Backend` for a workspace that is a plain copy."""

    name: BackendName

    @property
    def has_overlay(self) -> bool:
        """False: the workspace makes the copies."""
        return False

    def roots_to_cover(self, roots: Roots) -> tuple[Path, ...]:
        """Return nothing: no overlay can be mounted."""
        return ()

    async def open(self, layout: Layout) -> Sandbox:
        """Start a sandbox. Raises SandboxError."""
        sandbox = CopySandbox(self.name, layout, await asyncio.to_thread(_plan, self.name, layout))
        try:
            if self.name != "none":
                await sandbox.supervisor(unconfined=False)
        except BaseException:
            await sandbox.close()
            raise
        return sandbox


@dataclass(frozen=True, slots=True)
class _Plan:
    """How the confined supervisor is started, and the variables that all commands get."""

    confinement: Mapping[str, object] = field(default_factory=lambda: {"mode": "plain"})
    prefix: list[str] = field(default_factory=list[str])
    variables: dict[str, str] = field(default_factory=dict[str, str])


def _plan(name: BackendName, layout: Layout) -> _Plan:
    """Look up what is hidden, and how this backend hides it. Blocking. Raises SandboxError."""
    layout.scratch.mkdir(mode=0o700, parents=True, exist_ok=True)
    writable = (*(copy for _, copy in layout.copies), layout.scratch)
    variables = lay_git_extract(layout.roots, layout.scratch, str(layout.scratch))
    if name == "none":
        return _Plan(variables=variables)
    closed = tuple(map(Path, hidden_paths(layout.roots, layout.artoo_home, layout.hide, visible=writable)))
    if name == "landlock":
        return _Plan(landlock.confinement(closed, writable), variables=variables)
    return _Plan(prefix=seatbelt.prefix(closed, writable, worked_in(layout.roots)), variables=variables)


class CopySandbox:
    """Implements `protocols.Sandbox` for a workspace that is a plain copy."""

    def __init__(self, backend: BackendName, layout: Layout, plan: _Plan) -> None:
        self._backend: BackendName = backend
        self._layout = layout
        self._plan = plan
        self._paths = PathMap.of(layout)
        self._supervisors: dict[bool, KeptSupervisor] = {}
        self._commands = RunningCommands()
        self._starting = asyncio.Lock()
        self._closed = False

    @property
    def root(self) -> int | None:
        """None: the copies are ordinary directories."""
        return None

    @property
    def alive(self) -> bool:
        """True until it is closed, or its confined supervisor has ended."""
        confined = self._supervisors.get(False)
        return not self._closed and (self._backend == "none" or (confined is not None and confined.alive))

    @property
    def hidden(self) -> tuple[str, ...]:
        """Nothing of PATH is hidden: programs are where they are outside."""
        return ()

    async def start(self, command: Command, process_id: str, output: Path) -> Process:
        """Start a command, or return one that has ended as `refused`. Raises SandboxError."""
        if self._closed:
            raise SandboxError("the sandbox has ended; the next command starts a new one")
        refusal = ""
        if not command.unconfined and (self._backend == "none" or command.hosts):
            refusal = NO_BACKEND if self._backend == "none" else NO_NETWORK.format(self._backend)
        supervisor = await self.supervisor(unconfined=command.unconfined or self._backend == "none")
        translated = TranslatedOutput(output, command, self._paths)
        process = CopyProcess(
            supervisor.client, process_id, command, translated, explain_kill=supervisor.monitor.explain_kill
        )
        if refusal:
            process.refuse(refusal)
            return process
        argv = tuple(map(self._paths.translate, command.argv))
        cwd = self._paths.inside(command.cwd or self._layout.roots.project)
        await self._commands.start(process, argv, self._environment(command, cwd), cwd, "given-terminal")
        supervisor.monitor.wake()
        return process

    async def refresh(self) -> None:
        """Do nothing: the workspace itself brings the user's changes into its copies."""

    async def close(self) -> None:
        """Kill every process and end the sandbox."""
        self._closed = True
        for supervisor in self._supervisors.values():
            await supervisor.close()
        await self._commands.close()

    async def supervisor(self, *, unconfined: bool) -> KeptSupervisor:
        """Return the supervisor for commands of this kind, started now if it is the first one."""
        async with self._starting:
            found = self._supervisors.get(unconfined)
            if found is None or (unconfined and not found.alive):
                if found is not None:
                    await found.close()
                plan = _Plan() if unconfined else self._plan
                found = await KeptSupervisor.start(
                    plan.confinement, plan.prefix, self._layout, self._commands.end_at_limit
                )
                self._supervisors[unconfined] = found
            return found

    def _environment(self, command: Command, cwd: Path) -> dict[str, str]:
        """Return the variables of a command, with the copies' paths."""
        roots, scratch = self._layout.roots, str(self._layout.scratch)
        own = {name: scratch + value[len("/tmp") :] for name, value in QUIET.items() if value.startswith("/tmp")}
        network = {} if command.unconfined else no_network_environment()
        outer = {name: value for name, value in os.environ.items() if name not in own}
        env = cleaned(outer, roots, replace(command, env=own | self._plan.variables | network | dict(command.env)))
        above = (env.get(_CEILINGS), *(str(copy.parent) for _, copy in self._layout.copies))
        env[_CEILINGS] = ":".join(dict.fromkeys(filter(None, above)))  # artoo's home is in no repository
        return {name: self._paths.translate(value) for name, value in env.items()} | {"PWD": str(cwd)}


class CopyProcess(SandboxProcess):
    """A command of which what the sandbox refused is told apart from its own failures."""

    def refuse(self, why: str) -> None:
        """End it before it was started."""
        self._reason = "refused"
        self._notes.append(why)
        self._on_end(0, ())

    def _how(self) -> tuple[EndStatus, int | None]:
        status, exit_code = super()._how()
        if self._command.unconfined:
            self._notes.append(UNCONFINED)
        if status != "error" or self._command.unconfined:
            return status, exit_code
        printed = self.printed[0] if self._command.pty else self.printed[1]
        if not _REFUSED_BY_SYSTEM.search(printed.head + printed.tail):
            return status, exit_code
        self._notes.append(REFUSED)
        return "refused", exit_code
