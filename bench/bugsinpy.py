"""Loads bugs of four projects from soarsmu/BugsInPy that need little: thefuck, tqdm, PySnooper and youtube-dl.

As the benchmark has it, the tests of the fix are there from the beginning. The Python that BENCH_PYTHON names runs
them (default: this one); it needs pytest before 7 and what the projects import.
"""

from __future__ import annotations

import os
import re
import shlex
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping
from pathlib import Path

from bench.suite import Task, checkout, export, git

REPOSITORY, COMMIT = "soarsmu/BugsInPy", "11c5f1e"
_PROJECTS = ("nvbn/thefuck", "tqdm/tqdm", "cool-RR/PySnooper", "ytdl-org/youtube-dl")
_SECONDS = 120


def tasks(data: Path | None) -> tuple[Task, ...]:
    """Return the bugs. `data` holds clones named as their repositories are. Raises DataMissing."""
    bugs = checkout(data and data / "BugsInPy", REPOSITORY, COMMIT, "projects") / "projects"
    found = list[Task]()
    for repository in _PROJECTS:
        name = repository.rpartition("/")[2]
        project = checkout(data and data / name, repository, None)
        numbers = sorted(int(bug.name) for bug in (bugs / name / "bugs").iterdir() if bug.name.isdigit())
        found += (_task(project, name, number, bugs / name / "bugs" / str(number)) for number in numbers)
    return tuple(found)


def _task(project: Path, name: str, number: int, bug: Path) -> Task:
    told = dict(re.findall(r'^(\w+) *= *"(.*?)"', (bug / "bug.info").read_text(encoding="utf-8"), re.MULTILINE))
    tests = [one.strip() for one in told["test_file"].split(";")]
    commands = [
        line.strip() for line in (bug / "run_test.sh").read_text(encoding="utf-8").splitlines() if line.strip()
    ]

    def lay(directory: Path) -> None:
        export(project, told["buggy_commit_id"], directory)
        _put_tests(project, told, tests, directory)

    def solve(directory: Path) -> None:
        git(directory, "apply", "-", given=(bug / "bug_patch.txt").read_text(encoding="utf-8"))

    def check(directory: Path) -> str:
        with tempfile.TemporaryDirectory() as place:
            copy = Path(place) / "copy"
            shutil.copytree(directory, copy, symlinks=True)
            _put_tests(project, told, tests, copy)
            return "; ".join(_failed(commands, copy))

    listed = "\n".join(commands)
    request = f"A bug of this project makes the following fail. Fix it. Do not change tests.\n\n{listed}"
    return Task(f"{name}-{number}", request, lay, solve, check)


def _put_tests(project: Path, told: Mapping[str, str], tests: list[str], directory: Path) -> None:
    for test in tests:
        (directory / test).parent.mkdir(parents=True, exist_ok=True)
        git(project, "show", f"{told['fixed_commit_id']}:{test}", into=directory / test)


def _failed(commands: list[str], directory: Path) -> Iterator[str]:
    """Yield the commands that fail, each with its last line."""
    python = os.environ.get("BENCH_PYTHON", sys.executable)
    for command in commands:
        words = shlex.split(re.sub(r"^(python3? -m )?(?=pytest|unittest)", f"{shlex.quote(python)} -m ", command))
        try:
            done = subprocess.run(
                words, cwd=directory, capture_output=True, text=True, timeout=_SECONDS, check=False
            )
        except subprocess.TimeoutExpired:
            yield f"{command}: did not end within {_SECONDS} s"
            continue
        if done.returncode:
            yield f"{command}: {((done.stdout + done.stderr).strip().splitlines() or ['no output'])[-1]}"
