"""What a command prints is kept in bounded memory and on disk, and can be read while it runs."""

from __future__ import annotations

import asyncio
import os
import pty
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from artoo.ports.workspace import MIB, CommandLimits
from artoo.sandbox.output import Output


def _follow(output: Output, script: str, *, terminal: bool = False) -> subprocess.Popen[bytes]:
    """Start a shell script whose streams `output` follows."""
    out = pty.openpty() if terminal else os.pipe()
    err = os.pipe()
    process = subprocess.Popen(
        ("sh", "-c", script), stdin=subprocess.DEVNULL, stdout=out[1], stderr=out[1] if terminal else err[1]
    )
    os.close(out[1])
    os.close(err[1])
    output.follow(out[0])
    output.follow(err[0], "stderr")
    return process


class _Heard:
    """What an `Output` told its listener."""

    def __init__(self) -> None:
        self.data = b""
        self._more = asyncio.Event()

    def __call__(self, data: bytes) -> None:
        self.data += data
        self._more.set()

    async def until(self, ending: bytes) -> None:
        """Wait until what was printed ends so."""
        async with asyncio.timeout(10):
            while not self.data.endswith(ending):
                self._more.clear()
                await self._more.wait()


async def test_both_streams_are_kept_in_the_order_of_their_arrival(tmp_path: Path) -> None:
    """Each stream has its own head and tail; the file holds both as they came; the listener hears each piece."""
    heard = _Heard()
    output = Output(tmp_path / "output" / "p1", CommandLimits(), heard)
    process = _follow(output, "echo one; sleep 0.2; echo two >&2; sleep 0.2; echo three")
    await asyncio.to_thread(process.wait)
    await output.drain()
    out, err = output.printed
    assert (out.text, err.text) == ("one\nthree\n", "two\n")
    assert output.read(0, 100) == (b"one\ntwo\nthree\n", 14) and heard.data == b"one\ntwo\nthree\n"
    output.close()
    assert output.read(4, 3) == (b"two", 7) and output.notes == ()


async def test_output_is_read_while_the_command_runs(tmp_path: Path) -> None:
    """A reader finds what was printed so far, and goes on at the offset it was given."""
    heard = _Heard()
    output = Output(tmp_path / "p1", CommandLimits(), heard)
    process = _follow(output, "echo ready; exec sleep 60")
    await heard.until(b"ready\n")
    assert output.read(0, 100) == (b"ready\n", 6) and output.read(6, 100) == (b"", 6)
    process.kill()
    await asyncio.to_thread(process.wait)
    output.close()


async def test_a_background_process_goes_on_printing(tmp_path: Path) -> None:
    """The end of the command does not wait for what it left, and what that prints afterwards is kept too."""
    heard = _Heard()
    output = Output(tmp_path / "p1", CommandLimits(), heard)
    process = _follow(output, "(sleep 0.5; echo late) & echo early")
    await asyncio.to_thread(process.wait)
    async with asyncio.timeout(0.4):
        await output.drain()
    assert output.printed[0].text == "early\n"
    await heard.until(b"late\n")
    assert output.printed[0].text == "early\nlate\n"
    output.close()


async def test_the_last_words_on_a_terminal_are_kept(tmp_path: Path) -> None:
    """What a command prints right before it ends arrives, although the kernel hands terminals over late."""
    for _ in range(20):
        output = Output(tmp_path / "p1", CommandLimits())
        process = _follow(output, "echo first; seq 2000; echo last", terminal=True)
        await asyncio.to_thread(process.wait)
        await output.drain()
        text = output.printed[0].text
        assert text.startswith("first\r\n") and text.endswith("last\r\n"), text[-50:]
        output.close()


async def test_more_output_than_the_bound_is_dropped_from_the_middle(tmp_path: Path) -> None:
    """The command ends as ever; its start and its end are on disk, and the file has the size that is allowed."""
    output = Output(tmp_path / "p1", CommandLimits(kept_bytes=100, output_bytes=4 * MIB))
    process = _follow(output, f"seq -f %015.0f 0 {(1 << 19) - 1}")
    assert await asyncio.to_thread(process.wait) == 0
    await output.drain()
    output.close()
    last, total = (1 << 19) - 1, 8 * MIB
    assert output.printed[0].total_bytes == total
    assert (tmp_path / "p1").stat().st_size == 4 * MIB
    assert output.read(0, 16) == (b"0" * 15 + b"\n", 16)
    assert output.read(total - 16, 100) == (b"%015d\n" % last, total)
    data, after = output.read(3 * MIB, 16)  # this was dropped: reading goes on at what is still there
    assert (data, after) == (b"%015d\n" % (6 * MIB // 16), 6 * MIB + 16)
    assert output.notes == (f"{4 * MIB} bytes in the middle of the output were not kept on disk",)


@pytest.fixture
def little_disk(tmp_path: Path) -> Iterator[Path]:
    """A file system of one megabyte."""
    command = ("mount", "-t", "tmpfs", "-o", "size=1m", "tmpfs", str(tmp_path))
    if subprocess.run(command, capture_output=True, check=False).returncode != 0:
        pytest.skip("this user may not mount a file system")
    yield tmp_path
    subprocess.run(("umount", "-l", str(tmp_path)), check=True)


async def test_a_full_disk_ends_nothing(little_disk: Path) -> None:
    """The output goes on in memory, and a note says how much is on disk and why there is no more."""
    output = Output(little_disk / "p1", CommandLimits())
    process = _follow(output, "head -c 3M /dev/zero; echo end")
    assert await asyncio.to_thread(process.wait) == 0
    await output.drain()
    output.close()
    assert output.printed[0].text.endswith("end\n")
    assert "No space left on device" in output.notes[0]
    data, _ = output.read(0, 100)
    assert len(data) == 100 and output.read(2 * MIB, 100) == (
        b"",
        sum(stream.total_bytes for stream in output.printed),
    )
