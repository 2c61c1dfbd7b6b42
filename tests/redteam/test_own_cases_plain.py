"""The same cases as a plain user, when the suite runs as root: another kernel interface, other rights, no devices.

The tests run in a process of their own with the system's Python, for that user may not reach this one's; it must be
of the version that the environment's packages were built for.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest
from own_cases import BENIGN, BENIGN_IN_REPOSITORY, HISTORY, LOSES, OUT_OF_REACH

_HERE = Path(__file__).parent
_TREE = _HERE.parents[1]
_PLAIN = 65534
_PYTHON = "/usr/bin/python3"
_STRIDE = 9

_LOSING, _BENIGN = "test_what_loses_something_waits", "test_what_loses_nothing_is_applied_unasked"
_HISTORY, _GIT = "test_history_waits_and_undo_brings_it_back", "test_git_that_loses_nothing_is_applied_unasked"
_FAMILIES = ((_LOSING, LOSES), (_HISTORY, HISTORY), (_BENIGN, BENIGN), (_GIT, BENIGN_IN_REPOSITORY))
_ALONE = ("test_what_the_task_made_is_free", "test_a_file_tool_is_no_way_around")


@pytest.fixture
def place() -> Iterator[Path]:
    """A directory that no private /tmp covers, of the plain user's own."""
    made = Path(tempfile.mkdtemp(prefix=".plain-", dir=_TREE))
    try:
        made.chmod(0o755)
        os.chown(made, _PLAIN, _PLAIN)
        yield made
    finally:
        shutil.rmtree(made, ignore_errors=True)


def as_plain_user(place: Path, tests: list[str], seconds: int) -> str:
    """What the tests say when a plain user runs them; skips where that user cannot start them."""
    library = next(path for path in sys.path if path.endswith("site-packages"))
    cases = [f"{_HERE / 'test_own_cases.py'}{test}" for test in tests]
    environ = {
        "PATH": os.defpath,
        "HOME": str(place),
        "TMPDIR": str(place),
        "PYTHONPATH": os.pathsep.join((str(_TREE / "src"), library)),
        "PYTHONDONTWRITEBYTECODE": "1",
    }

    def run(*words: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            (_PYTHON, *words),
            cwd=_TREE,
            env=environ,
            capture_output=True,
            text=True,
            check=False,
            timeout=seconds,
            user=_PLAIN,
            group=_PLAIN,
            extra_groups=(),
        )

    started = run("-c", "import pytest, pydantic, artoo")
    if started.returncode != 0:
        pytest.skip(f"the system's Python cannot run artoo here: {started.stderr[-300:]}")
    pieces = (
        "-m",
        "pytest",
        "-o",
        "addopts=",
        "-q",
        "-rs",
        "-p",
        "no:cacheprovider",
        "--basetemp",
        str(place / "cases"),
    )
    done = run(*pieces, *cases)
    assert done.returncode == 0, done.stdout[-4000:] + done.stderr[-1000:]
    return done.stdout


pytestmark = pytest.mark.skipif(os.geteuid() != 0, reason="the other tests run as a plain user already")


def test_some_cases_as_a_plain_user(place: Path) -> None:
    """Every ninth of each family, and what a task may do with its own."""
    chosen = [f"::{test}[{case.name}]" for test, cases in _FAMILIES for case in cases[::_STRIDE]]
    said = as_plain_user(place, [*chosen, *(f"::{test}" for test in _ALONE)], 500)
    if "no tier that stages changes" in said:
        pytest.skip("no tier that stages changes works here for a plain user")
    assert f"{len(chosen) + 4} passed" in said


@pytest.mark.torture
def test_all_cases_as_a_plain_user(place: Path) -> None:
    """All of them."""
    said = as_plain_user(place, [""], 3_600)
    if "no tier that stages changes" in said:
        pytest.skip("no tier that stages changes works here for a plain user")
    expected = sum(len(cases) for _, cases in _FAMILIES) + len(OUT_OF_REACH) + 4
    assert f"{expected} passed" in said
    print(said.splitlines()[-1])
