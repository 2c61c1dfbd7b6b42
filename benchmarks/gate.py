"""Measure what Law 1 costs: commands in a task's sandbox next to bubblewrap alone, and settling next to copying.

    python benchmarks/gate.py [--json] [--rounds N] [--commands]

| key | what | goal |
|---|---|---|
| spawn_vs_bwrap | a program in a running sandbox / the same program by a bare bubblewrap | 0.15 |
| kernel_vs_bwrap | the same program by `posix_spawn`, without a sandbox / by a bare bubblewrap | none: the least |
| first_vs_bwrap | (the first command of a task − 50 ms) / the same program by a bare bubblewrap | 2 |
| settle_vs_copy | settling 1,000 new files / `cp -a` of the same files and a sync | 4 |
| changes_ms | the list of changes of one call, with 10,000 files in the upper directory | 100 |

A bare bubblewrap mounts the machine read-only with the project writable, in namespaces of its own. Both sides of a
ratio are taken right after each other, and the median of all rounds is reported. Before settling and copying the
disk gets what was written before.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from artoo.cli.start import collect_seldom
from artoo.ports.sandbox import Roots
from artoo.ports.workspace import Command, Workspace
from artoo.sandbox.backends.bubblewrap import find_bubblewrap
from artoo.sandbox.backends.select import open_backend
from artoo.sandbox.protocols import Backend
from artoo.workspace.directory import Workspaces
from artoo.workspace.settlement.service import opened
from artoo.workspace.workspace import workspaces_in

_PROGRAM = ("/bin/true",)
_SECONDS = 60.0
_ALLOWED_MS = 50.0
"""What the first command of a task may take besides twice a bare start: the supervisor is a Python program."""
_SETTLED, _CHANGED = 1_000, 10_000


def by_bubblewrap(bwrap: Path, project: Path) -> float:
    """Return the milliseconds of a program in a bubblewrap of its own."""
    isolated = ("--ro-bind", "/", "/", "--dev", "/dev", "--proc", "/proc", "--unshare-all", "--die-with-parent")
    start = time.perf_counter()
    subprocess.run([bwrap, *isolated, "--bind", project, project, "--chdir", project, "--", *_PROGRAM], check=True)
    return (time.perf_counter() - start) * 1e3


def by_kernel() -> float:
    """Return the milliseconds of a program that nothing confines, started in the kernel's fastest way."""
    start = time.perf_counter()
    os.waitpid(os.posix_spawn(_PROGRAM[0], _PROGRAM, os.environ), 0)
    return (time.perf_counter() - start) * 1e3


async def by_artoo(workspace: Workspace, argv: tuple[str, ...] = _PROGRAM) -> float:
    """Return the milliseconds of a program in a task's workspace."""
    start = time.perf_counter()
    ended = await workspace.run(Command(argv), _SECONDS)
    taken = (time.perf_counter() - start) * 1e3
    if ended.status != "ok":
        raise SystemExit(f"{argv}: {ended}")
    return taken


def median_ratio(pairs: list[tuple[float, float]]) -> float:
    """Return the median of the ratios."""
    return round(statistics.median(one / other for one, other in pairs), 3)


async def commands(backend: Backend, home: Path, roots: Roots, bwrap: Path, rounds: int) -> dict[str, float]:
    """Measure the first and the later commands of tasks. The first task of the process is not counted."""
    first: list[tuple[float, float]] = []
    later: list[tuple[float, float]] = []
    least: list[tuple[float, float]] = []
    for number in range(rounds + 1):
        workspace = workspaces_in(backend, home)(f"commands-{number}", roots)
        begun, alone = await by_artoo(workspace), by_bubblewrap(bwrap, roots.project)
        pairs = [(await by_artoo(workspace), by_bubblewrap(bwrap, roots.project)) for _ in range(10)]
        await workspace.close()
        bare = [(by_kernel(), by_bubblewrap(bwrap, roots.project)) for _ in range(10)]
        if number:
            least += bare
            first.append((begun - _ALLOWED_MS, alone))
            later += pairs
    return {
        "bwrap_ms": round(statistics.median(alone for _, alone in later), 2),
        "spawn_ms": round(statistics.median(inside for inside, _ in later), 2),
        "first_ms": round(statistics.median(inside for inside, _ in first) + _ALLOWED_MS, 2),
        "kernel_ms": round(statistics.median(one for one, _ in least), 2),
        "spawn_vs_bwrap": median_ratio(later),
        "kernel_vs_bwrap": median_ratio(least),
        "first_vs_bwrap": median_ratio(first),
    }


async def settling(backend: Backend, home: Path, roots: Roots, rounds: int) -> dict[str, float]:
    """Measure settling new files next to copying them. The first settling of the process is not counted."""
    pairs: list[tuple[float, float]] = []
    for number in range(rounds + 1):
        task, made = f"settled-{number}", f"made-{number}"
        workspace = workspaces_in(backend, home)(task, roots)
        script = f"mkdir {made}; for i in $(seq {_SETTLED}); do echo line $i > {made}/f$i.txt; done"
        await by_artoo(workspace, ("bash", "-c", script))
        await workspace.close()
        settled = await asyncio.to_thread(settle, backend, home, task)
        copied = copy(roots.project / made, home.parent / f"copy-{number}")
        if number:
            pairs.append((settled, copied))
    return {
        "settle_ms": round(statistics.median(settled for settled, _ in pairs), 2),
        "copy_ms": round(statistics.median(copied for _, copied in pairs), 2),
        "settle_vs_copy": median_ratio(pairs),
    }


def settle(backend: Backend, home: Path, task: str) -> float:
    """Return the milliseconds of reviewing and applying all that a task changed."""
    os.sync()
    start = time.perf_counter()
    with opened(Workspaces(home).directory(task), home, backend=backend) as settlement:
        if settlement is None:
            raise SystemExit(f"{task}: nothing was changed")
        found = settlement.review()
        applied = settlement.apply(found)
    taken = (time.perf_counter() - start) * 1e3
    if applied.state != "applied":
        raise SystemExit(f"{task}: not applied: {applied}")
    return taken


def copy(source: Path, target: Path) -> float:
    """Return the milliseconds of copying a directory and waiting for the disk."""
    os.sync()
    start = time.perf_counter()
    subprocess.run(["cp", "-a", source, target], check=True)
    os.sync()
    return (time.perf_counter() - start) * 1e3


async def changes(backend: Backend, home: Path, roots: Roots, rounds: int) -> dict[str, float]:
    """Measure the list of changes of a call in a workspace that holds many files already."""
    workspace = workspaces_in(backend, home)("changes", roots)
    made = f"mkdir many; for d in $(seq 0 {_CHANGED // 100}); do mkdir many/d$d; done"
    script = f"{made}; for i in $(seq {_CHANGED}); do echo > many/d$((i / 100))/f$i; done"
    await by_artoo(workspace, ("bash", "-c", script))
    taken: list[float] = []
    for number in range(rounds + 1):
        mark = await workspace.mark()
        await by_artoo(workspace, ("bash", "-c", f"echo {number} > many/d7/f700"))
        start = time.perf_counter()
        found = await workspace.changes_since(mark)
        taken.append((time.perf_counter() - start) * 1e3)
        if len(found) != 1:
            raise SystemExit(f"one file was changed, and {len(found)} are listed")
    await workspace.close()
    return {"changes_ms": round(statistics.median(taken[1:]), 2)}


async def measure(place: Path, rounds: int, *, only_commands: bool) -> dict[str, float | str]:
    """Measure everything in a home of its own below `place`."""
    bwrap = next(find_bubblewrap(), None)
    if bwrap is None:
        raise SystemExit("bubblewrap is not installed: there is nothing to compare with")
    roots = Roots(home=place / "home", workspace=place / "home/artoo_workspace", project=place / "home/project")
    for root in (roots.workspace, roots.project):
        root.mkdir(parents=True)
    home = roots.home / ".artoo"
    backend = await open_backend(home)
    of_commands = await commands(backend, home, roots, bwrap, rounds)
    if only_commands:
        return {"backend": backend.name, **of_commands}
    return {
        "backend": backend.name,
        **of_commands,
        **await settling(backend, home, roots, rounds),
        **await changes(backend, home, roots, rounds),
    }


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--json", action="store_true", help="print one JSON object")
    parser.add_argument("--rounds", type=int, default=10, help="tasks of each kind (10)")
    parser.add_argument("--commands", action="store_true", help="measure only how commands start")
    options = parser.parse_args()
    collect_seldom()
    place = Path(tempfile.mkdtemp(prefix="artoo-gate-", dir=Path.home())).resolve()
    try:
        found = asyncio.run(measure(place, options.rounds, only_commands=options.commands))
    finally:
        shutil.rmtree(place, ignore_errors=True)
    if options.json:
        print(json.dumps(found))
    else:
        for name, value in found.items():
            print(f"{name:24} {value}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
