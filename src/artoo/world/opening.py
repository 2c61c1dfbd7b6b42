"""Opens the views of tasks on this machine's sandbox."""

from __future__ import annotations

import functools
import os
from dataclasses import dataclass, replace
from pathlib import Path

from artoo.contracts.errors import SandboxError
from artoo.ports.sandbox import MIB, Roots, Sandbox
from artoo.ports.world import OpenView, View
from artoo.world.allowance import MOST, Extent
from artoo.world.boundary import to_boundary
from artoo.world.copied import CopyRunner
from artoo.world.overlay import OverlaySandbox
from artoo.world.readonly import ReadOnlyFirst
from artoo.world.runner import Ahead, Runner
from artoo.world.settle import finish_cut
from artoo.world.standing import AheadOverlay
from artoo.world.unconfined import AskForEverything
from artoo.world.view import LayeredView, Ways
from artoo.world.view_place import ViewPlace, Views
from artoo.world.view_state import ViewState


@dataclass(frozen=True, slots=True)
class OpenedViews:
    """Implements `ports.world.OpenView`. `artoo_home` is real; `hide` are further paths out of commands' reach;
    `most` is what one task's view may hold; `ahead` makes sandboxes before their command is known."""

    runner: Runner
    artoo_home: Path
    hide: tuple[Path, ...] = ()
    most: Extent = MOST
    ahead: Ahead | None = None

    def __call__(self, task_id: str, roots: Roots) -> View:
        place = Views(self.artoo_home).place(task_id)
        cover = functools.partial(self.runner.roots_to_cover, roots)
        state = ViewState(place, roots, self.runner.kind, cover, self._bound, self.most)
        return LayeredView(Ways(self.runner, self.artoo_home, self.hide, self.ahead), state)

    def _bound(self, place: ViewPlace) -> None:
        """While an apply is cut, files of the view are the person's: it is finished before anybody works in it.

        Raises SandboxError when it cannot be, and what is in its way.
        """
        if place.exists:
            to_boundary(place)
        finish_cut(place, self.artoo_home)


def views_in(
    sandbox: Sandbox, artoo_home: Path, hide: tuple[Path, ...] = (), megabytes: int | None = None
) -> OpenView:
    """Views on a tier that was chosen (`choose.open_sandbox`). `artoo_home` may be a link; `megabytes` is what one
    may hold (None: `MOST`)."""
    most = MOST if megabytes is None else replace(MOST, size=megabytes * MIB)
    home = Path(os.path.realpath(artoo_home.expanduser()))
    if isinstance(sandbox, OverlaySandbox):
        return OpenedViews(sandbox, home, hide, most, AheadOverlay(sandbox) if sandbox.waits else None)
    if isinstance(sandbox, ReadOnlyFirst | AskForEverything):
        return OpenedViews(CopyRunner(sandbox, home), home, hide, most)
    raise SandboxError(f"the tier {sandbox.tier} cannot hold a view")
