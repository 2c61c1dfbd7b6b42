"""Files that are there whole or not at all."""

from __future__ import annotations

import errno
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from artoo.disk.whole import read_text, sync_directory, write_durably, write_new, write_whole


def names(place: Path) -> list[str]:
    """What lies there."""
    return sorted(entry.name for entry in place.iterdir())


def mode_of(path: Path) -> int:
    """Its permissions."""
    return path.stat().st_mode & 0o777


def test_a_new_file_takes_the_place_of_the_old_one(tmp_path: Path) -> None:
    """Who has the old one open reads it to its end, and nothing lies beside it afterwards."""
    path = tmp_path / "file"
    write_whole(path, b"first")
    with path.open("rb") as before:
        write_durably(path, (piece for piece in (b"sec", b"ond")))
        assert before.read() == b"first"
    assert read_text(path) == "second"
    assert names(tmp_path) == ["file"]


def test_permissions_stay_as_they_were(tmp_path: Path) -> None:
    """A new file is its owner's alone; one that others may read stays so; what is asked for decides."""
    path = tmp_path / "file"
    write_whole(path, b"")
    assert mode_of(path) == 0o600
    path.chmod(0o640)
    write_whole(path, b"")
    assert mode_of(path) == 0o640
    write_whole(path, b"", mode=0o400)
    assert mode_of(path) == 0o400


def test_what_breaks_in_the_middle_changes_nothing(tmp_path: Path) -> None:
    """A full disk, or whoever gives the content: the old file is there, and nothing else."""
    path = tmp_path / "file"
    write_whole(path, b"old")

    def breaking() -> Iterator[bytes]:
        """Ends as a full disk does."""
        yield b"n"
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    with pytest.raises(OSError, match="No space"):
        write_whole(path, breaking())
    with pytest.raises(OSError, match="No space"):
        write_new(tmp_path / "other", breaking())
    assert names(tmp_path) == ["file"] and path.read_bytes() == b"old"


def test_one_of_many_is_the_first(tmp_path: Path) -> None:
    """What is there is not written over by who may only make it."""
    path = tmp_path / "file"

    def make(number: int) -> int | None:
        """The number, when its file is the one."""
        try:
            write_new(path, str(number).encode())
        except FileExistsError:
            return None
        return number

    with ThreadPoolExecutor(8) as threads:
        made = [number for number in threads.map(make, range(32)) if number is not None]
    assert [str(number) for number in made] == [path.read_text()]
    assert names(tmp_path) == ["file"]


def test_of_many_writers_one_is_the_last(tmp_path: Path) -> None:
    """Writers at once do not disturb each other: what is there is one of them, whole."""
    path, texts = tmp_path / "file", [bytes([97 + number]) * 100_000 for number in range(16)]

    def put(text: bytes) -> None:
        """One writer."""
        write_whole(path, text, sync=False)

    with ThreadPoolExecutor(8) as threads:
        list(threads.map(put, texts))
    assert path.read_bytes() in texts
    assert names(tmp_path) == ["file"]


_KILLED = """
import os, signal, sys
from pathlib import Path
from artoo.disk.whole import write_whole

def content():
    yield b"half"
    os.kill(os.getpid(), signal.SIGKILL)

write_whole(Path(sys.argv[1]), content())
"""


def _kill_a_writer(path: Path) -> None:
    done = subprocess.run([sys.executable, "-c", _KILLED, str(path)], check=False)
    assert done.returncode == -signal.SIGKILL


@pytest.mark.parametrize("name", ["file", "x" * 255])
def test_what_a_killed_writer_left_goes_with_the_next_write(tmp_path: Path, name: str) -> None:
    """However often writers are killed, at most one such file is left, and none when the file has been written."""
    path = tmp_path / name
    write_whole(path, b"old")
    for _ in range(3):
        _kill_a_writer(path)
        assert len(names(tmp_path)) == 2 and path.read_bytes() == b"old"
    write_whole(path, b"new")
    assert names(tmp_path) == [name] and path.read_bytes() == b"new"


def test_what_a_writer_at_work_has_written_stays(tmp_path: Path) -> None:
    """Another that writes the same file meanwhile takes nothing from it: both end well."""
    path = tmp_path / "file"

    def content() -> Iterator[bytes]:
        yield b"first "
        write_whole(path, b"other")
        assert path.read_bytes() == b"other"
        yield b"and last"

    write_whole(path, content())
    assert path.read_bytes() == b"first and last"
    assert names(tmp_path) == ["file"]


def test_a_leftover_that_is_the_file_itself_costs_it_nothing(tmp_path: Path) -> None:
    """Who was killed between the two names of a new file left both: only the one beside it goes."""
    path = tmp_path / "file"
    path.write_bytes(b"whole")
    os.link(path, tmp_path / ".file.artoo-new-0")
    with pytest.raises(FileExistsError):
        write_new(path, b"late")
    assert names(tmp_path) == ["file"] and path.read_bytes() == b"whole"


def test_what_is_no_leftover_of_a_writer_stays(tmp_path: Path) -> None:
    """A link or a directory of such a name is somebody's: it is neither followed nor removed."""
    aside, path = tmp_path / "aside", tmp_path / "file"
    aside.write_bytes(b"kept")
    (tmp_path / ".file.artoo-new-0").symlink_to(aside)
    (tmp_path / ".file.artoo-new-1").mkdir()
    write_whole(path, b"new")
    assert names(tmp_path) == [".file.artoo-new-0", ".file.artoo-new-1", "aside", "file"]
    assert (aside.read_bytes(), path.read_bytes()) == (b"kept", b"new")


def test_a_file_that_is_not_there_is_empty(tmp_path: Path) -> None:
    """Reading says no more than that; a directory that is not there cannot be made durable."""
    assert read_text(tmp_path / "none") == ""
    with pytest.raises(FileNotFoundError):
        sync_directory(tmp_path / "none")
