"""List the experiments in the order of the report."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache
from importlib import import_module

from lab.experiment import Experiment

SIMULATED = ("control", "flight", "terms", "memory", "parts", "team", "structure", "stop", "sensitivity", "tuning")
PUBLIC = ("claims", "commands", "injections", "blame")
"""Those that read public data; their modules lie with the benchmarks."""
NAMES = (*SIMULATED, *PUBLIC)


@cache
def experiment(name: str) -> Experiment:
    """Return the experiment of this name. Raises KeyError if there is none."""
    if name not in NAMES:
        raise KeyError(name)
    found: Experiment = import_module(
        f"{'benchmarks.public' if name in PUBLIC else 'lab.experiments'}.{name}"
    ).EXPERIMENT
    return found


def experiments() -> Iterator[Experiment]:
    """Yield all of them."""
    return map(experiment, NAMES)
