from __future__ import annotations

import signal
import subprocess
import sys
from pathlib import Path

import pytest

from artoo.memory import verify
from artoo.memory.engines import engine_at

PROGRAM = Path(__file__).with_name("writing_process.py")


def start(directory: Path, name: str, count: int, begin: int = 0) -> subprocess.Popen[str]:
    """A writing process."""
    arguments = [sys.executable, str(PROGRAM), str(directory), name, str(count), str(begin)]
    return subprocess.Popen(arguments, stdout=subprocess.PIPE, text=True)


def wait_for(process: subprocess.Popen[str], number: int) -> int:
    """Reads acknowledgements until one reaches `number` (or the process ends); returns the last."""
    acknowledged = 0
    assert process.stdout is not None
    for line in process.stdout:
        acknowledged = int(line)
        if acknowledged >= number:
            break
    return acknowledged


def two_writers_and_a_killer(directory: Path, count: int, kills: int) -> None:
    """One process writes `count`; another does too, but is killed and started again in between."""
    steady = start(directory, "steady", count)
    acknowledged = 0
    for kill in range(1, kills + 1):
        victim = start(directory, "victim", count, acknowledged)
        acknowledged = max(acknowledged, wait_for(victim, kill * count // (kills + 1)))
        victim.send_signal(signal.SIGKILL)
        victim.communicate()
    last = start(directory, "victim", count, acknowledged)
    last.communicate()
    steady.communicate()
    assert (last.returncode, steady.returncode) == (0, 0)
    engine = engine_at(directory)
    try:
        found = engine.read(verify.examine)
        assert found.sound, found.examples
        assert found.records == 2 * count
        assert found.pairs == 5
        rows = engine.read(lambda query: query.all("SELECT id FROM memory_megrams"))
        wanted = {f"{who}-{number:07d}" for who in ("steady", "victim") for number in range(count)}
        assert {row["id"] for row in rows} == wanted
    finally:
        engine.close()


def test_killed_writers_leave_exact_sums(tmp_path: Path) -> None:
    """Two processes write, one is killed again and again: nothing acknowledged is lost, sums are exact."""
    two_writers_and_a_killer(tmp_path / "memory", 2_000, kills=2)


@pytest.mark.torture
def test_killed_writers_leave_exact_sums_at_length(tmp_path: Path) -> None:
    """The same with 100,000 megrams each and ten kills."""
    two_writers_and_a_killer(tmp_path / "memory", 100_000, kills=10)
