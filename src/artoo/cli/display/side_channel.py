"""The progress of model downloads and the live output of commands, which are not in the stream."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from artoo.ports.printing import Printed

MEGABYTE = 1_000_000


def _nothing() -> None:
    """Ignore a change in the progress."""


def _unseen(printed: Printed) -> None:
    """Ignore output."""


@dataclass(slots=True)
class Fetch:
    """The download of a model. The runtime calls the object with the number of bytes done, the number of all bytes,
    and the phase."""

    done: int = 0
    total: int = 0
    phase: str = ""
    changed: Callable[[], None] = _nothing

    def __call__(self, done: int, total: int, phase: str) -> None:
        self.done, self.total, self.phase = done, total, phase
        self.changed()

    @property
    def running(self) -> bool:
        """Return whether a download is running."""
        return self.done < self.total

    @property
    def share(self) -> float:
        """Return the fraction that is downloaded, from 0 to 1."""
        return self.done / self.total if self.total else 0.0

    @property
    def line(self) -> str:
        """Format the progress as `fetching from the hub: 30% of 1,117 MB`, in steps of ten per cent."""
        return f"{self.phase}: {int(self.share * 10) * 10}% of {self.total / MEGABYTE:,.0f} MB"


@dataclass(slots=True)
class Aside:
    """Receives the reports of one runtime about downloads and output. The display of the present task sets
    `printed`."""

    fetch: Fetch = field(default_factory=Fetch)
    printed: Callable[[Printed], None] = _unseen

    def on_output(self, printed: Printed) -> None:
        """Pass the output of a command on to the present display."""
        self.printed(printed)
