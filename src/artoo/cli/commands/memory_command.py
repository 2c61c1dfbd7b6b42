"""`artoo memory`: kinds, rename, query, explain, dream, forget, export, import, feedback, verify and proposals."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Awaitable, Callable
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO, TypeVar

import click

from artoo.cli.commands.exit_codes import FAILED
from artoo.cli.commands.options import HELP, as_json_option
from artoo.cli.display.sanitize import one_line
from artoo.cli.display.screen import report
from artoo.contracts.errors import MemoryStoreError
from artoo.contracts.tags import Pair, label, pair_named, placed
from artoo.runtime.config.loader import load_config

if TYPE_CHECKING:
    from artoo.contracts.memory import DreamReport
    from artoo.memory.books import Books
    from artoo.memory.views import Findings
    from artoo.runtime.config.model import Config


T = TypeVar("T")


def with_books(config: Config, work: Callable[[Books], Awaitable[T]]) -> T:
    """Run `work` on the memory database, which is open only while the command runs."""
    from artoo.runtime.memory.books import opened_books

    async def opened() -> T:
        async with opened_books(config) as books:
            return await work(books)

    return asyncio.run(opened())


def pair_of(words: tuple[str, ...]) -> Pair:
    """Return the pair that words on the command line describe. A target is relative to the current directory.
    Raises UsageError for empty words."""
    text = " ".join(words)
    if not text.strip():
        raise click.UsageError("Name a pair, such as `tool:glob path:/tmp`, a tool, or a request.")
    return placed(pair_named(text), str(Path.cwd()))


@click.group(invoke_without_command=True, context_settings=HELP)
@as_json_option
@click.pass_context
def memory(context: click.Context, as_json: bool) -> None:
    """Show and correct what artoo has learned. Without a command, it shows an overview."""
    if context.invoked_subcommand is not None:
        return
    from artoo.runtime.app.system import SystemClock

    found = with_books(load_config(), lambda books: books.overview(SystemClock().now()))
    from artoo.cli.views import memory_view

    report(memory_view.overview_object(found), memory_view.overview_lines(found), as_json=as_json)


@memory.command("kinds")
@as_json_option
def kinds(as_json: bool) -> None:
    """List the kinds of request by label, with the newest request of each."""
    from artoo.cli.views import memory_view

    found = with_books(load_config(), lambda books: books.kinds())
    report(found, memory_view.kind_lines(found), as_json=as_json)


@memory.command("rename")
@click.argument("old")
@click.argument("new")
def rename(old: str, new: str) -> None:
    """Give the kind of request OLD the label NEW. If NEW is known, the two are merged."""
    if label(old) == label(new):
        raise click.UsageError(f"Both names have the same label, {label(new)}.")
    count = with_books(load_config(), lambda books: books.rename_kind(label(old), label(new)))
    if not count:
        raise MemoryStoreError(f"Memory knows no kind {label(old)}. `artoo memory kinds` lists them.")
    click.echo(f"{count} {'entry is' if count == 1 else 'entries are'} now of the kind {label(new)}.")


@memory.command("query")
@click.argument("pair", nargs=-1, required=True)
@as_json_option
def query(pair: tuple[str, ...], as_json: bool) -> None:
    """Show the advice of memory about PAIR: `SPACE ENTITY`, `tool:NAME`, or the label of a kind."""
    from artoo.cli.views import memory_view
    from artoo.runtime.memory.books import advice_about

    found = asyncio.run(advice_about(load_config(), pair_of(pair)))
    report(
        {"potentials": found.potentials, "rules": found.rules},
        memory_view.advice_lines(found.potentials, found.rules),
        as_json=as_json,
    )


@memory.command("explain")
@click.argument("pair", nargs=-1, required=True)
@as_json_option
def explain(pair: tuple[str, ...], as_json: bool) -> None:
    """Show how much every entry contributes to the advice about PAIR. `--json` has attention and decision over
    time."""
    from artoo.cli.views import memory_view
    from artoo.runtime.app.system import SystemClock

    asked = pair_of(pair)
    found = with_books(load_config(), lambda books: books.explain(asked, SystemClock().now()))
    report(memory_view.explanation_object(found), memory_view.explanation_lines(found), as_json=as_json)


@memory.command("dream")
@as_json_option
@click.pass_context
def dream(context: click.Context, as_json: bool) -> None:
    """Run one pass of the Dreamer now, which forgets, doubts, guesses, and (with a model server) words rules."""
    from artoo.cli.views import memory_view

    config = load_config()
    dreamt = with_books(config, lambda books: _dream_once(config, books))
    report(dreamt, memory_view.report_lines(dreamt), as_json=as_json)
    if dreamt.error is not None:
        context.exit(FAILED)


async def _dream_once(config: Config, books: Books) -> DreamReport:
    """Run one pass of the Dreamer without pauses, because a user waits for it."""
    from artoo.loops.slow.dreamer import Dreamer
    from artoo.loops.slow.passing import DreamLimits
    from artoo.runtime.app.system import SystemClock, UuidIds
    from artoo.runtime.memory.shared_memory import wording

    clock, ids = SystemClock(), UuidIds()
    async with wording(config, os.environ, clock, ids) as (publish, draft):
        dreamer = Dreamer(
            books.dreams(clock),
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
def forget(what: tuple[str, ...], yes: bool) -> None:
    """Delete one entry (its ID), or everything about a PAIR. This cannot be undone; export first."""
    if not any(part.strip() for part in what):
        raise click.UsageError("Name an entry by its ID, or a pair, such as `tool:glob path:/tmp`.")
    single = len(what) == 1 and ":" not in what[0]
    named = what[0] if single else str(pair_of(what))
    if not yes:
        click.confirm(f"Forget {named} for good?", abort=True)

    async def forgotten(books: Books) -> int:
        if single:
            return 1 if await books.forget_one(what[0]) is not None else 0
        return await books.forget_pair(pair_of(what))

    gone = with_books(load_config(), forgotten)
    if not gone:
        raise MemoryStoreError(f"Memory holds nothing under {named}. `artoo memory export` lists what it holds.")
    click.echo(f"Forgot {gone} {'entry' if gone == 1 else 'entries'}.")


@memory.command("export")
@click.argument("file", type=click.File("wb", lazy=True), default="-")
def export(file: BinaryIO) -> None:
    """Write every entry as a line of JSON to FILE (default: standard output)."""

    async def written(books: Books) -> int:
        count = 0
        async for line in books.exported():
            file.write(line + b"\n")
            count += 1
        return count

    count = with_books(load_config(), written)
    file.flush()
    click.echo(f"{count} entries exported", err=True)


@memory.command("import")
@click.argument("file", type=click.File("rb"))
def import_(file: BinaryIO) -> None:
    """Read entries from FILE (JSON lines, as exported). Known entries are left as they are."""
    added, known = with_books(load_config(), lambda books: books.imported(file))
    click.echo(f"{added} entries added, {known} known already")


@memory.command("feedback")
@click.argument("rule")
@click.argument("verdict", type=click.Choice(["bad"]))
@click.argument("why")
def feedback(rule: str, verdict: str, why: str) -> None:
    """Say that RULE (an entry's ID) is wrong, and WHY. artoo adds an entry against it, and does not change the old
    one."""
    from artoo.runtime.app.system import SystemClock, UuidIds

    new_id, now = UuidIds().new(), SystemClock().now()
    written = with_books(load_config(), lambda books: books.oppose(rule, why, new_id=new_id, at=now))
    click.echo(f"Noted against {rule}: {written.space} {written.entity}, f = {written.f:g}, σ = {written.sigma:+g}")


@memory.command("verify")
@click.option("--check", is_flag=True, help="Only check, without repairs; exit code 1 if something is wrong.")
@as_json_option
@click.pass_context
def verify(context: click.Context, check: bool, as_json: bool) -> None:
    """Check all sums and indexes against the records, and repair the differences."""
    from artoo.cli.views import memory_view

    async def verified(books: Books) -> tuple[Findings, Findings]:
        found = await books.examine()
        if found.sound or check:
            return found, found
        await books.repair()
        return found, await books.examine()

    found, after = with_books(load_config(), verified)
    report(
        {**asdict(found), "sound": after.sound},
        memory_view.finding_lines(found, after, checked_only=check),
        as_json=as_json,
    )
    if not after.sound:
        context.exit(FAILED)


@memory.command("proposals")
@as_json_option
def proposals(as_json: bool) -> None:
    """Show the sentences that the Dreamer proposes for every prompt. Only you can accept it."""
    found = with_books(load_config(), lambda books: books.open_proposals())
    lines = [f"{proposal.id}  {one_line(proposal.text)}" for proposal in found]
    report(found, lines or ["No open proposals."], as_json=as_json)


@memory.command("accept")
@click.argument("proposal_id")
def accept(proposal_id: str) -> None:
    """Accept a proposal. Its text becomes part of every prompt."""
    from artoo.runtime.memory.books import settle_proposal

    config = load_config()
    file = with_books(config, lambda books: settle_proposal(books, config.home, proposal_id, accept=True))
    click.echo(f"Accepted: {file}")


@memory.command("refuse")
@click.argument("proposal_id")
def refuse(proposal_id: str) -> None:
    """Refuse a proposal; it will not be made again."""
    from artoo.runtime.memory.books import settle_proposal

    config = load_config()
    with_books(config, lambda books: settle_proposal(books, config.home, proposal_id, accept=False))
    click.echo("Refused.")
