"""A disk that is full once: the chain says so itself, and from then on all is as ever."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path

import pytest
from tapes import Tape
from test_auditor import auditing
from trails import NOW, proved

from artoo.auditor.layout import audit_directory
from artoo.auditor.trail import Trail, encoded, gap_record
from artoo.auditor.verify import Verification
from artoo.cli.views.audit_view import verification_lines
from artoo.ports.spool import Gap

RECORDS = [encoded({"type": "message", "at": NOW, "id": "m" * 300, "kind": "Plan"})] * 5
FULL = "[Errno 28] No space left on device"


class Disk:
    """A small file system."""

    def __init__(self, home: Path) -> None:
        self.home = home
        self._filled = home / ".filled"

    def fill(self, *, leaving: int = 0) -> None:
        """Takes all the room but so many blocks."""
        descriptor = os.open(self._filled, os.O_WRONLY | os.O_CREAT | os.O_APPEND)
        try:
            while os.write(descriptor, b"0" * 4096):
                pass
        except OSError:
            size = os.fstat(descriptor).st_size
            os.ftruncate(descriptor, max(0, size - leaving * 4096))
        finally:
            os.close(descriptor)

    def clear(self) -> None:
        """There is room again."""
        self._filled.unlink()


@pytest.fixture
def disk(tmp_path: Path) -> Iterator[Disk]:
    home = tmp_path / "small"
    home.mkdir()
    mount = ("mount", "-t", "tmpfs", "-o", "size=512k", "tmpfs", str(home))
    if subprocess.run(mount, capture_output=True, check=False).returncode != 0:
        pytest.skip("this user may not mount a file system")
    yield Disk(home)
    subprocess.run(("umount", "-l", str(home)), check=True)


@pytest.mark.parametrize("leaving", [0, 1, 4])
def test_a_chain_on_a_full_disk_is_no_forgery(disk: Disk, leaving: int) -> None:
    """However little fits: what was written verifies, now and when later chains stand beside it."""
    trail = Trail(audit_directory(disk.home))
    for _ in range(11):
        trail.write(RECORDS, NOW, anchor=True)
    disk.fill(leaving=leaving)
    for _ in range(40):
        trail.write(RECORDS, NOW, anchor=True)
    trail.close(NOW)
    assert trail.lost > 0
    found = proved(disk.home)
    assert found.sound, found.problems
    assert [chain.ended for chain in found.chains] == ["died"]
    disk.clear()
    later = Trail(audit_directory(disk.home))
    later.write(RECORDS, NOW + timedelta(hours=1), anchor=True)
    later.close(NOW + timedelta(hours=1))
    found = proved(disk.home)
    assert found.sound and (found.chains[-1].ended, found.chains[-1].lost) == ("closed", 0)


async def test_verify_says_what_happened(disk: Disk, tapes: dict[str, Tape]) -> None:
    """`artoo audit verify` names the chain, the reason and how many: that is not whole. So after later runs."""
    async with auditing(disk.home) as (auditor, spool):
        spool(tapes["plain"].messages[0])
        await auditor.flush()
        disk.fill()
        for message in tapes["plain"].messages[1:] * 20:
            spool(message)
    disk.clear()
    for _ in range(2):
        async with auditing(disk.home) as (_, spool):
            for message in tapes["judged"].messages:
                spool(message)
        found = proved(disk.home)
        lines = verification_lines(found)
        assert found.sound and lines[-1].startswith("nothing that was recorded is missing"), lines
        assert found.unrecorded > 0 and lines[-1].endswith(f"{found.unrecorded} were never recorded"), lines
        assert sum(f"records could not be written: {FULL}" in line for line in lines) == 1, lines
    assert not list(audit_directory(disk.home).glob("*.new"))


def test_messages_that_nobody_saw_are_not_called_recorded(tmp_path: Path) -> None:
    """A gap is no forgery, and a chain that has one does not hold everything."""
    trail = Trail(audit_directory(tmp_path))
    trail.write([*RECORDS, gap_record(Gap(count=3, reason=FULL, by_task=()), NOW)], NOW)
    trail.close(NOW)
    found = Verification(chains=proved(tmp_path).chains)
    assert verification_lines(found)[-1].endswith("3 were never recorded")
