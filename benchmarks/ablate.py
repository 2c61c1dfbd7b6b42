"""What each heuristic earns: the same tasks with all of them on, and with one of them off at a time.

    python benchmarks/ablate.py TASKS_FOLDER [--only NAME …] [--tasks all] [--calls 12] [--wall 7200]

TASKS_FOLDER holds `run.py` and `tasks/`, as its README says; a model server is at EVAL_UPSTREAM. Each run has a
home of its own. Prints one line a heuristic: tasks that were right, claims that were wrong, and of each task in the
median the model calls and the prompt tokens that were not cached.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import cast

from artoo.loops.heuristics import NAMES

_PATIENCE = {"ARTOO_CONTROL__TIME_BUDGET_MS": "7200000", "ARTOO_LIMITS__SUBTASK_SECONDS": "3600"}
"""Calls and tokens are what is counted: how busy the machine is must not decide."""


@dataclass(frozen=True)
class Earned:
    """One run over all tasks."""

    right: int
    false: int
    tasks: int
    calls: float
    tokens: float


def run(folder: Path, off: str | None, tasks: str, calls: int, wall: int) -> Earned:
    """All tasks with one heuristic off (None: with all of them)."""
    with tempfile.TemporaryDirectory(prefix="artoo-ablate-") as place:
        out = Path(place) / "out.jsonl"
        environment = {**os.environ, **_PATIENCE, "HOME": place, "ARTOO_HOME": str(Path(place) / "home")}
        if off is not None:
            environment["ARTOO_CONTROL__WITHOUT"] = off
        command = f"{Path(sys.executable).parent / 'artoo'} run --json {{prompt}}"
        arguments = ["--runner", "artoo", "--cmd", command, "--tasks", tasks, "--wall", str(wall)]
        subprocess.run(
            [sys.executable, str(folder / "run.py"), *arguments, "--calls", str(calls), "--out", str(out)],
            env=environment,
            check=True,
            stdout=subprocess.DEVNULL,
        )
        return earned(
            [cast("dict[str, object]", json.loads(line)) for line in out.read_text().splitlines() if line]
        )


def earned(rows: Sequence[dict[str, object]]) -> Earned:
    """The figures of one run's records."""

    def number(row: dict[str, object], name: str) -> float:
        value = row.get(name, 0)
        return float(value) if isinstance(value, (int, float)) else 0.0

    return Earned(
        right=sum(bool(row.get("pass")) for row in rows),
        false=sum(bool(row.get("false_success")) for row in rows),
        tasks=len(rows),
        calls=statistics.median(number(row, "calls") for row in rows) if rows else 0.0,
        tokens=statistics.median(number(row, "prompt_tokens") - number(row, "cached_tokens") for row in rows)
        if rows
        else 0.0,
    )


def main() -> int:
    """Prints the table; 2 when there are no tasks."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--only", nargs="*", default=list(NAMES), choices=list(NAMES))
    parser.add_argument("--tasks", default="all")
    parser.add_argument("--calls", type=int, default=12)
    parser.add_argument("--wall", type=int, default=7200)
    given = parser.parse_args()
    folder = cast("Path", given.folder)
    if not (folder / "run.py").is_file() or not (folder / "tasks").is_dir():
        print(f"there are no tasks in {folder}: it needs run.py and a folder tasks", file=sys.stderr)
        return 2
    print(f"{'without':14} right  false  calls  tokens")
    for off in (None, *cast("list[str]", given.only)):
        found = run(folder, off, cast(str, given.tasks), cast(int, given.calls), cast(int, given.wall))
        print(
            f"{off or '(all on)':14} {found.right:2}/{found.tasks:<2}  {found.false:5}  {found.calls:5g}  "
            f"{found.tokens:6.0f}",
            flush=True,
        )
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
