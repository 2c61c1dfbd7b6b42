"""Whoever dies before the next process has asked to die with it: nothing is left running."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from dataclasses import asdict
from pathlib import Path

import pytest

from artoo.world import launcher
from artoo.world.group import LaunchPlan
from artoo.world.process_tree import descendants

# the launcher, but the Nth process that asks to die with its parent does so late
SLOW = """
import importlib.util, itertools, os, sys, time
spec = importlib.util.spec_from_file_location("launcher", sys.argv[3])
launcher = importlib.util.module_from_spec(spec)
spec.loader.exec_module(launcher)
real, turns, late = launcher._prctl, itertools.count(1), int(sys.argv[4])
def prctl(option, value):
    if option == launcher._DEATH_SIGNAL and next(turns) == late:
        open(sys.argv[5], "w").write(str(os.getpid()))
        time.sleep(1.0)
    real(option, value)
launcher._prctl = prctl
sys.exit(launcher.main())
"""


def wait_for(path: Path) -> int:
    """The process that is about to be late."""
    deadline = time.monotonic() + 30
    while time.monotonic() < deadline:
        if path.exists() and path.read_text(encoding="utf-8"):
            return int(path.read_text(encoding="utf-8"))
        time.sleep(0.01)
    raise AssertionError("nobody was late")


def gone(pid: int) -> bool:
    deadline = time.monotonic() + 30
    while time.monotonic() < deadline:
        try:
            state = Path(f"/proc/{pid}/stat").read_bytes().rpartition(b")")[2].split()[0]
        except OSError:
            return True
        if state == b"Z":
            return True
        time.sleep(0.02)
    return False


@pytest.mark.parametrize("mode", ["plain", "landlock"])
@pytest.mark.parametrize("late", [1, 2])
def test_a_death_before_the_next_one_asked_to_be_told(tmp_path: Path, mode: str, late: int) -> None:
    """1: whoever started the launcher dies; 2: the launcher dies. The command is never reached."""
    made, told = tmp_path / "made", tmp_path / "told"
    script = f"echo x > {made}; exec sleep 60"
    plan = LaunchPlan(
        mode,
        ("/bin/sh", "-c", script),
        dict(os.environ),
        str(tmp_path),
        readable=("/",),
        writable=(str(tmp_path),),
    )
    config = os.memfd_create("plan")
    os.write(config, json.dumps(asdict(plan)).encode())
    os.lseek(config, 0, os.SEEK_SET)
    read, write = os.pipe()
    arguments = (str(config), str(write), launcher.__file__, str(late), str(told))
    process = subprocess.Popen((sys.executable, "-c", SLOW, *arguments), pass_fds=(config, write))
    for descriptor in (config, write):
        os.close(descriptor)
    slow = wait_for(told)
    if late == 1:
        os.close(read)  # all that the launcher knows of its starter
        assert process.wait(30) == 143
    else:
        assert slow in descendants(process.pid)
        process.send_signal(signal.SIGKILL)
        process.wait()
        os.close(read)
    assert gone(slow)
    assert not made.exists()
