"""What Law 1 costs: commands in a task's view beside bubblewrap alone, and settling beside copying.

    python benchmarks/gate.py [--json] [--commands N] [--files N]

One task runs N commands in one view over a project of many files; each is run by bubblewrap alone as well, over a
copy of the project that it may write, right before or after. Between two commands of a task a model is asked, so
there is a pause before each, alone or not: in it artoo makes the next command's sandbox. Before that, another
task runs the same commands without any pause (`at_once`). Then what the task changed is settled once, and the
same files are copied with `cp -a`; so it is with four more tasks of as many edits. Nothing is deleted between:
for some minutes ext4 passes over each inode that was freed, so after a great deletion a new file or directory costs
up to half a millisecond, and the copy up to ten times as much. Before each of these the disk gets what was made for
this benchmark: settling waits for all that is not written yet. A task with one new file is settled first, as
commands are warmed up too: the first settling of a process pays for imports and schemas. The collector of cycles
is set as in artoo's own process. All in one run, interleaved. Targets: command_vs_bwrap <= 1.5,
settle_vs_copy <= 3 (medians of ratios).
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
from collections.abc import Awaitable, Callable, Sequence
from pathlib import Path

from artoo.cli.start import collect_seldom
from artoo.ports.sandbox import Roots
from artoo.ports.world import Program, View
from artoo.world.bubblewrap import find_bubblewrap
from artoo.world.choose import open_sandbox
from artoo.world.closing import opened
from artoo.world.difference import Difference
from artoo.world.opening import views_in
from artoo.world.view_place import Views

_WARM_UP = 3
_THINKING_SECONDS = 0.05
"""A quick model's answer, as in `overhead.py`."""
_CHANGED = 400
_FURTHER = ("second", "third", "fourth", "fifth")

COMMANDS = (
    "echo result {n} > made-{n}.txt",
    "echo more >> d{m}/f{m}.py",
    "cat d{m}/f{m}.py made-*.txt | wc -l",
    "sed -i s/value/other/ d{m}/f7.py",
    "grep -rl 'value_50 ' d{m}",
    "ls -lR d1{m} | tail -1",
    "rm -f d{m}/f9.py; mkdir -p build/{n}; cp d{m}/f3.py build/{n}/",
    "find . -name 'f{m}.py' | wc -l",
    "python3 -c 'import json; print(json.dumps([1, 2, 3]))'",
    "mv d{m}/f11.py d{m}/renamed-{n}.py; head -n 2 d{m}/renamed-{n}.py",
)
"""What agents do: make, edit, read, search, list, delete, find, compute, rename."""


def fill(project: Path, files: int) -> None:
    """A project: a hundred files a directory."""
    for number in range(files // 100):
        directory = project / f"d{number}"
        directory.mkdir(parents=True)
        for inner in range(100):
            (directory / f"f{inner}.py").write_text(f"value_{inner} = {inner}\n" * 20)


async def _alone(bwrap: Path, project: Path, script: str) -> None:
    isolated = ("--ro-bind", "/", "/", "--dev", "/dev", "--proc", "/proc", "--unshare-all", "--die-with-parent")
    process = await asyncio.create_subprocess_exec(
        *(str(bwrap), *isolated, "--bind", str(project), str(project), "--chdir", str(project)),
        *("--", "bash", "-c", script),
        stdin=asyncio.subprocess.DEVNULL,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
    )
    _, complaint = await process.communicate()
    if process.returncode != 0:
        raise SystemExit(f"{script}: {complaint.decode()}")


async def _in_view(view: View, script: str) -> None:
    run = await view.run(Program(("bash", "-c", script)))
    if run.status != "ok":
        raise SystemExit(f"{script}: {run}")


async def _timed(act: Callable[[], Awaitable[None]]) -> float:
    start = time.perf_counter()
    await act()
    return (time.perf_counter() - start) * 1e3


async def commands(
    view: View, bwrap: Path, copy: Path, count: int, pause: float
) -> tuple[list[float], list[float]]:
    """Milliseconds of each command in the view, and by bubblewrap alone, each after a pause (seconds)."""
    inside: list[float] = []
    alone: list[float] = []
    for number in range(count + _WARM_UP):
        script = COMMANDS[number % len(COMMANDS)].format(n=number, m=number % 7 + 1)
        acts = [
            (inside, lambda script=script: _in_view(view, script)),
            (alone, lambda script=script: _alone(bwrap, copy, script)),
        ]
        for times, act in acts if number % 2 else reversed(acts):
            await asyncio.sleep(pause)
            taken = await _timed(act)
            if number >= _WARM_UP:
                times.append(taken)
    return inside, alone


def median_ratio(inside: Sequence[float], alone: Sequence[float]) -> float:
    """The median of the ratios of each to its own counterpart."""
    return round(statistics.median(one / other for one, other in zip(inside, alone, strict=True)), 2)


def settled_in(home: Path, task: str) -> tuple[float, Difference]:
    """Milliseconds of settling all that a task changed, and what that was."""
    os.sync()
    with opened(Views(home / ".artoo").place(task), home / ".artoo") as closing:
        start = time.perf_counter()
        difference = closing.difference()
        applied = closing.apply(difference, digest=difference.digest)
        settled = (time.perf_counter() - start) * 1e3
    if not applied.whole:
        raise SystemExit(f"not applied: {applied}")
    return settled, difference


def settling(home: Path, place: Path, task: str) -> tuple[float, float, int]:
    """Milliseconds of settling a task once and of `cp -a` of the files that it changed, and how many these are."""
    copied = place / f"copied-{task}"
    copied.mkdir()
    settled, difference = settled_in(home, task)
    project = home / "project"
    files = [path.relative_to(project) for one in difference.changes if (path := Path(one.path)).is_file()]
    os.sync()
    start = time.perf_counter()
    subprocess.run(["cp", "-a", "--parents", *files, copied], cwd=project, check=True, capture_output=True)
    return settled, (time.perf_counter() - start) * 1e3, len(files)


async def measure(place: Path, count: int, files: int) -> dict[str, float | str]:
    """All figures. `place` gets a home, a project and artoo's own files."""
    home = place / "home"
    roots = Roots(home=home, workspace=home / "artoo_workspace", project=home / "project")
    fill(roots.project, files)
    copy = place / "alone"
    shutil.copytree(roots.project, copy)
    bwrap = next(find_bubblewrap(), None)
    if bwrap is None:
        raise SystemExit("bubblewrap is not installed: there is nothing to compare with")
    sandbox = await open_sandbox(home / ".artoo")
    view = views_in(sandbox, home / ".artoo")("benchmark", roots)
    small = views_in(sandbox, home / ".artoo")("warm-up", roots)
    await _in_view(small, "echo small > warm-up.txt")
    await small.close()
    hasty = views_in(sandbox, home / ".artoo")("at-once", roots)
    at_once = await commands(hasty, bwrap, copy, count, 0.0)
    await hasty.close()
    again = place / "alone-again"
    shutil.copytree(roots.project, again)
    inside, alone = await commands(view, bwrap, again, count, _THINKING_SECONDS)
    await asyncio.to_thread(settled_in, home, "warm-up")
    settlings: list[tuple[float, float, int]] = []
    for number, task in enumerate(("benchmark", *_FURTHER)):
        each = view if not number else views_in(sandbox, home / ".artoo")(task, roots)
        first = 20 + 10 * number
        await _in_view(
            each, f"for i in $(seq {_CHANGED}); do echo $i >> d$((i / 90 + {first}))/f$((i % 90)).py; done"
        )
        await each.close()
        settlings.append(await asyncio.to_thread(settling, home, place, task))
    settled, copied, changed = zip(*settlings, strict=True)
    return {
        "tier": sandbox.tier,
        "commands": count,
        "files": files,
        "view_ms": round(statistics.median(inside), 2),
        "bwrap_ms": round(statistics.median(alone), 2),
        "command_vs_bwrap": median_ratio(inside, alone),
        "all_commands_vs_bwrap": round(sum(inside) / sum(alone), 2),
        "at_once_vs_bwrap": median_ratio(*at_once),
        "all_at_once_vs_bwrap": round(sum(at_once[0]) / sum(at_once[1]), 2),
        "changed_files": changed[0],
        "settle_ms": round(statistics.median(settled), 2),
        "copy_ms": round(statistics.median(copied), 2),
        "settle_vs_copy": median_ratio(settled, copied),
    }


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--commands", type=int, default=40)
    parser.add_argument("--files", type=int, default=20_000)
    options = parser.parse_args()
    collect_seldom()
    with tempfile.TemporaryDirectory(prefix="artoo-gate-") as place:
        found = asyncio.run(measure(Path(place).resolve(), options.commands, options.files))
    if options.json:
        print(json.dumps(found))
    else:
        for name, value in found.items():
            print(f"{name:24} {value}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
