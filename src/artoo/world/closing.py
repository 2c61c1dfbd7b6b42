"""A view at its end: opened by whoever settles it, looked at, and applied, kept or forgotten. Everything blocks.

with opened(place, home) as view:     the view to oneself, at a command's boundary, no apply half done
    found = view.difference()
    view.apply(found, digest=…)       or view.keep(record), view.forget()
"""

from __future__ import annotations

import os
from collections.abc import Collection, Generator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from artoo.contracts.changes import Conflict
from artoo.contracts.errors import SandboxError
from artoo.world.boundary import to_boundary
from artoo.world.difference import Difference, difference_of
from artoo.world.joining import drop_layer, join_layers
from artoo.world.mounts import MountTable
from artoo.world.pending import PendingRecord, SettledRecord, forget_pending, read_pending, write_pending
from artoo.world.settle import Applied, Told, apply_difference, discard, finish_cut
from artoo.world.view_place import PATIENCE_SECONDS, TRUNK, ViewPlace, is_trial


@dataclass(frozen=True, slots=True)
class ClosingView:
    """A view that its holder settles."""

    place: ViewPlace
    artoo_home: Path

    @property
    def pending(self) -> PendingRecord | None:
        """What was written down when it began to wait, if it did."""
        return read_pending(self.place)

    @property
    def in_memory(self) -> bool:
        """Whether a reboot takes it: artoo's own home is in memory, and there is no disk to move it to."""
        return MountTable.read().in_memory(os.fsencode(self.place.base.resolve()))

    def difference(self) -> Difference:
        """All that it changes against the real files now. Raises SandboxError."""
        return difference_of(self.place, self.artoo_home)

    def named(self, paths: Collection[str]) -> tuple[str, ...]:
        """See `named_paths`."""
        return named_paths(self.place, paths)

    def apply(
        self,
        difference: Difference,
        *,
        digest: str,
        paths: Collection[str] | None = None,
        note: str = "",
        told: Told | None = None,
    ) -> Applied:
        """See `settle.apply_difference`."""
        return apply_difference(
            self.place, self.artoo_home, difference, digest=digest, paths=paths, note=note, told=told
        )

    def discard(self, settled: SettledRecord) -> None:
        """Nothing of it is left, and it is told. Raises OSError when there is no room even for that line."""
        discard(self.place, settled)

    def keep(self, record: PendingRecord) -> None:
        """It waits from now on, durably. Raises SandboxError when there is no room for the record."""
        try:
            write_pending(self.place, record)
        except OSError as error:
            raise SandboxError(
                f"what the task changed is kept in {self.place.base}, but cannot be listed ({error}); free space"
            ) from error

    @property
    def forks(self) -> tuple[str, ...]:
        """What was not joined, in the order in which it was begun (the ids tell it). Trials are none of it."""
        return tuple(name for name in self.place.layer_names() if name != TRUNK and not is_trial(name))

    def changes_of(self, fork: str) -> Difference:
        """What a fork changes of the view that it forked, and where the person changed the same meanwhile: to be
        looked at, and not to be applied. Raises SandboxError."""
        return difference_of(self.place, self.artoo_home, fork)

    def join_forks(self) -> tuple[Conflict, ...]:
        """The task does not go on: what its unfinished subtasks did is a part of what it changed. Blocking.

        Of a path that two of them left differently the earlier one's version stays, and it is returned. Raises
        SandboxError; then it can be repeated.
        """
        for layer in self.place.layer_names():
            if is_trial(layer):
                drop_layer(self.place, layer)
        return join_layers(self.place, TRUNK, self.forks) if self.place.has_forks else ()

    def drop_forks(self) -> None:
        """The task is at its end: what it did not join is of no use. Blocking."""
        for layer in self.place.layer_names():
            if layer != TRUNK:
                drop_layer(self.place, layer)

    def forget(self) -> None:
        """Nothing of it waits; nothing is left but forks, in which a task that was cut off goes on. Blocking."""
        if self.place.has_forks:
            forget_pending(self.place)
        else:
            self.place.remove()


def named_paths(place: ViewPlace, paths: Collection[str]) -> tuple[str, ...]:
    """Printable paths as a difference names them; relative ones start in the task's project.

    Raises SandboxError for an empty one, for the root, and where there is none: somebody who chose a part has not
    said yes to everything.
    """
    if not paths:
        raise SandboxError("no path is chosen; name some, or none at all for everything")
    project, named = place.record().project, list[str]()
    for path in paths:
        absolute = path if path.startswith("/") else f"{project}/{path}"
        named.append(os.path.normpath(f"/{absolute.lstrip('/')}"))
        if not path or named[-1] == "/":
            raise SandboxError(f"{path!r} is no path of what the task would change; `artoo diff` lists them")
    return tuple(named)


def settled_already(task_id: str) -> SandboxError:
    """What whoever comes too late is told."""
    return SandboxError(f"nothing of task {task_id} waits any more: it was applied or discarded")


def require_waiting(place: ViewPlace) -> None:
    """For whoever holds the view: while they waited for it, somebody may have settled it, and it was gone.

    Raises SandboxError; of the directory that their lock made anew nothing is left.
    """
    if not place.exists:
        place.remove()
        raise settled_already(place.task_id)


@contextmanager
def opened(place: ViewPlace, artoo_home: Path, patience: float = PATIENCE_SECONDS) -> Generator[ClosingView]:
    """Raises SandboxError when another process holds the view for longer than `patience` (seconds), or what a crash
    left cannot be finished. Blocking."""

    def bound(_: ViewPlace) -> None:
        try:
            to_boundary(place)
        except OSError as error:
            raise SandboxError(f"the view of task {place.task_id} cannot be read: {error}") from error
        finish_cut(place, artoo_home)

    descriptor = place.lock_bound(bound, patience)
    try:
        yield ClosingView(place, artoo_home)
    finally:
        os.close(descriptor)
