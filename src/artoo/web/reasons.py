"""Explain each decision of a task in sentences with its numbers."""

from __future__ import annotations

from dataclasses import dataclass

from artoo.contracts.solution import Decided
from artoo.control.hyperparameters import Hyperparameters
from artoo.tasklog.state import Round, TaskState
from artoo.words.catalogue import Catalogue


@dataclass(frozen=True, slots=True)
class Reasons:
    """One round with its sentences. `before`: the previous round, whose directive led to this round."""

    round: Round
    before: Round | None
    sentences: tuple[tuple[str, float, str], ...]
    """The name of the term, its value, and the sentence about it."""


def law_of(state: TaskState) -> Hyperparameters:
    """Return the hyperparameters of the task's decisions."""
    given = {} if state.opened is None else state.opened.for_type(state.task_type).hyperparameters
    known = {name: value for name, value in given.items() if name in Hyperparameters.__slots__}
    return Hyperparameters(**known)  # pyright: ignore[reportArgumentType]


def reasons_of(state: TaskState, words: Catalogue) -> tuple[Reasons, ...]:
    """Return the reasons of every round, latest first, because only the latest round still changes."""
    found: list[Reasons] = []
    before: Round | None = None
    law = law_of(state)
    for each in state.rounds:
        first = before is None or before.decided is None
        sentences = () if each.decided is None else _sentences(each.decided, law, words, first=first)
        found.append(Reasons(each, before, sentences))
        before = each
    # The latest directive already determines the next round, so that round is listed too.
    if before is not None and before.directive is not None:
        found.append(Reasons(Round(before.directive.round, planned=False), before, ()))
    return tuple(reversed(found))


def _sentences(
    decided: Decided, law: Hyperparameters, words: Catalogue, *, first: bool
) -> tuple[tuple[str, float, str], ...]:
    loss = decided.loss
    total = decided.logical_failures + decided.environmental_failures
    about_d = words(
        "{share:.0%} of the criteria ({criteria} in all) are not met yet."
        if loss.D
        else "All criteria ({criteria}) are met.",
        criteria=decided.criteria,
        share=loss.D,
    )
    about_p = words(
        "Failures caused by the approach, and not by the environment: {logical} of {total}."
        if total
        else "No failure has a cause that counts.",
        logical=decided.logical_failures,
        total=total,
    )
    about_omega = words(
        "{share:.0%} of the budget is spent; the task stops at {theta:.0%}.", share=loss.Omega, theta=law.theta
    )
    return (
        ("D", loss.D, about_d),
        ("P", loss.P, about_p),
        ("Ω", loss.Omega, about_omega),
        ("∇L", decided.grad_l, _slope(decided.grad_l, law, words, first=first)),
    )


def _slope(gradient: float, law: Hyperparameters, words: Catalogue, *, first: bool) -> str:
    if first:
        return words("It is the first round, so there is no slope yet.")
    if abs(gradient) < law.epsilon:
        return words("The loss hardly changed ({size:+.2f}): more of the same will not help.", size=gradient)
    worse = "The loss rose by {size:.2f}: this makes it worse."
    return words(worse if gradient > 0 else "The loss fell by {size:.2f}: this helps.", size=abs(gradient))
