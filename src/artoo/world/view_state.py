"""What all views of one task in this process share: the lock, the record, what is known of the real files."""

from __future__ import annotations

import asyncio
import os
import threading
from collections.abc import Callable, Iterable
from contextlib import suppress
from pathlib import Path

from artoo.contracts.errors import SandboxError
from artoo.ports.sandbox import Roots
from artoo.world.allowance import MOST, Allowance, Extent
from artoo.world.base import read_base
from artoo.world.git_head import head_of
from artoo.world.landing import finish
from artoo.world.remove import remove_tree
from artoo.world.reserve import Reserve
from artoo.world.view_place import PATIENCE_SECONDS, TRUNK, Footing, ViewKind, ViewPlace, ViewRecord, fork_name


class ViewState:
    """One task's view as this process holds it. Methods block, and may be called from several threads.

    `bound` puts a view that may have been left in the middle of something back to a command's boundary; it is
    called with the lock held, and may remove the view. `most` is what all its layers together may hold.
    """

    def __init__(
        self,
        place: ViewPlace,
        roots: Roots,
        kind: ViewKind,
        cover: Callable[[], tuple[Path, ...]],
        bound: Callable[[ViewPlace], None],
        most: Extent = MOST,
    ) -> None:
        self.place = place
        self.allowance = Allowance(place.extent, most)
        self.roots = roots
        self._kind = kind
        self._cover = cover
        self._bound = bound
        self._guard = threading.Lock()
        self._lock: int | None = None
        self._record: ViewRecord | None = None
        self._known: dict[str, set[str]] = {}
        self._forks: dict[str, set[str]] = {}
        self._unfinished: list[Path] = []
        self._spent: list[Path] = []
        self._turns: dict[str, asyncio.Lock] = {}
        self._reserves: dict[str, Reserve] = {}

    @property
    def footing(self) -> Footing:
        """How this machine views the files. Blocking."""
        return Footing(self._kind, self.roots, self._cover())

    def held(self) -> ViewRecord:
        """The record, the view made if need be, and held by this process. Raises SandboxError."""
        with self._guard:
            if self._record is None:
                self._take()
            assert self._record is not None
            return self._record

    def _take(self) -> None:
        try:
            self._lock = self.place.lock_bound(self._bound, PATIENCE_SECONDS)
            if not self.place.exists:
                self.place.remove_rest()
                self.place.make(self._kind, self.roots, self._cover(), head_of(self.roots.project))
            record = self.place.record()
            self._require_kind(record)
            self._record = record
        except OSError as error:
            self._let_go()
            raise SandboxError(
                f"the view {self.place.base} cannot be made: {error.strerror}; free space"
            ) from error
        except BaseException:
            self._let_go()
            raise

    def _require_kind(self, record: ViewRecord) -> None:
        if record.kind is not self._kind:
            raise SandboxError(
                f"the view of task {self.place.task_id} is a {record.kind}, with which this sandbox "
                "cannot go on: settle it, or start the request anew"
            )

    def fold(self, home: Path) -> None:
        """Folds a command that has ended, after those that could not be folded before. Raises SandboxError."""
        with self._guard:
            self._unfinished.append(home)
        self.at_boundary()

    def at_boundary(self) -> ViewRecord:
        """`held`, with nothing left to fold. Raises SandboxError."""
        record = self.held()
        with self._guard:
            while self._unfinished:
                self._spent.append(finish(self.place, self._unfinished[0]))
                del self._unfinished[0]
        return record

    def tidy(self) -> None:
        """Removes what folded commands have left; what cannot be now, whoever takes the view next removes."""
        with self._guard:
            spent, self._spent = self._spent, []
        for home in spent:
            with suppress(OSError):
                remove_tree(home)

    @property
    def was_taken(self) -> bool:
        """Whether this process holds anything of it: a lock, the record, or forks."""
        return self._lock is not None or self._record is not None or bool(self._forks)

    def close(self) -> None:
        self.tidy()
        with self._guard:
            self._let_go()
            self._forks.clear()

    def _let_go(self) -> None:
        self._record = None
        self._known.clear()
        self._unfinished.clear()
        if self._lock is not None:
            os.close(self._lock)
            self._lock = None

    def known(self, layer: str) -> set[str]:
        """The paths of which a layer has kept what they were."""
        with self._guard:
            if layer not in self._known:
                self._known[layer] = set(read_base(self.place.base_file(layer)))
            return self._known[layer]

    def fork(self, parent: str, name: str) -> str:
        """The layer of a fork, which is open from now on."""
        layer = fork_name(parent, name)
        with self._guard:
            self._forks.setdefault(parent, set()).add(layer)
        return layer

    def forget_fork(self, parent: str, layer: str) -> None:
        """A fork is joined or dropped."""
        with self._guard:
            self._forks.get(parent, set()).discard(layer)
            for known in [one for one in self._known if one == layer or one.startswith(f"{layer}/")]:
                del self._known[known]

    def forget_base(self, layer: str) -> None:
        """What a layer has kept was added to from elsewhere."""
        with self._guard:
            self._known.pop(layer, None)

    def turn(self, layer: str) -> asyncio.Lock:
        """Whose turn it is in a layer: one command at a time."""
        return self._turns.setdefault(layer, asyncio.Lock())

    def reserve(self, layer: str) -> Reserve:
        """What stands by over a layer."""
        return self._reserves.setdefault(layer, Reserve())

    async def dismiss(self, layers: Iterable[str] | None = None) -> None:
        """Ends what stands by, over these layers or over all."""
        names = self._reserves if layers is None else layers
        chosen = [self._reserves[one] for one in names if one in self._reserves]
        if used := [one for one in chosen if one.was_used]:
            await asyncio.gather(*(one.dismiss() for one in used))

    def require_no_forks(self, parent: str) -> None:
        """Raises SandboxError while forks are open: what they see must not change below them."""
        with self._guard:
            opened = set(self._forks.get(parent, ()))
        opened |= {layer for layer in self.place.layer_names() if layer != TRUNK and _parent(layer) == parent}
        if opened:
            raise SandboxError(
                f"nothing can be done in this view while its forks are open ({', '.join(sorted(opened))}): "
                "join or drop them first"
            )


def _parent(layer: str) -> str:
    return layer.rpartition("/")[0] or TRUNK
