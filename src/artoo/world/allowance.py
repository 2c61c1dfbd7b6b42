"""How much all commands of one task together may leave in its view."""

from __future__ import annotations

import threading
from collections.abc import Callable
from dataclasses import dataclass, replace

from artoo.contracts.errors import SandboxError
from artoo.ports.sandbox import MIB, Limits

_LEAST = 4 * MIB
"""What a command may always write, so that the one that makes room again can run."""
_LEAST_PATHS = 1_000


@dataclass(frozen=True, slots=True)
class Extent:
    """Bytes on disk and the number of paths."""

    size: int
    paths: int

    def __add__(self, other: Extent) -> Extent:
        return Extent(self.size + other.size, self.paths + other.paths)


MOST = Extent(8 * 1024 * MIB, 800_000)
"""Eight times what one command may leave (`Limits`): an installation and a build or two, not a full disk. The
setting `limits.view_megabytes` puts another size in its place."""


class Allowance:
    """What one view holds, counted as it grows and measured anew only when it seems to be full.

    A file that is written twice counts twice until then. `measure` looks at the disk; safe between threads.
    """

    def __init__(self, measure: Callable[[], Extent], most: Extent = MOST) -> None:
        self._measure = measure
        self._most = most
        self._guard = threading.Lock()
        self._held: Extent | None = None

    def took(self, extent: Extent) -> None:
        """A command has left so much more."""
        with self._guard:
            if self._held is not None:
                self._held += extent

    def bound(self, limits: Limits) -> Limits:
        """A command's limits, not beyond what is left to the task."""
        left = self._left(Extent(limits.disk_bytes, limits.paths))
        return replace(
            limits,
            disk_bytes=min(limits.disk_bytes, max(left.size, _LEAST)),
            paths=min(limits.paths, max(left.paths, _LEAST_PATHS)),
        )

    def require(self, size: int) -> None:
        """Raises SandboxError when a file of `size` bytes has no room in the view."""
        if self._left(Extent(size, 1)).size < size:
            raise SandboxError(
                f"the task has changed {self._most.size // MIB} MiB already, which is the most that its view may "
                "hold: remove what it made and does not need, or raise limits.view_megabytes"
            )

    def _left(self, wanted: Extent) -> Extent:
        with self._guard:
            if self._held is None or not _fits(self._held + wanted, self._most):
                self._held = self._measure()
            return Extent(self._most.size - self._held.size, self._most.paths - self._held.paths)


def _fits(extent: Extent, most: Extent) -> bool:
    return extent.size <= most.size and extent.paths <= most.paths
