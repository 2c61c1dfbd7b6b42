"""What each heuristic earns: the same tasks with all of them on, and with one of them off at a time.

    python benchmarks/ablate.py TASKS_FOLDER [--only NAME …] [--tasks all] [--apart ID …] [--place FOLDER]

TASKS_FOLDER holds `run.py` and `tasks/`, as its README says; a model server is at EVAL_UPSTREAM. Each task has a
fresh home (or all of a run one, with --one-home), always of the same name, like the folder it works in. What the
model answered to a request is kept in FOLDER and given again wherever a run asks the same (`replies.py`), so that
where a heuristic changes nothing its run costs nothing and differs in nothing. A run that was cut off goes on
where it was; for new runs give a new FOLDER. The tasks of --apart (the part of their ids before the first _) are
counted by themselves.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import cast

from artoo.loops.heuristics import NAMES
from replies import Recorder, recording

_PATIENCE = {
    "ARTOO_CONTROL__TIME_BUDGET_MS": "7200000",
    "ARTOO_MODELS__BRAIN__TIMEOUT": "3600",
    "ARTOO_MODELS__TOOL__TIMEOUT": "3600",
}
"""Calls and tokens are what is counted: how busy the machine is must not decide."""

_AT_THE_SAME_PLACE = """
rm -rf {place}/work && mv {{work}} {place}/work && cd {place}/work || exit 1
{artoo} run --json {{prompt}} | tee {place}/said
code=${{PIPESTATUS[0]}}; cd / && mv {place}/work {{work}}; exit "$code"
"""
"""The runner's folder has another name each time, and a program may print where it is."""

_REFUSED = "exit2"
"""How the runner calls an end with the exit code for usage or configuration."""

ALL_ON = "(all on)"


@dataclass(frozen=True)
class Ran:
    """One task in one run. `right` can be an honest failure; `false` says it is done and is not; `sure` says
    that it claims more than that nothing confirmed it."""

    task: str
    right: bool
    false: bool
    sure: bool
    calls: int
    uncached: int
    written: int


@dataclass(frozen=True)
class Place:
    """Where a series of runs keeps what it has."""

    folder: Path

    def records(self, name: str) -> Path:
        """The runner's lines of one run."""
        return self.folder / f"{name.strip('()').replace(' ', '-')}.jsonl"

    def fresh(self, name: str) -> Path:
        """An empty folder of this name."""
        path = self.folder / name
        shutil.rmtree(path, ignore_errors=True)
        path.mkdir(parents=True)
        return path


@dataclass(frozen=True)
class Series:
    """The runs of some tasks."""

    folder: Path
    place: Place
    artoo: Path
    tasks: tuple[str, ...]
    calls: int
    wall: int
    one_home: bool

    def run(self, name: str, recorder: Recorder) -> list[Ran]:
        """All tasks with one heuristic off (ALL_ON: with none off); those that are recorded are not run again.

        In one home the tasks before are run again, which costs no model call, because what they left there counts.
        """
        out = self.place.records(name)
        if self.one_home:
            out.unlink(missing_ok=True)
            self.place.fresh("home")
        known = {ran.task for ran in read(out)}
        for task in self.tasks:
            if task in known:
                continue
            if not self.one_home:
                self.place.fresh("home")
            recorder.begin(name, task)
            self._run(name, task, recorder.address)
        return [ran for ran in read(out) if ran.task in self.tasks]

    def _run(self, name: str, task: str, server: str) -> None:
        place, out = self.place.folder, self.place.records(name)
        home = place / "home"
        said = place / "said"
        said.unlink(missing_ok=True)
        environment = {
            **os.environ,
            **_PATIENCE,
            "HOME": str(home),
            "ARTOO_HOME": str(home / ".artoo"),
            "EVAL_UPSTREAM": server,
            **({} if name == ALL_ON else {"ARTOO_CONTROL__WITHOUT": name}),
        }
        command = _AT_THE_SAME_PLACE.format(place=place, artoo=self.artoo)
        one = place / "one.jsonl"
        one.unlink(missing_ok=True)
        arguments = ["--runner", "artoo", "--cmd", command, "--tasks", task, "--out", str(one)]
        subprocess.run(
            [sys.executable, "run.py", *arguments, "--wall", str(self.wall), "--calls", str(self.calls)],
            cwd=self.folder,
            env=environment,
            check=True,
            stdout=subprocess.DEVNULL,
        )
        row = {**json.loads(one.read_text()), "assurance": assurance(said)}
        if row.get("end") == _REFUSED:
            raise SystemExit(f"artoo refused to begin {task} in the run {name}: {row.get('stderr_tail')}")
        with out.open("a") as records:
            records.write(json.dumps(row) + "\n")


def assurance(said: Path) -> str:
    """What the result says of itself, in the last line that artoo printed; "" when it printed none."""
    try:
        last = json.loads(said.read_text(encoding="utf-8").splitlines()[-1])
    except (OSError, IndexError, ValueError):
        return ""
    return str(cast("dict[str, object]", last).get("assurance", "")) if isinstance(last, dict) else ""


def read(records: Path) -> list[Ran]:
    """The tasks of a run; none when there is no such file."""
    lines = records.read_text(encoding="utf-8").splitlines() if records.exists() else []
    return [ran_of(cast("dict[str, object]", json.loads(line))) for line in lines]


def ran_of(row: dict[str, object]) -> Ran:
    """One of the runner's lines."""

    def number(name: str) -> int:
        value = row.get(name, 0)
        return int(value) if isinstance(value, (int, float)) else 0

    false = bool(row.get("false_success"))
    return Ran(
        task=str(row["task"]),
        right=bool(row.get("pass")),
        false=false,
        sure=false and row.get("assurance") not in ("", "unverified"),
        calls=number("calls"),
        uncached=number("prompt_tokens") - number("cached_tokens"),
        written=number("completion_tokens"),
    )


HEAD = (
    f"{'without':15} {'right':7} {'won/lost':8} {'false':>5} {'sure':>4}  {'calls':>11}  {'uncached':>8}  written"
)


def line(name: str, runs: Sequence[Ran], with_all: Sequence[Ran]) -> str:
    """One line of the table: right; tasks that became right and wrong without it; wrong and said to be done, and of
    these with more than "unverified"; calls in the median, most and together; median uncached prompt tokens of a
    task; tokens written by the model, together."""
    if not runs:
        return f"{name:15} no task"
    before = {ran.task: ran.right for ran in with_all}
    won = sum(ran.right and not before.get(ran.task, ran.right) for ran in runs)
    lost = sum(not ran.right and before.get(ran.task, ran.right) for ran in runs)
    calls = [ran.calls for ran in runs]
    median, together = statistics.median(calls), sum(calls)
    return (
        f"{name:15} {sum(ran.right for ran in runs):2}/{len(runs):<4} {f'+{won} -{lost}':8} "
        f"{sum(ran.false for ran in runs):5} {sum(ran.sure for ran in runs):4}  "
        f"{median:4g} {max(calls):2} {together:3}  "
        f"{statistics.median(ran.uncached for ran in runs):8g}  {sum(ran.written for ran in runs):7}"
    )


def table(found: dict[str, list[Ran]], apart: Sequence[str]) -> str:
    """All runs over all tasks that each of them has seen, and over the tasks apart and the others."""
    halves = {"all": lambda task: True}
    if apart:
        halves["not apart"] = lambda task: task.partition("_")[0] not in apart
        halves["apart"] = lambda task: task.partition("_")[0] in apart
    base = found.get(ALL_ON, [])
    lines: list[str] = []
    for title, holds in halves.items():
        lines += ["", title, HEAD]
        for name, runs in found.items():
            mine = [ran for ran in runs if holds(ran.task)]
            lines.append(line(name, mine, [ran for ran in base if holds(ran.task)]))
    return "\n".join(lines[1:])


def main() -> int:
    """Prints the table; 2 when there are no tasks."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--only", nargs="*", default=list(NAMES), choices=list(NAMES))
    parser.add_argument("--tasks", nargs="*", default=["all"], help="ids, or the part before the first _")
    parser.add_argument("--apart", nargs="*", default=[])
    parser.add_argument("--place", type=Path, default=Path(tempfile.gettempdir()) / "artoo-ablate")
    parser.add_argument("--one-home", action="store_true")
    parser.add_argument("--calls", type=int, default=12)
    parser.add_argument("--wall", type=int, default=7200)
    given = parser.parse_args()
    folder = cast("Path", given.folder).absolute()
    known = sorted(path.stem for path in (folder / "tasks").glob("*.json"))
    wanted = cast("list[str]", given.tasks)
    tasks = tuple(task for task in known if {"all", task, task.partition("_")[0]} & set(wanted))
    if not (folder / "run.py").is_file() or not tasks:
        print(f"there are no such tasks in {folder}: it needs run.py and tasks/*.json", file=sys.stderr)
        return 2
    place = cast("Path", given.place).absolute()
    place.mkdir(parents=True, exist_ok=True)
    artoo = Path(sys.executable).parent / "artoo"
    series = Series(folder, Place(place), artoo, tasks, given.calls, given.wall, given.one_home)
    found: dict[str, list[Ran]] = {}
    with recording(place / "replies.sqlite", os.environ.get("EVAL_UPSTREAM", "127.0.0.1:8091")) as recorder:
        for name in (ALL_ON, *cast("list[str]", given.only)):
            found[name] = series.run(name, recorder)
            made = recorder.replies.made_for(name)
            print(f"{name}: {made} of {sum(ran.calls for ran in found[name])} replies made for it", flush=True)
    print(table(found, cast("list[str]", given.apart)))
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
