"""Loads SWE-bench Lite: issues of public projects, with the hidden tests that the real fix made pass (MIT).

The rows come from joyon1104/coding-agent-eval, which keeps them as a file. Only the 77 of sympy are loaded: they
need nothing but mpmath and pytest, while the others need libraries of their year. BENCH_PYTHON names the Python of
the hidden tests (default: this one); issues before 2020 need one before 3.10.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Mapping
from pathlib import Path

from bench.suite import Task, checkout, export, git

REPOSITORY, COMMIT = "joyon1104/coding-agent-eval", "a7aa177"
_PROJECT = "sympy/sympy"
_ROWS = "data/swebench_lite_origin.jsonl"
_SECONDS = 900


def tasks(data: Path | None) -> tuple[Task, ...]:
    """Return the tasks. `data` holds clones named `coding-agent-eval` and `sympy`. Raises DataMissing."""
    rows = checkout(data and data / "coding-agent-eval", REPOSITORY, COMMIT, _ROWS)
    project = checkout(data and data / "sympy", _PROJECT, None)
    lines = (rows / _ROWS).read_text(encoding="utf-8").splitlines()
    return tuple(_task(project, row) for row in map(json.loads, lines) if row["repo"] == _PROJECT)


def _task(project: Path, row: Mapping[str, str]) -> Task:
    def lay(directory: Path) -> None:
        export(project, row["base_commit"], directory)

    def solve(directory: Path) -> None:
        git(directory, "apply", "-", given=row["patch"])

    def check(directory: Path) -> str:
        return _tested(directory, row)

    request = f"Fix this issue in the project here. Do not change its tests.\n\n{row['problem_statement']}"
    return Task(row["instance_id"], request, lay, solve, check)


def _tested(directory: Path, row: Mapping[str, str]) -> str:
    """Return what the hidden tests say, run in a copy; "" if all that should pass do."""
    with tempfile.TemporaryDirectory() as place:
        copy = Path(place) / "copy"
        shutil.copytree(directory, copy, symlinks=True, ignore=shutil.ignore_patterns(".git"))
        files = [line[6:] for line in row["test_patch"].splitlines() if line.startswith("+++ b/")]
        for file in files:  # a test that the work touched is theirs again
            git(directory, "show", f"HEAD:{file}", into=copy / file)
        git(copy, "apply", "-", given=row["test_patch"])
        wanted = {*json.loads(row["FAIL_TO_PASS"]), *json.loads(row["PASS_TO_PASS"])}
        words = (
            os.environ.get("BENCH_PYTHON", sys.executable),
            "-m",
            "pytest",
            "-q",
            "-rA",
            "-p",
            "no:cacheprovider",
            "--no-header",
            *files,
        )
        try:
            done = subprocess.run(words, cwd=copy, capture_output=True, text=True, timeout=_SECONDS, check=False)
        except subprocess.TimeoutExpired:
            return f"the hidden tests did not end within {_SECONDS} s"
    passed = {line.rpartition("::")[2] for line in done.stdout.splitlines() if line.startswith("PASSED ")}
    missing = sorted(wanted - passed)
    if not passed and missing:
        return f"the hidden tests did not run: {(done.stdout + done.stderr).strip()[-300:]}"
    return f"{len(missing)} of {len(wanted)} hidden tests fail: {', '.join(missing[:5])}" if missing else ""
