"""`artoo config tune`: propose hyperparameters of the control law from the user's task logs."""

from __future__ import annotations

import shlex
from typing import TYPE_CHECKING

import click

from artoo.cli.commands.options import HELP, as_json_option
from artoo.cli.display.sanitize import print_json, show
from artoo.words.shown import plural

if TYPE_CHECKING:
    from artoo.runtime.tuning.proposing import Proposed, TypeProposal

_WORTH = 100.0
"""The number of model calls that meeting all criteria is assumed to be worth, if the configuration limits
nothing."""


@click.command(context_settings=HELP)
@click.option(
    "--worth",
    type=click.FloatRange(min=0, min_open=True),
    help="The value of all criteria of a task, in model calls (default: limits.calls).",
)
@click.option(
    "--tasks",
    default=2_000,
    show_default=True,
    type=click.IntRange(min=1),
    help="The most tasks to read, latest first.",
)
@as_json_option
def tune(worth: float | None, tasks: int, as_json: bool) -> None:
    """Propose better numbers for the control law, from the logs of your own tasks.

    The logs are replayed with other numbers, for each type of task. Each proposal has the command that accepts it,
    and nothing changes without that command.
    """
    from artoo.runtime.config.loader import load_config
    from artoo.runtime.tuning.proposing import proposals
    from artoo.runtime.tuning.records import read_logs

    config = load_config()
    rate = worth or float(config.limits.calls or _WORTH)
    logs = read_logs(config.home, tasks)
    general = config.control.hyperparameters()
    tuned = config.control.tuned(general)
    said = proposals(logs.records, lambda kind: tuned.get(kind, general), rate)
    if as_json:
        found = (each.proposed for each in said if each.proposed)
        print_json([{**each.model_dump(mode="json"), "accept": _accepting(each)} for each in found])
        return
    left = "".join(f", {many} left out ({why})" for why, many in logs.left_out)
    read = plural(len(logs.records), "task")
    show(f"{read} read{left}; all criteria of a task are worth {rate:g} calls (--worth)")
    _show_said(said)


def _show_said(said: list[TypeProposal]) -> None:
    for each in said:
        if each.proposed is None and each.enough:
            show(f"{_named(each.type)} ({each.tasks} tasks): nothing is proposed; {each.why}")
            _show_silence(each)
    if few := sum(not each.enough for each in said):
        show(f"types of task of which nothing can be said, because they have too few tasks: {few}")
    for each in said:
        if each.proposed is not None:
            show(_line(each.proposed))
            _show_silence(each)
            show(f"   to accept it: {_accepting(each.proposed)}")


def _show_silence(said: TypeProposal) -> None:
    if said.silent:
        names = ", ".join(name.rstrip("_") for name in said.silent)
        show(f"   of some values of {names} nothing can be said: in no comparable round was it tried")


def _line(proposal: Proposed) -> str:
    met, calls, gain = _range(proposal.met, 100), _range(proposal.calls), _range(proposal.gain)
    return (
        f"{_named(proposal.type)}: {proposal.name} {proposal.value:g} instead of "
        f"{proposal.before:g}. Of {proposal.tasks} tasks that judged it {proposal.different} would have gone "
        f"another way (of {proposal.known} the logs tell where to). A task: criteria met {met} points, model calls "
        f"{calls}, together worth {gain} calls"
    )


def _accepting(proposal: Proposed) -> str:
    """Return the command with which a user writes a proposal to the configuration."""
    section = f"control.by_type.{proposal.type}" if proposal.type else "control"
    return shlex.join(("artoo", "config", "set", f"{section}.{proposal.name}", f"{proposal.value:g}"))


def _range(estimate: tuple[float, float, float], scale: float = 1.0) -> str:
    value, low, high = (f"{each * scale:+.2f}" for each in estimate)
    return f"{value} [{low}, {high}]"


def _named(type_: str) -> str:
    return type_ or "all tasks"
