"""Is the file as the last process left it?

LMDB maps its file and trusts it: a truncated or overwritten page can end the whole process instead of raising
an error. LMDB itself never leaves such pages, not even when it is killed, so this is about disks, copies and
other programs. The last process to close writes a seal (size and time of the file). Whoever opens first and
finds the seal broken walks every page with LMDB's own verifier before mapping the file: once after each
crash, never otherwise.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
from pathlib import Path
from typing import cast

from artoo.contracts.errors import MemoryStoreError

DATA = "data.mdb"
SHOWN_PROBLEMS = 3
LARGEST_WALK_BYTES = 1 << 30
"""Larger files are opened after a look at their two head pages only: walking them would take minutes."""
_HEAD_BYTES = 8_192


class Seal:
    """A presence lock (shared by every process that has the file open) and a note of its last clean state."""

    def __init__(self, directory: Path) -> None:
        self._data = directory / DATA
        self._note = directory / "seal"
        self._lock = directory / "presence"
        self._descriptor: int | None = None

    def enter(self) -> None:
        """Joins. The first one in checks a file whose seal is broken. Raises MemoryStoreError when damaged."""
        descriptor = os.open(self._lock, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            if self._alone(descriptor):
                if self._note_text() != self._state():
                    self._examine()
                self._note.unlink(missing_ok=True)
            fcntl.flock(descriptor, fcntl.LOCK_SH)
        except BaseException:
            os.close(descriptor)
            raise
        self._descriptor = descriptor

    def leave(self) -> None:
        """Leaves; the last one out seals the file. Never raises: a missing seal only costs a check."""
        descriptor, self._descriptor = self._descriptor, None
        if descriptor is None:
            return
        try:
            if self._alone(descriptor):
                with contextlib.suppress(OSError):
                    self._note.write_text(self._state())
        finally:
            os.close(descriptor)

    def _alone(self, descriptor: int) -> bool:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return False
        return True

    def _state(self) -> str:
        if not self._data.exists():
            return ""
        status = self._data.stat()
        return f"{status.st_size} {status.st_mtime_ns}"

    def _note_text(self) -> str:
        return self._note.read_text(errors="replace") if self._note.exists() else ""

    def _examine(self) -> None:
        size = self._data.stat().st_size if self._data.exists() else 0
        if size == 0:
            return
        problems = ["the file is cut off"] if size < _HEAD_BYTES else _walk(self._data, size)
        if problems:
            shown = "; ".join(problems[:SHOWN_PROBLEMS])
            more = f" (and {len(problems) - SHOWN_PROBLEMS} more)" if len(problems) > SHOWN_PROBLEMS else ""
            raise MemoryStoreError(
                f"The memory store {self._data} is damaged: {shown}{more}. "
                "Move it away (a new one is made), or put a copy of it back."
            )


def _walk(data: Path, size: int) -> list[str]:
    if size > LARGEST_WALK_BYTES:
        return []
    from lmdb import verify

    try:
        problems = cast("list[str]", verify.verify(str(data)))  # pyright: ignore[reportUnknownMemberType]
    except verify.VerifyError as error:
        return [str(error)]
    return [problem for problem in problems if "a leak" not in problem]
