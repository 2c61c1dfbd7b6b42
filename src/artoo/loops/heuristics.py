"""The table of heuristics that can be switched off by name, such as `second_way` and `other_language`.

They are not part of the control law. Each heuristic must prove its benefit by measurement.

`benchmarks/ablate.py` runs tasks with one heuristic switched off, and docs/figures.md lists the benefit of each.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, fields


@dataclass(frozen=True, slots=True)
class Heuristics:
    """The heuristics of a task. All are on by default. "Small" means a model that is known to be small
    (`ports.model.Known`).

    listing: the prompts of the planner and the executor show the files on disk.
    brief: a small model's first attempt is shown the named files instead of the tree, if all of them can be read.
    programs: a small model is asked for one whole program instead of a choice among forms of a step.
    unplanned: a small model's request is its only subtask. No model plans, and nothing is replanned.
    other_language: if a small model's program fails, it is asked at once for the other of Python and bash.
    lessons: the planner's prompt shows the advice of memory about tools and requests.
    second_way: a small model's answer is computed a second time in another way, and both must agree.
    """

    listing: bool = True
    brief: bool = True
    programs: bool = True
    unplanned: bool = True
    other_language: bool = True
    lessons: bool = True
    second_way: bool = True

    @property
    def off(self) -> tuple[str, ...]:
        """Return the names of the heuristics that are switched off."""
        return tuple(name for name in NAMES if not getattr(self, name))


NAMES: tuple[str, ...] = tuple(field.name for field in fields(Heuristics))


def without(names: Iterable[str]) -> Heuristics:
    """Return the table with these heuristics switched off. Raises a ValueError that lists the unknown names."""
    off = frozenset(names)
    if unknown := sorted(off - set(NAMES)):
        raise ValueError(f"no heuristic is called {', '.join(unknown)}; there are: {', '.join(NAMES)}")
    return Heuristics(**dict.fromkeys(off, False))
