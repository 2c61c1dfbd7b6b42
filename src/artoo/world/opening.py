"""Opens the views of tasks on this machine's sandbox."""

from __future__ import annotations

import functools
from dataclasses import dataclass
from pathlib import Path

from artoo.ports.sandbox import Roots
from artoo.ports.world import View
from artoo.world.joining import finish_join
from artoo.world.landing import finish_all
from artoo.world.overlay import OverlaySandbox
from artoo.world.view import OverlayView, Ways
from artoo.world.view_place import TRUNK, ViewKind, ViewPlace, Views
from artoo.world.view_state import ViewState


@dataclass(frozen=True, slots=True)
class OverlayViews:
    """Implements `ports.world.OpenView` where overlays can be had."""

    sandbox: OverlaySandbox
    artoo_home: Path
    hide: tuple[Path, ...] = ()

    def __call__(self, task_id: str, roots: Roots) -> View:
        place = Views(self.artoo_home).place(task_id)
        cover = functools.partial(self.sandbox.roots_to_cover, roots)
        state = ViewState(place, roots, ViewKind.OVERLAY, cover, to_boundary)
        return OverlayView(Ways(self.sandbox, self.artoo_home, self.hide), state)


def to_boundary(place: ViewPlace) -> None:
    """Puts a view that a crash may have left in the middle of something back to a command's boundary.

    To be called with its lock held. Raises SandboxError when there is no room.
    """
    finish_all(place)
    for layer in dict.fromkeys((TRUNK, *place.layer_names())):
        finish_join(place, layer)
