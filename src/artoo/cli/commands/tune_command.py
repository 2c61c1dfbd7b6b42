"""`artoo tune`: proposals for the control law's numbers from your own task logs; nothing changes unaccepted."""

from __future__ import annotations

import os
from datetime import UTC, datetime
from typing import TYPE_CHECKING

import click

from artoo.cli.commands.options import HELP, as_json_option
from artoo.cli.display.sanitize import print_json, show
from artoo.words.shown import plural

if TYPE_CHECKING:
    from artoo.runtime.config.model import Config
    from artoo.runtime.tuning.keeping import Accepted, Proposal
    from artoo.runtime.tuning.proposing import Said

_WORTH = 100.0
"""Calls, where the configuration has no limit of them."""


@click.group(invoke_without_command=True, context_settings=HELP)
@click.option(
    "--worth",
    type=click.FloatRange(min=0, min_open=True),
    help="Model calls that all criteria of a task are worth; limits.calls otherwise.",
)
@click.option(
    "--tasks", default=2_000, show_default=True, type=click.IntRange(min=1), help="Latest tasks to read, at most."
)
@as_json_option
@click.pass_context
def tune(context: click.Context, worth: float | None, tasks: int, as_json: bool) -> None:
    """Look for better numbers of the control law in the logs of your own tasks.

    Without a command: replay the logs under other numbers and show what is proposed, for each type of task. Nothing
    changes until a proposal is accepted. What the logs cannot tell is said.
    """
    if context.invoked_subcommand is not None:
        return
    from artoo.runtime.config.loader import load_config
    from artoo.runtime.tuning.keeping import propose
    from artoo.runtime.tuning.proposing import proposals
    from artoo.runtime.tuning.records import read_logs

    config = load_config()
    rate = worth or float(config.limits.calls or _WORTH)
    logs = read_logs(config.home, tasks)
    general = config.control.hyperparameters()
    tuned = config.control.tuned(general)
    said = proposals(logs.records, lambda kind: tuned.get(kind, general), rate)
    kept = propose(config.home, [each.proposed for each in said if each.proposed], rate, datetime.now(UTC))
    if as_json:
        print_json(kept)
        return
    left = "".join(f", {many} left out ({why})" for why, many in logs.left_out)
    read = plural(len(logs.records), "task")
    show(f"{read} read{left}; all criteria of a task are worth {rate:g} calls (--worth)")
    _show_said(said, kept)


@tune.command("list", context_settings=HELP)
def list_() -> None:
    """Show what is proposed and what was accepted."""
    from artoo.runtime.tuning.keeping import load

    tuning = load(_config().home)
    for proposal in tuning.proposals:
        show(_line(proposal))
    for accepted in tuning.accepted:
        show(_accepted(accepted))
    if not tuning.proposals and not tuning.accepted:
        show("nothing is proposed and nothing was accepted")


@tune.command("accept", context_settings=HELP)
@click.argument("number", type=int)
def accept_(number: int) -> None:
    """Write proposal NUMBER into the configuration."""
    from artoo.runtime.tuning.keeping import accept, route

    accepted = accept(_config().home, number, datetime.now(UTC))
    proposal = accepted.proposal
    show(f"{'.'.join(route(proposal))} is {proposal.value:g} now; `artoo tune revoke {number}` takes it back")


@tune.command("revoke", context_settings=HELP)
@click.argument("number", type=int)
def revoke_(number: int) -> None:
    """Put back what stood in the configuration before NUMBER was accepted."""
    from artoo.runtime.tuning.keeping import revoke, route

    revoked = revoke(_config().home, number)
    was = "not set" if revoked.was is None else f"{revoked.was:g}"
    show(f"{'.'.join(route(revoked.proposal))} is {was} again")


def _config() -> Config:
    from artoo.runtime.config.loader import load_config

    return load_config(os.environ)


def _show_said(said: list[Said], kept: tuple[Proposal, ...]) -> None:
    few = sum(not each.enough for each in said)
    for each in said:
        if each.proposed is not None or not each.enough:
            continue
        show(f"{_named(each.type)} ({each.tasks} tasks): nothing is proposed; {each.why}")
        _show_silence(each)
    if few:
        show(f"types of task of which nothing can be said, because they have too few tasks: {few}")
    for proposal in kept:
        show(_line(proposal))
        _show_silence(next(each for each in said if each.type == proposal.type))
    if kept:
        show("`artoo tune accept NUMBER` writes one into the configuration.")


def _show_silence(said: Said) -> None:
    if said.silent:
        names = ", ".join(name.rstrip("_") for name in said.silent)
        show(f"   of some values of {names} nothing can be said: in no comparable round was it tried")


def _line(proposal: Proposal) -> str:
    met, calls, gain = _range(proposal.met, 100), _range(proposal.calls), _range(proposal.gain)
    return (
        f"{proposal.number}: {_named(proposal.type)}: {proposal.name} {proposal.value:g} instead of "
        f"{proposal.before:g}. Of {proposal.tasks} tasks that judged it {proposal.different} would have gone "
        f"another way (of {proposal.known} the logs tell where to). A task: criteria met {met} points, model calls "
        f"{calls}, together worth {gain} calls"
    )


def _accepted(accepted: Accepted) -> str:
    proposal = accepted.proposal
    return (
        f"{proposal.number}: accepted {accepted.at:%Y-%m-%d}: {_named(proposal.type)}: {proposal.name} "
        f"{proposal.value:g} (before: {proposal.before:g})"
    )


def _range(estimate: tuple[float, float, float], scale: float = 1.0) -> str:
    value, low, high = (f"{each * scale:+.2f}" for each in estimate)
    return f"{value} [{low}, {high}]"


def _named(type_: str) -> str:
    return type_ or "all tasks"
