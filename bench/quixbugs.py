"""Loads jkoppel/QuixBugs: 40 Python programs of one function, each with one bug, checked by hidden tests (MIT)."""

from __future__ import annotations

import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

from bench.suite import Task, checkout

REPOSITORY = "jkoppel/QuixBugs"
COMMIT = "4257f44"
_SECONDS = 60
_HELPER = "node.py"


def tasks(data: Path | None) -> tuple[Task, ...]:
    """Return all tasks. Raises DataMissing."""
    place = checkout(data, REPOSITORY, COMMIT)
    tests = sorted((place / "python_testcases").glob("test_*.py"))
    return tuple(_task(place, test.stem.removeprefix("test_")) for test in tests)


def _task(place: Path, name: str) -> Task:
    program = f"{name}.py"

    def lay(directory: Path) -> None:
        for file in (program, _HELPER):
            shutil.copy(place / "python_programs" / file, directory)

    def solve(directory: Path) -> None:
        shutil.copy(place / "correct_python_programs" / program, directory)

    def check(directory: Path) -> str:
        return _tested(place, name, directory / program)

    request = (
        f"The function in {program} has exactly one bug. Find it and fix it in that file. "
        "Keep the function's name and its parameters. The text at the end of the file says what it should do."
    )
    return Task(name, request, lay, solve, check)


def _tested(place: Path, name: str, program: Path) -> str:
    """Return what their tests say of a program that takes the place of theirs in a copy; "" if they pass."""
    if not program.is_file():
        return f"{program.name} is gone"
    with tempfile.TemporaryDirectory() as copy:
        there = Path(copy)
        for folder in ("python_programs", "python_testcases", "json_testcases"):
            shutil.copytree(place / folder, there / folder)
        shutil.copy(place / "conftest.py", there)
        shutil.copy(program, there / "python_programs")
        words = (sys.executable, "-m", "pytest", "-q", "-x", "-p", "no:cacheprovider", "--rootdir", copy)
        test = f"python_testcases/test_{name}.py"
        try:
            done = subprocess.run(
                (*words, test), cwd=there, capture_output=True, text=True, timeout=_SECONDS, check=False
            )
        except subprocess.TimeoutExpired:
            return f"their tests did not end within {_SECONDS} s"
    return "" if done.returncode == 0 else done.stdout.strip().splitlines()[-1]
