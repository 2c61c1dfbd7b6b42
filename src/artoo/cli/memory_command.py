"""`artoo memory`: what was learnt, why, and how to correct it."""

from __future__ import annotations

import asyncio
import json
import os
import sys
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO, Protocol, runtime_checkable

import click

from artoo.contracts.errors import MemoryStoreError
from artoo.contracts.tags import Pair, pair_named

if TYPE_CHECKING:
    from artoo.contracts.memory import DreamReport
    from artoo.memory.environment import Environment
    from artoo.runtime.config import Config

PROBLEMS = 1


@runtime_checkable
class HasHome(Protocol):
    """What the main command puts into the click context, as far as this group reads it."""

    @property
    def home(self) -> Path: ...


def config_of(context: click.Context) -> Config:
    """The configuration below the main command's home."""
    from artoo.runtime.config_file import load_config

    given: object = context.find_root().obj
    environ = dict(os.environ)
    if isinstance(given, HasHome):
        environ["ARTOO_HOME"] = str(given.home)
    return load_config(environ)


def directory_of(context: click.Context) -> Path:
    """The directory of the memory store."""
    return config_of(context).memory_path


@contextmanager
def opened(context: click.Context) -> Generator[Environment]:
    """The store, open for the length of one command."""
    from artoo.memory.environment import open_environment

    environment = open_environment(directory_of(context))
    try:
        yield environment
    finally:
        environment.close()


def pair_of(words: tuple[str, ...]) -> Pair:
    """See `pair_named`. Raises UsageError for no words."""
    text = " ".join(words)
    if not text.strip():
        raise click.UsageError("Name a pair, such as `tool:glob path:/tmp`, a tool, or a request.")
    return pair_named(text)


as_json_option = click.option("--json", "as_json", is_flag=True, help="Print JSON, for programs.")


@click.group(invoke_without_command=True, context_settings={"help_option_names": ["-h", "--help"]})
@as_json_option
@click.pass_context
def memory(context: click.Context, as_json: bool) -> None:
    """Look at what was learnt, and correct it. Without a command: the pyramid."""
    if context.invoked_subcommand is not None:
        return
    from artoo.memory.insight import overview
    from artoo.runtime.system import SystemClock

    with opened(context) as environment:
        found = overview(environment, SystemClock().now())
    from artoo.cli import memory_view

    if as_json:
        _print_json(memory_view.overview_object(found))
    else:
        memory_view.show_overview(found)


@memory.command("query")
@click.argument("pair", nargs=-1, required=True)
@as_json_option
@click.pass_context
def query(context: click.Context, pair: tuple[str, ...], as_json: bool) -> None:
    """What memory advises about PAIR: `SPACE ENTITY`, `tool:NAME`, or the words of a request."""
    from artoo.cli import memory_view
    from artoo.runtime.recalling import advice_about

    found = asyncio.run(advice_about(config_of(context), pair_of(pair)))
    if as_json:
        rules = [rule.model_dump(mode="json") for rule in found.rules]
        _print_json({"potentials": found.potentials.model_dump(mode="json"), "rules": rules})
    else:
        memory_view.show_advice(found.potentials, found.rules)


@memory.command("explain")
@click.argument("pair", nargs=-1, required=True)
@as_json_option
@click.pass_context
def explain(context: click.Context, pair: tuple[str, ...], as_json: bool) -> None:
    """Every megram's share in PAIR's two potentials, and both over time."""
    from artoo.cli import memory_view
    from artoo.memory import insight
    from artoo.runtime.system import SystemClock

    with opened(context) as environment:
        found = insight.explain(environment, pair_of(pair), SystemClock().now())
    if as_json:
        _print_json(memory_view.explanation_object(found))
    else:
        memory_view.show_explanation(found)


@memory.command("dream")
@as_json_option
@click.pass_context
def dream(context: click.Context, as_json: bool) -> None:
    """Run one pass of the Dreamer now: forget, doubt, guess, and word rules when a model endpoint is configured."""
    from artoo.cli import memory_view

    config = config_of(context)
    with opened(context) as environment:
        report = asyncio.run(_dream_once(config, environment))
    if as_json:
        _print_json(report.model_dump(mode="json"))
    else:
        memory_view.show_report(report)
    if report.error is not None:
        context.exit(PROBLEMS)


async def _dream_once(config: Config, environment: Environment) -> DreamReport:
    """One pass without pauses: somebody is waiting for it."""
    from artoo.loops.slow.dreamer import Dreamer
    from artoo.loops.slow.passing import DreamLimits
    from artoo.memory.maintenance import Maintenance
    from artoo.runtime.memories import wording
    from artoo.runtime.system import SystemClock, UuidIds

    clock, ids = SystemClock(), UuidIds()
    async with wording(config, os.environ, clock, ids) as (publish, draft):
        dreamer = Dreamer(
            Maintenance(environment, clock),
            clock,
            ids,
            publish=publish,
            busy=lambda: False,
            draft=draft,
            limits=DreamLimits(duty=1.0, slice=2_048),
        )
        return await dreamer.dream()


@memory.command("forget")
@click.argument("what", nargs=-1, required=True)
@click.option("--yes", is_flag=True, help="Do not ask.")
@click.pass_context
def forget(context: click.Context, what: tuple[str, ...], yes: bool) -> None:
    """Delete one entry (its ID), or everything about a PAIR. This cannot be undone; export first."""
    from artoo.memory import insight

    if not any(part.strip() for part in what):
        raise click.UsageError("Name an entry by its ID, or a pair, such as `tool:glob path:/tmp`.")
    single = len(what) == 1 and ":" not in what[0]
    named = what[0] if single else str(pair_of(what))
    if not yes:
        click.confirm(f"Forget {named} for good?", abort=True)
    with opened(context) as environment:
        if single:
            gone = 1 if insight.forget_one(environment, what[0]) is not None else 0
        else:
            gone = insight.forget_pair(environment, pair_of(what))
    if not gone:
        raise MemoryStoreError(f"Memory holds nothing under {named}. `artoo memory export` lists what it holds.")
    click.echo(f"Forgot {gone} {'entry' if gone == 1 else 'entries'}.")


@memory.command("export")
@click.argument("file", type=click.File("wb", lazy=True), default="-")
@click.pass_context
def export(context: click.Context, file: BinaryIO) -> None:
    """Write every entry as a line of JSON to FILE (default: standard output)."""
    from artoo.memory.exchange import exported

    count = 0
    with opened(context) as environment:
        for line in exported(environment):
            file.write(line + b"\n")
            count += 1
    file.flush()
    click.echo(f"{count} entries exported", err=True)


@memory.command("import")
@click.argument("file", type=click.File("rb"))
@click.pass_context
def import_(context: click.Context, file: BinaryIO) -> None:
    """Read entries from FILE (JSON lines, as exported). What is known already is left as it is."""
    from artoo.memory.exchange import imported

    with opened(context) as environment:
        added, known = imported(environment, file)
    click.echo(f"{added} entries added, {known} known already")


@memory.command("feedback")
@click.argument("rule")
@click.argument("verdict", type=click.Choice(["bad"]))
@click.argument("why")
@click.pass_context
def feedback(context: click.Context, rule: str, verdict: str, why: str) -> None:
    """Say that RULE (an entry's ID) is bad, and WHY. Its evidence is opposed, not rewritten."""
    from artoo.memory import insight
    from artoo.runtime.system import SystemClock, UuidIds

    with opened(context) as environment:
        written = insight.oppose(environment, rule, why, new_id=UuidIds().new(), at=SystemClock().now())
    click.echo(f"Noted against {rule}: {written.space} {written.entity}, f = {written.f:g}, σ = {written.sigma:+g}")


@memory.command("verify")
@click.option("--check", is_flag=True, help="Only look; exit with 1 when something is wrong.")
@as_json_option
@click.pass_context
def verify(context: click.Context, check: bool, as_json: bool) -> None:
    """Recompute all sums and indexes from the records, and repair what differs."""
    from artoo.cli import memory_view
    from artoo.memory.verify import examine, repair

    with opened(context) as environment:
        found = examine(environment)
        if not found.sound and not check:
            repair(environment)
            after = examine(environment)
        else:
            after = found
    if as_json:
        _print_json(memory_view.findings_object(found, after))
    else:
        memory_view.show_findings(found, after, checked_only=check)
    if not after.sound:
        context.exit(PROBLEMS)


@memory.command("proposals")
@as_json_option
@click.pass_context
def proposals(context: click.Context, as_json: bool) -> None:
    """Show what the Dreamer would add to the T layer. Only you can accept it."""
    from artoo.memory.insight import open_proposals

    with opened(context) as environment:
        found = open_proposals(environment)
    if as_json:
        _print_json([proposal.model_dump(mode="json") for proposal in found])
        return
    from artoo.cli.printable import one_line

    for proposal in found:
        click.echo(f"{proposal.id}  {one_line(proposal.text)}")
    if not found:
        click.echo("No open proposals.")


@memory.command("accept")
@click.argument("proposal_id")
@click.pass_context
def accept(context: click.Context, proposal_id: str) -> None:
    """Accept a proposal: its text becomes a file of the T layer."""
    from artoo.runtime.proposals import settle_proposal

    with opened(context) as environment:
        file = settle_proposal(environment, config_of(context).home, proposal_id, accept=True)
    click.echo(f"Accepted: {file}")


@memory.command("refuse")
@click.argument("proposal_id")
@click.pass_context
def refuse(context: click.Context, proposal_id: str) -> None:
    """Refuse a proposal; it will not be made again."""
    from artoo.runtime.proposals import settle_proposal

    with opened(context) as environment:
        settle_proposal(environment, config_of(context).home, proposal_id, accept=False)
    click.echo("Refused.")


def _print_json(found: object) -> None:
    json.dump(found, sys.stdout, ensure_ascii=False, indent=2)
    sys.stdout.write("\n")
