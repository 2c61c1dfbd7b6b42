"""Store `audit_stats.json`, the counts since the last report and the long-run figures of the roles.

These statistics remain when a process ends.

All processes of a home use the same file. Each process collects the data since its last store, and adds them under
a lock. It reads the file, writes a new one and renames it. The file is therefore never incomplete.
"""

from __future__ import annotations

import fcntl
import logging
import os
from collections.abc import Generator
from contextlib import contextmanager
from datetime import datetime, timedelta
from pathlib import Path
from typing import Literal

from pydantic import Field, ValidationError

from artoo.auditor.chain import NOTHING, Head
from artoo.auditor.drift import Band, Drift
from artoo.auditor.layout import STATS
from artoo.auditor.window import Window
from artoo.contracts.audit import AuditReport
from artoo.contracts.base import Contract
from artoo.disk.whole import write_whole

logger = logging.getLogger(__name__)

VERSION = 1

Trigger = Literal["periodic", "on-demand"]


class SeenHead(Contract):
    """A `Head` in the form in which it is stored."""

    count: int = 0
    head: str = NOTHING


class Stored(Contract):
    """The content of the file. `bands`: the count, the mean and the variance of each figure. `anchors`: the head of
    the anchors file.

    `open`, `tidied` and `sha256` are fields that only earlier versions wrote.
    """

    artoo_audit_stats: int = VERSION
    window: Window
    bands: dict[str, tuple[float, float, float]] = Field(default_factory=dict[str, tuple[float, float, float]])
    anchors: SeenHead = Field(default_factory=SeenHead)
    open: tuple[str, ...] = ()
    tidied: datetime | None = None
    sha256: str = ""


class Stats:
    """The statistics of one home. Blocking. Raises OSError. A file that cannot be read counts as missing."""

    def __init__(self, directory: Path) -> None:
        self._directory = directory
        self._path = directory / STATS

    def note_anchors(self, anchors: Head, at: datetime) -> None:
        """Store the head of the anchors file, so that a truncation of that file is noticed."""
        with self._locked():
            self._write(self._read(at), anchors)

    def bands(self, at: datetime) -> dict[str, tuple[float, float, float]]:
        """Return the stored long-run figures."""
        return self._read(at).bands

    def store(
        self,
        window: Window,
        drift: Drift,
        anchors: Head,
        at: datetime,
        *,
        report: Trigger | None = None,
        every: timedelta = timedelta.max,
    ) -> AuditReport | None:
        """Store a window, and the blocks that `drift` has collected. Then remove these blocks from `drift`.

        If `report` is given, or if the window has lasted for `every`, a report on the window is made and a new
        window begins.
        """
        with self._locked():
            stored = self._read(at)
            whole = stored.window
            if not window.empty:
                whole.merge(window)
            trigger = report or ("periodic" if at - whole.start >= every and not whole.empty else None)
            kept = whole if trigger is None else Window(at)
            self._write(stored.model_copy(update={"window": kept, "bands": _merged(stored, drift)}), anchors)
        return whole.report(trigger, at) if trigger is not None else None

    def so_far(self, at: datetime) -> AuditReport | None:
        """Return a report on the stored window, which continues. Return None if the window is empty. Raises
        OSError."""
        window = self._read(at).window
        return None if window.empty else window.report("on-demand", at)

    def _read(self, at: datetime) -> Stored:
        """Read the file. A missing or invalid file counts as empty."""
        try:
            text = self._path.read_bytes()
        except FileNotFoundError:
            return Stored(window=Window(at))
        try:
            return Stored.model_validate_json(text)
        except ValidationError:
            logger.warning("audit: %s is not what the Auditor wrote; its figures begin anew", self._path)
            return Stored(window=Window(at))

    def _write(self, stored: Stored, anchors: Head) -> None:
        # another process may have stored a later head already
        if anchors.count > stored.anchors.count:
            stored = stored.model_copy(update={"anchors": SeenHead(count=anchors.count, head=anchors.hash)})
        write_whole(self._path, stored.model_dump_json(exclude={"open", "tidied", "sha256"}).encode(), sync=False)

    @contextmanager
    def _locked(self) -> Generator[None]:
        self._directory.mkdir(parents=True, exist_ok=True, mode=0o700)
        descriptor = os.open(self._directory / ".lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX)
            yield
        finally:
            os.close(descriptor)


def _merged(stored: Stored, drift: Drift) -> dict[str, tuple[float, float, float]]:
    bands = {name: Band(*values) for name, values in stored.bands.items()}
    for name, block in drift.blocks:
        bands[name] = bands.get(name, Band()).merged(block)
    drift.blocks.clear()
    merged = {name: (band.count, band.mean, band.variance) for name, band in bands.items()}
    drift.load(merged)
    return merged
