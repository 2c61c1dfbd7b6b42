"""Runs of the chaos one after the other, each a process of pytest of its own, over hours if need be.

    chaos_runs.py FILE FIRST LAST [FOLDER]

One line of JSON is appended to FILE for each seed from FIRST to LAST. A seed that FILE has as passed is passed
over, so an ended one goes on when it is started again. What a failing run left (history, blows, what workers said)
stays in FOLDER, by its seed. `ARTOO_CHAOS_WHOLE_EVERY`: how many runs to one of full size, 10 if it is not set.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import time
from collections import Counter
from pathlib import Path

from chaos_field import BLOWS_FELL
from chaos_history import noted

MOST_SECONDS = 3_600.0
TEST = Path(__file__).with_name("test_chaos.py")


def main(file: Path, first: int, last: int, folder: Path) -> int:
    """Returns how many failed."""
    failed = 0
    for seed in range(first, last + 1):
        if seed not in passed(file):
            failed += not run(file, seed, folder / str(seed))
    return failed


def passed(file: Path) -> set[int]:
    """The seeds that need no run."""
    lines = file.read_text("utf-8").splitlines() if file.exists() else []
    return {found["seed"] for found in map(json.loads, lines) if found["passed"]}


def run(file: Path, seed: int, folder: Path) -> bool:
    """One run. What it left is removed when it has passed."""
    folder.parent.mkdir(parents=True, exist_ok=True)
    shutil.rmtree(folder, ignore_errors=True)
    began = time.monotonic()
    command = [
        sys.executable,
        "-m",
        "pytest",
        "-m",
        "torture",
        f"{TEST}::test_chaos[{seed}]",
        f"--basetemp={folder}",
    ]
    environment = os.environ | {"ARTOO_CHAOS_RUNS": str(seed + 1)}
    try:
        told = subprocess.run(
            command, capture_output=True, text=True, check=False, env=environment, timeout=MOST_SECONDS
        )
        good, said = told.returncode == 0 and "1 passed" in told.stdout, told.stdout
    except subprocess.TimeoutExpired as error:
        good, said = False, f"not done in {error.timeout:.0f} s"
    seconds = round(time.monotonic() - began, 1)
    line = {
        "seed": seed,
        "passed": good,
        "seconds": seconds,
        "load": round(os.getloadavg()[0], 1),
        **what_was(folder),
    }
    if good:
        shutil.rmtree(folder, ignore_errors=True)
    else:
        folder.mkdir(exist_ok=True)
        (folder / "pytest.txt").write_text(said, "utf-8")
    with file.open("a", encoding="utf-8") as lines:
        lines.write(json.dumps(line) + "\n")
    return good


def what_was(folder: Path) -> dict[str, int]:
    """How often what happened, and what workers were told."""
    found = Counter[str]()
    for place in folder.glob("test_chaos*"):
        if place.is_symlink():  # pytest's, to the latest
            continue
        if (place / BLOWS_FELL).exists():
            found.update(json.loads(line)["blow"] for line in (place / BLOWS_FELL).read_text("ascii").splitlines())
        found.update(note.what for note in noted(place))
    return dict(sorted(found.items()))


if __name__ == "__main__":
    begun, beginning, end, *where = sys.argv[1:]
    place = Path(where[0]) if where else Path(f"{begun}.failed")
    sys.exit(main(Path(begun), int(beginning), int(end), place) > 0)
