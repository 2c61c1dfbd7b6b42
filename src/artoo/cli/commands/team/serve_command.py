"""`artoo serve [team|worker|acp|a2a]`: run agents or a protocol server until a signal and its grace."""

from __future__ import annotations

import asyncio
import os
import sys
from collections.abc import Callable
from contextlib import suppress
from importlib.util import find_spec
from typing import TYPE_CHECKING

import click

from artoo.cli.commands.group import SERVERS, LazyGroup
from artoo.cli.commands.options import HELP
from artoo.cli.results.redact_output import outward, say
from artoo.cli.views.team_access import plain_object
from artoo.contracts.agents import (
    AgentChanged,
    AgentWoken,
    DreamCycleReport,
    MailMoved,
    PatrolRefused,
    PulseRecorded,
    ReplyMissed,
    TaskMoved,
)
from artoo.contracts.envelope import Envelope
from artoo.contracts.errors import ConfigurationError
from artoo.contracts.text import shortened
from artoo.runtime.config.loader import load_config

if TYPE_CHECKING:
    from artoo.runtime.config.model import Config
    from artoo.team.team import Team

GRACE_SECONDS = 20.0
"""Number of seconds that running work has to end after the first signal. After that, its tasks are returned to the
board."""

LONGEST = 500
"""Maximum number of characters of a line. A longer line is shortened between two words. `artoo task log` has the
whole text."""


def _printing(command: Callable[..., None]) -> Callable[..., None]:
    """Add the options for the output while the agents work."""
    whole = click.option("--events", is_flag=True, help="Print the whole stream as JSON lines.")
    quiet = "Print the events of tasks, letters and agents as JSON lines."
    return whole(click.option("--json", "as_json", is_flag=True, help=quiet)(command))


def _team_options(command: Callable[..., None]) -> Callable[..., None]:
    web = click.option("--web", is_flag=True, help="Serve the web UI, too (artoo serve web).")
    port = click.option("--port", type=click.IntRange(0, 65_535), help="The port of the web UI.")
    return _printing(web(port(command)))


@click.group(cls=LazyGroup, mounted=SERVERS, invoke_without_command=True, context_settings=HELP)
@_team_options
@click.pass_context
def serve(context: click.Context, events: bool, as_json: bool, web: bool, port: int | None) -> None:
    """Run the agents until Ctrl-C, in one process per home.

    Ctrl-C stops running work or returns it to the board, and the next start continues it. A second Ctrl-C exits at
    once. The commands below start servers for browsers, editors and other programs.
    """
    if context.invoked_subcommand is None:
        context.exit(_serve_team(events, as_json, web=web, port=port))


@click.command(context_settings=HELP)
@_team_options
@click.pass_context
def team(context: click.Context, events: bool, as_json: bool, web: bool, port: int | None) -> None:
    """Run the agents until Ctrl-C, like artoo serve alone."""
    context.exit(_serve_team(events, as_json, web=web, port=port))


def _serve_team(events: bool, as_json: bool, *, web: bool, port: int | None) -> int:
    from artoo.team.locks import only_instance

    if port is not None and not web:
        raise click.UsageError("--port is only for the web UI; add --web")
    config = load_config()
    with only_instance(config.home):
        return asyncio.run(_serve_with_page(config, _printer(events, as_json), web=web, port=port))


@click.command(context_settings=HELP)
@_printing
@click.pass_context
def worker(context: click.Context, events: bool, as_json: bool) -> None:
    """Run agents of a shared store on this machine, without their folders, until Ctrl-C.

    It runs agents that work on no other machine, and does tasks of the `projects` in its configuration. Submissions
    stay in the store until their review. Patrols and dream cycles run only on machines that have the agents'
    folders.
    """
    from artoo.team.locks import only_instance

    config = load_config()
    with only_instance(config.home):
        code = asyncio.run(_serve(config, _printer(events, as_json), worker=True))
    context.exit(code)


@click.command(context_settings=HELP)
def acp() -> None:
    """Serve the Agent Client Protocol on standard input and output: an editor starts this.

    docs/protocols.md has the editor's settings.
    """
    # imported only to serve, because the library and its schema take long to import
    from artoo.protocols.acp.serving import serve
    from artoo.runtime.config.loader import load_config

    if sys.stdin.isatty():
        click.echo("artoo: an editor starts this and speaks to it; Ctrl-D ends it", err=True)
    asyncio.run(serve(load_config()))


@click.command(context_settings=HELP)
@click.option(
    "--port",
    type=click.IntRange(0, 65_535),
    default=8_723,
    show_default=True,
    help="The port; 0 takes any free one.",
)
def a2a(port: int) -> None:
    """Serve A2A by HTTP on loopback, for the foreign agents in config.yaml, until Ctrl-C.

    Their requests become tasks on the board, under your policy for each agent. The team works in this process,
    unless artoo serve runs. See docs/protocols.md.
    """
    if find_spec("a2a") is None:
        raise ConfigurationError("A2A needs its library: pip install 'artoo[a2a]'")
    from artoo.protocols.a2a.serving import serve  # imported only to serve, because the SDK takes long to import

    asyncio.run(serve(load_config(), port, say))


async def _serve_with_page(config: Config, tell: Callable[[Envelope], None], *, web: bool, port: int | None) -> int:
    if not web:
        return await _serve(config, tell)
    from artoo.cli.commands.web_command import page_beside

    async with page_beside(config, port):
        return await _serve(config, tell)


async def _serve(config: Config, tell: Callable[[Envelope], None], *, worker: bool = False) -> int:
    from artoo.cli.display.side_channel import Fetch
    from artoo.protocols.ending import first_signal
    from artoo.runtime.app.artoo import Artoo
    from artoo.runtime.config.endpoints import endpoint
    from artoo.team.office import open_office
    from artoo.team.team import open_team

    small = endpoint(config, "brain", os.environ) is None
    async with (
        open_office(config, lasting=_tell) as office,
        Artoo(config, on_fetch=Fetch()) as artoo,
        open_team(office, artoo, small_model=small, grace=GRACE_SECONDS, worker=worker) as team,
    ):
        detach = artoo.bus.attach(tell)

        def stop() -> None:
            team.stop()
            _tell("stopping; running work is ended or given back")

        try:
            with first_signal(stop):
                await team.run(ready=lambda: _greet(team, waits=worker))
        finally:
            detach()
    _tell("the team has stopped")
    return 0


def _greet(team: Team, *, waits: bool) -> None:
    """Print the names of the working agents, and the problems of the others. `waits`: true if it is no error that
    there is no agent."""
    for problem in team.problems:
        _tell(problem)
    names = ", ".join(sorted(team.heartbeats))
    if not names and waits:
        _tell("no agent is free; the next free one is taken over; Ctrl-C stops")
        return
    if not names:
        raise ConfigurationError("no agent may work; create one: artoo agent new NAME")
    _tell(f"{names} at work; Ctrl-C stops")


def _tell(text: str) -> None:
    """Print a line on standard error. If standard error is closed, or its disk is full, this is ignored."""
    with suppress(OSError):
        say(text)


def _printer(events: bool, as_json: bool) -> Callable[[Envelope], None]:
    """Return the function that prints the messages on the stream.

    The team does not stop if standard output is closed or its disk is full, because the work does not depend on the
    output.
    """

    def show(envelope: Envelope) -> None:
        line = line_of(envelope, events=events, as_json=as_json)
        if line is None:
            return
        try:
            sys.stdout.write(line + "\n")
            sys.stdout.flush()
        except OSError:
            # All later lines go to the null device, so that the error does not occur again for every message.
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())

    return show


def line_of(envelope: Envelope, *, events: bool, as_json: bool) -> str | None:
    """Return the line that is printed for a message, with secrets redacted. Return None if nothing is printed."""
    if events:
        from artoo.contracts.codec import encode

        return outward(encode(envelope).decode("utf-8"))
    said = told(envelope)
    if said is None:
        return None
    if as_json:
        import json

        fields = {"kind": envelope.kind, "at": envelope.at.isoformat(), **plain_object(envelope.payload)}
        return outward(json.dumps(fields, ensure_ascii=False))
    from artoo.cli.display.sanitize import one_line

    # Secrets are redacted before the line is shortened, because half of a secret would not be recognised.
    return shortened(f"{envelope.at.astimezone():%H:%M:%S}  {one_line(outward(said))}", LONGEST)


def told(envelope: Envelope) -> str | None:
    """Return one line for a message about tasks, letters or agents. Return None for any other message."""
    from artoo.cli.views.team_view import short

    match envelope.payload:
        case TaskMoved() as moved:
            why = f": {moved.reason}" if moved.reason else ""
            return f"task {short(moved.board_task)} {moved.after.value} ({moved.actor}){why}"
        case MailMoved(partition="inbox") as moved:
            return f"letter {moved.sender} -> {moved.recipient}"
        case ReplyMissed() as missed:
            cycle = f" ({' -> '.join(missed.cycle)})" if missed.cycle else ""
            return f"no answer for {missed.waiting} from {missed.recipient}: {missed.why}{cycle}"
        case AgentChanged() as changed:
            return f"agent {changed.agent} {changed.change} by {changed.actor} {changed.detail}".rstrip()
        case PulseRecorded(outcome="skipped" | "missed") as pulse:
            return f"{pulse.agent}: {pulse.count} pulse(s) {pulse.outcome}: {pulse.why}"
        case AgentWoken(outcome="deferred") as woken:
            return f"{woken.agent}: {woken.cause}, left for the next pulse: {woken.why}"
        case PatrolRefused() as refused:
            return f"{refused.agent}: {refused.path}:{refused.line}: {refused.problem}"
        case DreamCycleReport() as report if report.promoted or report.error:
            return f"{report.agent} dreamt: {len(report.promoted)} learnt {report.error or ''}".rstrip()
        case _:
            return None
