"""Which experiments there are, in the order of the report."""

from __future__ import annotations

from lab.experiment import Experiment
from lab.experiments import (
    blame,
    claims,
    commands,
    control,
    injections,
    memory,
    sensitivity,
    stop,
    structure,
    team,
    terms,
    tuning,
)

EXPERIMENTS: tuple[Experiment, ...] = (
    control.EXPERIMENT,
    terms.EXPERIMENT,
    memory.EXPERIMENT,
    team.EXPERIMENT,
    structure.EXPERIMENT,
    stop.EXPERIMENT,
    sensitivity.EXPERIMENT,
    tuning.EXPERIMENT,
    claims.EXPERIMENT,
    commands.EXPERIMENT,
    injections.EXPERIMENT,
    blame.EXPERIMENT,
)


def experiment(name: str) -> Experiment:
    """The experiment of this name. Raises KeyError when there is none."""
    return {each.name: each for each in EXPERIMENTS}[name]
