"""Folds forks into the layer that they forked, in order; the earlier one's version of a path stands.

PARENT/joined.json holds the plan: `planned` (conflicts are known), `prepared` (what the later ones lost is taken
out of their layers), `done`. Each part may be repeated after a crash; until `prepared` the parent is as it was.
"""

from __future__ import annotations

import uuid
from collections.abc import Sequence
from pathlib import Path
from typing import Literal

from pydantic import BaseModel, ConfigDict, ValidationError

from artoo.contracts.changes import Clash
from artoo.contracts.errors import SandboxError
from artoo.disk.whole import write_whole
from artoo.ports.sandbox import Limits
from artoo.world.acts import move_notes
from artoo.world.base import append_base, read_base
from artoo.world.clash import Winners
from artoo.world.fold import fold
from artoo.world.landing import no_room
from artoo.world.remove import remove_tree
from artoo.world.scan import scan
from artoo.world.strip import strip
from artoo.world.view_place import ViewPlace, given_name


class Plan(BaseModel):
    """`joined.json`: the layers in their order, what was in conflict, how far it went."""

    model_config = ConfigDict(frozen=True, extra="forbid", defer_build=True)

    layers: tuple[str, ...]
    conflicts: tuple[Clash, ...] = ()
    state: Literal["planned", "prepared", "done"] = "planned"


def join_layers(place: ViewPlace, parent: str, layers: Sequence[str]) -> tuple[Clash, ...]:
    """Joins those of the layers that there are. Blocking.

    Raises SandboxError when they cannot be read or there is no room; it can be repeated then.
    """
    finish_join(place, parent)
    known = set(place.layer_names())
    listed = [layer for layer in layers if layer in known]
    inner = sorted(one for one in known for layer in listed if one.startswith(f"{layer}/"))
    if inner:
        raise SandboxError(f"forks of these forks are open ({', '.join(inner)}): join or drop them first")
    if not listed:
        last = _read(place.joined(parent))
        return last.conflicts if last is not None and set(last.layers) <= set(layers) else ()
    try:
        _write(place.joined(parent), Plan(layers=tuple(listed), conflicts=_conflicts(place, listed)))
    except OSError as error:
        raise no_room("the forks are as they were", error) from error
    return finish_join(place, parent)


def finish_join(place: ViewPlace, parent: str) -> tuple[Clash, ...]:
    """Carries out a plan that is not done. Raises SandboxError."""
    file = place.joined(parent)
    plan = _read(file)
    if plan is None or plan.state == "done":
        return ()
    try:
        if plan.state == "planned":
            _prepare(place, plan.layers)
            _write(file, plan.model_copy(update={"state": "prepared"}))
        for layer in plan.layers:
            _fold(place, parent, layer)
        _write(file, plan.model_copy(update={"state": "done"}))
    except OSError as error:
        raise no_room("the forks are kept, and joined when there is", error) from error
    return plan.conflicts


def drop_layer(place: ViewPlace, layer: str) -> None:
    """Forgets a fork, and the forks of it; a crash in between leaves it whole, or gone."""
    for name in sorted(place.layer_names(), reverse=True):
        if name == layer or name.startswith(f"{layer}/"):
            aside = place.commands / uuid.uuid4().hex
            place.layer_home(name).rename(aside)
            remove_tree(aside)


def _conflicts(place: ViewPlace, layers: Sequence[str]) -> tuple[Clash, ...]:
    if len(layers) < 2:
        return ()
    winners = Winners()
    found: list[Clash] = []
    for layer in layers:
        found += winners.take(given_name(layer), scan(place.layers_of(layer), Limits().paths))
    return tuple(found)


def _prepare(place: ViewPlace, layers: Sequence[str]) -> None:
    """Takes out of each layer what it lost to the earlier ones."""
    if len(layers) < 2:
        return
    winners = Winners()
    for layer in layers:
        uppers = place.layers_of(layer)
        effects = scan(uppers, Limits().paths)
        if layer != layers[0]:
            for upper in uppers:
                strip(upper, winners, effects)
        winners.take(layer, effects)


def _fold(place: ViewPlace, parent: str, layer: str) -> None:
    home = place.layer_home(layer)
    if not home.is_dir():
        return
    known = read_base(place.base_file(parent))
    append_base(
        place.base_file(parent),
        [base for path, base in read_base(place.base_file(layer)).items() if path not in known],
    )
    for number, _ in enumerate(place.record().real_roots):
        upper = place.upper(layer, number)
        if upper.is_dir():
            fold(upper, place.make_layer(parent, number))
    move_notes(place.acts(layer), place.acts(parent))
    remove_tree(home)


def _read(file: Path) -> Plan | None:
    try:
        return Plan.model_validate_json(file.read_bytes())
    except FileNotFoundError:
        return None
    except (OSError, ValidationError) as error:
        raise SandboxError(f"{file} cannot be read: {error}; keep it and report this") from error


def _write(file: Path, plan: Plan) -> None:
    file.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    write_whole(file, plan.model_dump_json().encode(), sync=False)
