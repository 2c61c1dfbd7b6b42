"""What Law 1 costs: one whole transaction (run, read the changes, decide, apply) beside the bare command.

    python benchmarks/gate.py [--json] [--rounds N]

Prints medians in milliseconds, all measured in one run and interleaved: `bash` alone, `bwrap` with read-only binds
alone, and the transaction of a command that makes one new file. Targets: transaction <= 30 ms, <= 3 x bwrap.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import statistics
import sys
import tempfile
import time
from collections.abc import Awaitable, Callable
from pathlib import Path

from artoo.ports.sandbox import Roots, Sandbox, SandboxRequest
from artoo.world.bubblewrap import find_bubblewrap
from artoo.world.choose import open_sandbox
from artoo.world.decide import decide

_SCRIPT = "echo result > made-{}.txt"
_BWRAP = ("--ro-bind", "/", "/", "--dev", "/dev", "--proc", "/proc", "--unshare-all", "--die-with-parent")


async def _spawn(*argv: str, cwd: Path) -> None:
    process = await asyncio.create_subprocess_exec(
        *argv,
        cwd=cwd,
        stdin=asyncio.subprocess.DEVNULL,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
    )
    await process.communicate()


async def _transaction(sandbox: Sandbox, roots: Roots, number: int) -> None:
    request = SandboxRequest.bash(
        _SCRIPT.format(number), cwd=roots.project, roots=roots, task_id=f"benchmark-{number % 7}"
    )
    run = await sandbox.run(request)
    async with run.staged:
        if run.status != "ok" or not decide(run.staged.changes).silent:
            raise SystemExit(f"the transaction went wrong: {run}")
        report = await run.staged.apply(digest=run.staged.digest)
        if not report.applied:
            raise SystemExit(f"not applied: {report}")


async def _timed(act: Callable[[], Awaitable[None]]) -> float:
    start = time.perf_counter()
    await act()
    return (time.perf_counter() - start) * 1e3


async def measure(place: Path, rounds: int) -> dict[str, float | str]:
    """The medians. `place` gets a home, a project and artoo's own files."""
    home = place / "home"
    project = home / "project"
    project.mkdir(parents=True)
    for number in range(200):
        (project / f"file{number}.txt").write_text("x" * 1000)
    sandbox = await open_sandbox(home / ".artoo")
    roots = Roots(home=home, workspace=home / "artoo_workspace", project=project)
    bwrap = next(find_bubblewrap(), None)
    bare = ("bash", "-c", "echo result > /dev/null")
    times: dict[str, list[float]] = {"bash": [], "bwrap": [], "transaction": []}
    for number in range(rounds + 5):
        taken = {
            "bash": await _timed(lambda: _spawn(*bare, cwd=project)),
            "transaction": await _timed(lambda number=number: _transaction(sandbox, roots, number)),
        }
        if bwrap is not None:
            taken["bwrap"] = await _timed(lambda: _spawn(str(bwrap), *_BWRAP, "--", *bare, cwd=project))
        if number >= 5:
            for name, value in taken.items():
                times[name].append(value)
    median = {name: statistics.median(values) for name, values in times.items() if values}
    found: dict[str, float | str] = {
        "tier": sandbox.tier,
        "rounds": rounds,
        "transaction_ms": round(median["transaction"], 2),
        "bash_ms": round(median["bash"], 2),
        "vs_bash": round(median["transaction"] / median["bash"], 2),
    }
    if "bwrap" in median:
        found["bwrap_ms"] = round(median["bwrap"], 2)
        found["vs_bwrap"] = round(median["transaction"] / median["bwrap"], 2)
    return found


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--rounds", type=int, default=60)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="artoo-gate-") as place:
        found = asyncio.run(measure(Path(place).resolve(), options.rounds))
    if options.json:
        print(json.dumps(found))
    else:
        for name, value in found.items():
            print(f"{name:16} {value}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
