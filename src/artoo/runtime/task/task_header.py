"""Convert a task's settings to its first message (TaskOpened) and back, and read the version."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields
from functools import cache
from importlib.metadata import version
from typing import Any

from artoo.contracts.errors import ConfigurationError
from artoo.contracts.recording import AskedBy, ModelKnown, TaskOpened
from artoo.contracts.settling import ApplyMode, ChangeClass
from artoo.control.hyperparameters import Hyperparameters
from artoo.loops.asking import StandingSegments
from artoo.loops.fast.agreement import SecondLook
from artoo.loops.heuristics import without
from artoo.loops.medium.allowance import Allowance, BudgetName
from artoo.ports.model import Known
from artoo.prompts.segments import Segment
from artoo.runtime.task.task_run import TaskSettings


def opened_as(
    settings: TaskSettings,
    allow: tuple[str, ...],
    *,
    memory: bool,
    money: float | None = None,
    asked_by: AskedBy | None = None,
) -> TaskOpened:
    """Return the first message of a task that runs with these settings."""
    first = settings.allowance.first
    return TaskOpened(
        artoo=own_version(),
        hyperparameters=_numbers(settings.hyperparameters),
        tuned={slug: _changed(settings.hyperparameters, own) for slug, own in settings.tuned.items()},
        most_subtasks=settings.most_subtasks,
        strict_roles=settings.strict_roles,
        ask_for_moves=settings.ask_for_moves,
        second_look=settings.second_look.value,
        memory=memory,
        max_calls=first.calls,
        max_tokens=first.tokens,
        max_money=money,
        allow=allow,
        apply=settings.apply,
        unasked=tuple(sorted(settings.unasked)),
        persona=settings.persona,
        standing=named(settings.standing),
        brain=_as_told(settings.brain),
        tool=_as_told(settings.tool),
        without=settings.heuristics.off,
        asked_by=asked_by,
        effort=settings.allowance.effort,
        fixed=settings.allowance.fixed,
        plan=settings.approve,
    )


def _unasked(opened: TaskOpened) -> frozenset[ChangeClass]:
    """Return the classes of changes that the message names. Messages of earlier versions contain only the mode."""
    mode = opened.apply or ApplyMode.NEW
    return mode.unasked if opened.unasked is None else frozenset(opened.unasked)


def _as_told(known: Known) -> ModelKnown:
    return ModelKnown(small=known.small, window=known.window, images=known.images)


def named(standing: StandingSegments) -> dict[str, str]:
    """Return the segments of an agent by their names."""
    return {segment.name: text for segment, text in standing.segments.items()}


def settings_of(opened: TaskOpened, project: str = "") -> TaskSettings:
    """Return the settings that the first message of a task contains. `project` is the project of the request.

    Raises ConfigurationError if the message contains a setting that this version does not have.
    """
    try:
        return TaskSettings(
            hyperparameters=_hyperparameters(opened.hyperparameters),
            tuned={slug: _hyperparameters(opened.for_type(slug).hyperparameters) for slug in opened.tuned},
            allowance=_allowance(opened),
            approve=opened.plan,
            most_subtasks=opened.most_subtasks,
            strict_roles=opened.strict_roles,
            ask_for_moves=opened.ask_for_moves,
            second_look=SecondLook(opened.second_look),
            persona=opened.persona,
            standing=_standing(opened.standing),
            brain=Known(opened.brain.small, opened.brain.window, opened.brain.images),
            tool=Known(opened.tool.small, opened.tool.window, opened.tool.images),
            heuristics=without(opened.without),
            project=project,
            apply=opened.apply or ApplyMode.NEW,
            unasked=_unasked(opened),
        )
    except ValueError as error:
        raise ConfigurationError(
            f"the task was run by artoo {opened.artoo} with settings that artoo {own_version()} does not have: "
            f"{error}; use the version that ran it"
        ) from error


def _allowance(opened: TaskOpened) -> Allowance:
    milliseconds = opened.hyperparameters.get("time_budget_ms", 0)
    fixed: dict[BudgetName, float | int | None] = {
        "seconds": float(milliseconds) / 1_000,
        "calls": opened.max_calls,
        "tokens": opened.max_tokens,
    }
    given: dict[str, Any] = {name: fixed[name] for name in opened.fixed}
    return Allowance(opened.effort, **given)


def _standing(given: Mapping[str, str]) -> StandingSegments:
    """Return an agent's segments. Raises ValueError for a segment that does not exist."""
    if unknown := sorted(given.keys() - {segment.name for segment in Segment}):
        raise ValueError(f"unknown segments: {', '.join(unknown)}")
    return StandingSegments({Segment[name]: text for name, text in given.items()})


def _numbers(given: Hyperparameters) -> dict[str, float | int | str]:
    """Return hyperparameters by their names."""
    return {name: getattr(given, name) for name in Hyperparameters.__slots__}


def _changed(general: Hyperparameters, own: Hyperparameters) -> dict[str, float | int | str]:
    """Return those hyperparameters of a task type that differ from the general ones."""
    return {name: value for name, value in _numbers(own).items() if value != getattr(general, name)}


@cache
def own_version() -> str:
    """Return the installed version. It is read from the distribution's files once in a process."""
    return version("artoo")


def _hyperparameters(given: dict[str, float | int | str]) -> Hyperparameters:
    known = {field.name for field in fields(Hyperparameters)}
    if unknown := sorted(given.keys() - known):
        raise ValueError(f"unknown hyperparameters: {', '.join(unknown)}")
    values: dict[str, Any] = dict(given)
    return Hyperparameters(**values)
