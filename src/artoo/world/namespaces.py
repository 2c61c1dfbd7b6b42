"""Tier 2: user and mount namespaces of our own, overlays, Landlock and the filter; nothing to install."""

from __future__ import annotations

from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

from artoo.ports.sandbox import MIB
from artoo.world import seccomp
from artoo.world.edge.doors import sent_door
from artoo.world.group import LaunchLayer, LaunchPlan, launched
from artoo.world.limits import limited
from artoo.world.overlay import View
from artoo.world.process import Confined
from artoo.world.stage import Layer
from artoo.world.status import StatusPipe

_SHARED_MEMORY = 512 * MIB


@contextmanager
def confine(view: View) -> Generator[tuple[Confined, StatusPipe], None, None]:
    """The program that runs the view's request in namespaces of its own."""
    request, stage = view.request, view.stage
    roots = tuple(str(layer.root) for layer in stage.layers)
    stage.make_covers()
    plan = LaunchPlan(
        mode="namespaces",
        argv=limited(request.argv, request.limits),
        env=view.env,
        cwd=str(request.cwd),
        filter=seccomp.filter_program().hex(),
        writable=(*roots, "/tmp", "/var/tmp"),
        layers=tuple(_launched(layer) for layer in stage.layers),
        bound=view.bound,
        hidden=view.hidden,
        scratch=str(request.scratch or stage.scratch),
        empty=str(stage.empty_file),
        shared_memory=min(_SHARED_MEMORY, request.limits.memory_bytes),
    )
    watched: tuple[Path, ...] = (*(layer.upper for layer in stage.layers), request.scratch or stage.scratch)
    if not request.hosts:
        with launched(plan, request.limits, watched) as pair:
            yield pair
        return
    with sent_door() as door:
        plan = replace(plan, door=door.theirs.fileno())
        with launched(plan, request.limits, watched) as (program, status):
            yield replace(program, door=door), status


def _launched(layer: Layer) -> LaunchLayer:
    return LaunchLayer(
        str(layer.root),
        str(layer.upper),
        str(layer.work),
        tuple(map(str, layer.below)),
        layer.footing is not None,
    )
