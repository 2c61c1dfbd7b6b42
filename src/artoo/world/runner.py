"""What a view needs of a tier: to run one command over layers, and to leave in the topmost what it did."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from artoo.contracts.changes import Change
from artoo.ports.sandbox import Roots, SandboxRequest, TierName, ViewRun
from artoo.world.process import Ended
from artoo.world.stage import Stage
from artoo.world.view_place import ViewKind


@dataclass(frozen=True, slots=True)
class Over:
    """How a command over layers went. `ask`: it was kept from something; see `ViewRun.needs_confirmation`."""

    ended: Ended
    notes: tuple[str, ...] = ()
    ask: bool = False


def run_of(tier: TierName, over: Over, changes: tuple[Change, ...] = ()) -> ViewRun:
    """What is told of it."""
    ended = over.ended
    return ViewRun(
        tier=tier,
        status=ended.limit or ("ok" if ended.exit_code == 0 else "error"),
        exit_code=ended.exit_code if ended.limit is None else None,
        stdout=ended.stdout,
        stderr=ended.stderr,
        duration_seconds=ended.duration_seconds,
        changes=changes,
        needs_confirmation=over.ask,
        notes=over.notes,
    )


class Command(Protocol):
    """A command for which all is laid out."""

    async def run(self) -> Over:
        """Runs it; what it did is in the stage's layers then. To be called once.

        Raises SandboxError when it could not be contained, or what it did cannot be told.
        """
        ...


class Prepared(Command, Protocol):
    """One that may still be given up. Either method is called, once."""

    def discard(self) -> None:
        """Lets go of what was laid out."""
        ...


class Standing(Protocol):
    """A sandbox that is made and waits for its command. It is dismissed, or the command that it took is run."""

    def told(self, request: SandboxRequest) -> Command | None:
        """The request as a command in it; None when it would be made in another way by now, or has ended.

        Blocking.
        """
        ...

    async def dismiss(self) -> None:
        """Ends it."""
        ...


class Ahead(Protocol):
    """What makes sandboxes that stand by."""

    async def stand_by(self, request: SandboxRequest, stage: Stage) -> Standing:
        """One for a command that nobody knows yet, with the request's limits; its words say nothing.

        Raises SandboxError.
        """
        ...


class Runner(Protocol):
    """A tier as views use it."""

    @property
    def tier(self) -> TierName: ...

    @property
    def kind(self) -> ViewKind: ...

    def roots_to_cover(self, roots: Roots) -> tuple[Path, ...]:
        """The real directories over which this tier can lay a view. Blocking."""
        ...

    def stage_home(self, needed: int, on_disk: Path) -> Path:
        """Where a command's own layer is to lie that may hold `needed` bytes: `on_disk`, or a better place."""
        ...

    def prepare(self, request: SandboxRequest, stage: Stage, home: Path) -> Prepared:
        """All that comes before a command. `home`: of the layer below, for what is kept from one to the next.

        Blocking. Raises SandboxError.
        """
        ...
