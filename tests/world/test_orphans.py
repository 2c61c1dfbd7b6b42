"""Who is killed with artoo between two steps of bubblewrap's start leaves no command, and nothing that stays."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Generator
from contextlib import contextmanager, suppress
from pathlib import Path

import pytest

from artoo.ports.sandbox import Limits
from artoo.world import entry
from artoo.world.bubblewrap import find_bubblewrap
from artoo.world.orphans import end_orphans
from artoo.world.process_tree import descendants
from artoo.world.status import parent_of

pytestmark = pytest.mark.skipif(not sys.platform.startswith("linux"), reason="bubblewrap is of Linux")


def gone_into(way: entry.Entry) -> subprocess.CompletedProcess[str]:
    """The entry as bubblewrap starts it: without new privileges, which Landlock asks of all but root."""
    command = ("setpriv", "--no-new-privs", *way.argv)
    return subprocess.run(command, pass_fds=way.descriptors, capture_output=True, text=True, check=False)


@pytest.mark.parametrize("made_of", ["steps", "python"])
@pytest.mark.parametrize("lives", [True, False])
def test_the_entry_asks_whether_artoo_lives(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, made_of: str, lives: bool
) -> None:
    """The command is reached when somebody still listens, and never when nobody does."""
    if made_of == "python":
        monkeypatch.setattr(entry, "supported", lambda: False)
    made = tmp_path / "made"
    script = ("/bin/sh", "-c", f"echo x > {made}")
    with entry.entered((str(tmp_path),), Limits()) as way:
        way.tell(script, os.environ)
        ours, theirs = socket.socketpair()
        with ours, theirs:
            if not lives:
                ours.close()
            else:
                ours.send(b".")
            os.dup2(theirs.fileno(), way.descriptors[1])
            done = gone_into(way)
    assert (done.returncode == 0, made.exists()) == (lives, lives), done.stderr


@pytest.mark.parametrize("number", range(62, 67))
def test_whatever_number_the_descriptor_has(tmp_path: Path, number: int) -> None:
    """A process that has many things open may be given any: none of the entry's own steps uses it."""
    opened = [os.open(os.devnull, os.O_RDONLY) for _ in range(80)]
    free = (opened[0], number)
    for descriptor in free:
        os.close(descriptor)
    try:
        script = ("/bin/sh", "-c", f"echo x > {tmp_path}/made")
        with entry.entered((str(tmp_path),), Limits()) as way:
            assert number in way.descriptors
            way.tell(script, os.environ)
            done = gone_into(way)
        assert (tmp_path / "made").exists(), done.stderr
    finally:
        for descriptor in opened:
            if descriptor not in free:
                os.close(descriptor)


@contextmanager
def started(name: str) -> Generator[tuple[subprocess.Popen[bytes], int]]:
    """A bubblewrap whose first process waits, with a file in memory of that name; and that process."""
    bwrap = next(find_bubblewrap(), None)
    if bwrap is None:
        pytest.skip("bubblewrap is not installed")
    file = os.memfd_create(name)
    waits, goes = os.pipe()
    argv = (str(bwrap), "--unshare-pid", "--as-pid-1", "--bind", "/", "/", "--block-fd", str(waits), "sleep", "60")
    process = subprocess.Popen(argv, pass_fds=(file, waits), start_new_session=True)
    first = None
    try:
        until = time.monotonic() + 30
        while first is None and time.monotonic() < until and process.poll() is None:
            first = next(iter(descendants(process.pid)), None)
            time.sleep(0.01)
        if first is None:
            pytest.skip("bubblewrap makes no namespaces here")
        yield process, first
    finally:
        for pid in filter(None, (process.pid, first)):
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        process.wait()
        for descriptor in (file, waits, goes):
            os.close(descriptor)


def gone(pid: int) -> bool:
    """Soon."""
    until = time.monotonic() + 30
    while time.monotonic() < until:
        with suppress(OSError):
            if Path(f"/proc/{pid}/stat").read_bytes().rpartition(b")")[2].split()[0] != b"Z":
                time.sleep(0.01)
                continue
        return True
    return False


def test_what_was_left_is_ended() -> None:
    """The first process of a bubblewrap that was killed is found and ended; one whose parent lives is not."""
    with started(entry.NAME) as (_, at_work), started(entry.NAME) as (killed, left):
        killed.kill()
        killed.wait()
        assert parent_of(left) != killed.pid
        ended = end_orphans()
        assert gone(left)  # by us, or by another artoo on this machine that began just now
        assert at_work not in ended
        assert not Path(f"/proc/{at_work}/stat").read_bytes().rpartition(b")")[2].startswith(b" Z")


def test_the_bubblewrap_of_another_program_is_left_alone() -> None:
    """Without our entry in memory it is none of ours, whatever became of its parent."""
    with started("somebody-elses") as (killed, left):
        killed.kill()
        killed.wait()
        assert left not in end_orphans()
        assert parent_of(left) is not None
