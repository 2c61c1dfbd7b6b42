"""Rules of thumb in one table: none of them is law, each can be switched off by its name and has to earn its place.

`benchmarks/ablate.py` runs tasks with one of them off; docs/figures.md has what each earned.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, fields


@dataclass(frozen=True, slots=True)
class Heuristics:
    """All on by default. "Small" is a model that is known to be small (`ports.model.Known`).

    listing: the prompts of R2 and R3 show what is on disk.
    brief: a small model's first attempt is shown the files that are named, if all can be read, and not the tree.
    programs: a small model is asked for one whole program, and not to choose among forms of a step.
    unplanned: a small model's request is its own only subtask; R2's model is not asked, and nothing is replanned.
    other_language: a small model whose program did not end well is asked for the other of Python and bash at once.
    lessons: R2's prompt shows what memory says about tools and requests.
    second_way: a small model's answer is worked out a second time, and has to agree.
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
    """Return the table with these switched off. Raises ValueError with the names that it does not have."""
    off = frozenset(names)
    if unknown := sorted(off - set(NAMES)):
        raise ValueError(f"no heuristic is called {', '.join(unknown)}; there are: {', '.join(NAMES)}")
    return Heuristics(**dict.fromkeys(off, False))
