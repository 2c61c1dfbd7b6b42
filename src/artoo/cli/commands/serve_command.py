"""`artoo serve`: the standing agents at work, or a protocol's server, in the foreground, until asked to stop."""

from __future__ import annotations

import asyncio
import os
import signal
import sys
from collections.abc import Callable, Generator
from contextlib import contextmanager, suppress
from importlib.util import find_spec
from typing import TYPE_CHECKING

import click

from artoo.cli.commands.exit_codes import FAILED
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
from artoo.contracts.shortened import shortened
from artoo.runtime.config.loader import load_config

if TYPE_CHECKING:
    from artoo.runtime.config.model import Config
    from artoo.team.team import Team

GRACE_SECONDS = 20.0
"""How long what is being done may take to end after the first signal; then it is given back."""

LEAVE_SECONDS = 40.0
"""And when even that hangs, the process ends: everything that matters is on disk."""

LONGEST = 500
"""Characters of a line, cut between words; the whole of it is in `artoo task log`."""


def _printing(command: Callable[..., None]) -> Callable[..., None]:
    """Add the options of what is printed while the agents work."""
    whole = click.option("--events", is_flag=True, help="Print the whole stream as JSON lines.")
    quiet = "Print what happens to tasks, letters and agents as JSON lines."
    return whole(click.option("--json", "as_json", is_flag=True, help=quiet)(command))


def _team_options(command: Callable[..., None]) -> Callable[..., None]:
    web = click.option("--web", is_flag=True, help="With the page beside it (artoo serve web).")
    port = click.option("--port", type=click.IntRange(0, 65_535), help="The page's port.")
    return _printing(web(port(command)))


@click.group(cls=LazyGroup, mounted=SERVERS, invoke_without_command=True, context_settings=HELP)
@_team_options
@click.pass_context
def serve(context: click.Context, events: bool, as_json: bool, web: bool, port: int | None) -> None:
    """Let the agents work, until Ctrl-C. One process for each home.

    What was begun is ended or given back; the next start goes on with it. A second Ctrl-C ends at once. The
    commands serve something else, to browsers, editors and other programs.
    """
    if context.invoked_subcommand is None:
        context.exit(_serve_team(events, as_json, web=web, port=port))


@click.command(context_settings=HELP)
@_team_options
@click.pass_context
def team(context: click.Context, events: bool, as_json: bool, web: bool, port: int | None) -> None:
    """Let the agents work, until Ctrl-C: the same as artoo serve alone."""
    context.exit(_serve_team(events, as_json, web=web, port=port))


def _serve_team(events: bool, as_json: bool, *, web: bool, port: int | None) -> int:
    from artoo.team.locks import only_instance

    if port is not None and not web:
        raise click.UsageError("--port is that of the page: say --web too")
    config = load_config()
    with only_instance(config.home):
        return asyncio.run(_serve_with_page(config, _printer(events, as_json), web=web, port=port))


@click.command(context_settings=HELP)
@_printing
@click.pass_context
def worker(context: click.Context, events: bool, as_json: bool) -> None:
    """Work for the agents of a shared store on this machine, without their folders, until Ctrl-C.

    It takes agents that work nowhere else, and tasks of the `projects` that this machine has. What they hand in
    waits in the store for its review. Patrols and dreams are left to the machines that have the agents' folders.
    """
    from artoo.team.locks import only_instance

    config = load_config()
    with only_instance(config.home):
        code = asyncio.run(_serve(config, _printer(events, as_json), worker=True))
    context.exit(code)


@click.command(context_settings=HELP)
def acp() -> None:
    """Serve the Agent Client Protocol on standard input and output: an editor starts this.

    docs/protocols.md says what to put into the editor's settings.
    """
    from artoo.protocols.acp.serving import serve  # the library and its schema: only when it serves
    from artoo.runtime.config.loader import load_config

    if sys.stdin.isatty():
        click.echo("artoo: an editor starts this and speaks to it; Ctrl-D ends it", err=True)
    asyncio.run(serve(load_config()))


@click.command(context_settings=HELP)
@click.option("--port", type=click.IntRange(0, 65_535), default=8_723, show_default=True, help="0: any free one.")
def a2a(port: int) -> None:
    """Serve A2A by HTTP on loopback: foreign agents that config.yaml names hand tasks to the team, until Ctrl-C.

    What they hand in comes onto the board, under your policy for each. The team works in this process, unless
    artoo serve runs. Letters to a2a:NAME go out from here. docs/protocols.md says how.
    """
    if find_spec("a2a") is None:
        raise ConfigurationError("A2A needs its library: pip install 'artoo[a2a]'")
    from artoo.protocols.a2a.serving import serve  # the SDK: only when it serves

    asyncio.run(serve(load_config(), port, say))


async def _serve_with_page(config: Config, tell: Callable[[Envelope], None], *, web: bool, port: int | None) -> int:
    if not web:
        return await _serve(config, tell)
    from artoo.cli.commands.web_command import page_beside

    async with page_beside(config, port):
        return await _serve(config, tell)


async def _serve(config: Config, tell: Callable[[Envelope], None], *, worker: bool = False) -> int:
    from artoo.cli.display.side_channel import Fetch
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
        try:
            with _signals(team.stop):
                await team.run(ready=lambda: _greet(team, waits=worker))
        finally:
            detach()
    _tell("the team has stopped")
    return 0


def _greet(team: Team, *, waits: bool) -> None:
    """Who works, and what is wrong with the others. `waits`: having nobody to work for is no mistake."""
    for problem in team.problems:
        _tell(problem)
    names = ", ".join(sorted(team.heartbeats))
    if not names and waits:
        _tell("no agent is free; whoever becomes so is taken over; Ctrl-C stops")
        return
    if not names:
        raise ConfigurationError("there is no agent that may work; make one: artoo agent new NAME")
    _tell(f"{names} at work; Ctrl-C stops")


def _tell(text: str) -> None:
    """A line on standard error. Whoever read it may have gone, or its disk be full: that ends nothing."""
    with suppress(OSError):
        say(text)


@contextmanager
def _signals(stop: Callable[[], None]) -> Generator[None]:
    """The first signal asks to stop, the second ends the process; so does a stop that hangs."""
    loop = asyncio.get_running_loop()
    asked: list[asyncio.TimerHandle] = []

    def received() -> None:
        if asked:
            os._exit(128 + signal.SIGINT)
        asked.append(loop.call_later(LEAVE_SECONDS, os._exit, FAILED))
        stop()
        _tell("stopping; what is being done is ended or given back")

    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        loop.add_signal_handler(number, received)
    try:
        yield
    finally:
        for timer in asked:
            timer.cancel()
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
            loop.remove_signal_handler(number)


def _printer(events: bool, as_json: bool) -> Callable[[Envelope], None]:
    """What is printed of the stream. A reader that is gone, or a full disk under it, ends nothing: the team does
    not work for the display."""

    def show(envelope: Envelope) -> None:
        line = line_of(envelope, events=events, as_json=as_json)
        if line is None:
            return
        try:
            sys.stdout.write(line + "\n")
            sys.stdout.flush()
        except OSError:
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())

    return show


def line_of(envelope: Envelope, *, events: bool, as_json: bool) -> str | None:
    """What is printed of a message, without secrets; None: nothing."""
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

    # Before it is cut: half a secret looks like none.
    return shortened(f"{envelope.at.astimezone():%H:%M:%S}  {one_line(outward(said))}", LONGEST)


def told(envelope: Envelope) -> str | None:
    """One quiet line for what people want to know; None for everything else."""
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
