"""What the runtime tells a display besides the stream: the model's download, and what commands print."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from artoo.ports.printing import Printed

MEGABYTE = 1_000_000


def _nothing() -> None:
    """Nobody watches."""


def _unseen(printed: Printed) -> None:
    """Nobody watches."""


@dataclass(slots=True)
class Fetch:
    """Called by the runtime with bytes done, bytes in all, and the phase in words; calls `changed` then."""

    done: int = 0
    total: int = 0
    phase: str = ""
    changed: Callable[[], None] = _nothing

    def __call__(self, done: int, total: int, phase: str) -> None:
        self.done, self.total, self.phase = done, total, phase
        self.changed()

    @property
    def running(self) -> bool:
        """True while there is something to wait for."""
        return self.done < self.total

    @property
    def share(self) -> float:
        """What is done, from 0 to 1."""
        return self.done / self.total if self.total else 0.0

    @property
    def line(self) -> str:
        """`fetching from the hub: 30% of 1,117 MB`, in steps of ten per cent."""
        return f"{self.phase}: {int(self.share * 10) * 10}% of {self.total / MEGABYTE:,.0f} MB"


@dataclass(slots=True)
class Aside:
    """Of one runtime. `printed` is called with what commands print; whoever shows a task sets it."""

    fetch: Fetch = field(default_factory=Fetch)
    printed: Callable[[Printed], None] = _unseen

    def on_output(self, printed: Printed) -> None:
        """For the runtime, whoever watches at the time."""
        self.printed(printed)
