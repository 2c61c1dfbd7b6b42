"""`artoo mail send|list|read`: the operator's letters to agents, and the mailboxes of all agents."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, cast

import click

from artoo.cli.commands.options import HELP, as_json_option, text_of
from artoo.cli.display.sanitize import print_json
from artoo.cli.display.screen import report, show_lines
from artoo.cli.views.team_access import JsonObject, in_office, plain_object, the_one
from artoo.contracts.agents import OPERATOR, Priority
from artoo.runtime.config.loader import load_config
from artoo.words.shown import local_time

if TYPE_CHECKING:
    from artoo.agents.mail.request_reply import MailReply
    from artoo.agents.mail.rows import Kept
    from artoo.contracts.agents import Partition
    from artoo.team.office import Office

MOST_SHOWN = 1_000
"""Maximum number of letters that are shown at once. If there are more, the newest are shown."""
BOXES = ("inbox", "outbox", "archive", "sent")


@click.group(invoke_without_command=True, context_settings=HELP)
@click.pass_context
def mail(context: click.Context) -> None:
    """Read and send letters between you and the agents. Without a command: list your inbox."""
    if context.invoked_subcommand is None:
        context.invoke(list_, name=OPERATOR, box="inbox", limit=20, as_json=False)


@mail.command("send")
@click.argument("recipient")
@click.argument("text", nargs=-1, required=True)
@click.option(
    "--priority",
    type=click.Choice([level.value for level in Priority]),
    default=Priority.STANDARD.value,
    show_default=True,
)
@click.option("--wait", type=click.FloatRange(min=0, max=3_600), help="Wait this many seconds for the answer.")
@as_json_option
@click.pass_context
def send(
    context: click.Context, recipient: str, text: tuple[str, ...], priority: str, wait: float | None, as_json: bool
) -> None:
    """Send TEXT to RECIPIENT. TEXT may be - to read it from standard input.

    The agent answers while artoo serve runs. With --wait the answer is printed; exit code 1: there was no answer.
    """
    from artoo.team.locks import serving

    words = text_of(text)
    if wait is None:
        sent = in_office(
            lambda office: office.mailbox.send(OPERATOR, recipient, words, priority=Priority(priority))
        )
        report(sent, [f"sent to {sent.recipient}: letter {sent.id}"], as_json=as_json)
        return
    reply = in_office(
        lambda office: office.asking.ask(OPERATOR, recipient, words, priority=Priority(priority), seconds=wait),
    )
    _print_reply(reply, recipient, wait, as_json)
    # If no process serves the team, no answer will come, so the user gets this hint.
    if reply.mail is None and not as_json and serving(load_config().home) is None:
        click.echo("artoo: no process serves the team: artoo serve", err=True)
    context.exit(0 if reply.mail is not None else 1)


@mail.command("list")
@click.option("--of", "name", default=OPERATOR, show_default=True, help="The owner of the mailbox.")
@click.option("--box", type=click.Choice(BOXES), default="inbox", show_default=True)
@click.option("-n", "--limit", default=20, show_default=True, type=click.IntRange(1, 10_000))
@as_json_option
def list_(name: str, box: str, limit: int, as_json: bool) -> None:
    """Show the newest letters of a mailbox, oldest first."""
    found = in_office(lambda office: _listed(office, name, box, limit))
    from artoo.cli.views.team_view import short, table_lines

    rows = [
        (short(kept.mail.id), local_time(kept.mail.sent_at), kept.mail.sender, kept.mail.recipient, kept.mail.text)
        for kept in found
    ]
    lines = table_lines(("id", "sent", "from", "to", "text"), rows, f"No letters in the {box} of {name}.")
    report([_kept_object(kept) for kept in found], lines, as_json=as_json)


@mail.command("read")
@click.argument("letter", required=False)
@click.option("--all", "everything", is_flag=True, help="Show all letters of your inbox, and archive them.")
@as_json_option
def read(letter: str | None, everything: bool, as_json: bool) -> None:
    """Show a letter, and archive it if it is in your inbox. LETTER is its id, or the beginning of it."""
    if everything == (letter is not None):
        raise click.UsageError("name one letter, or --all")
    if letter is None:
        from artoo.team.by_hand import put_all_away

        async def work(office: Office) -> tuple[tuple[Kept, ...], int]:
            return await _listed(office, OPERATOR, "inbox", MOST_SHOWN), await put_all_away(office)

        found, gone = in_office(work)
        if as_json:
            print_json({"archived": gone, "letters": [_kept_object(kept) for kept in found]})
            return
        for kept in found:
            _show_letter(kept)
        click.echo(f"{gone} in your archive now: artoo mail list --box archive")
        return
    kept = in_office(lambda office: _read(office, letter))
    if as_json:
        print_json(_kept_object(kept))
    else:
        _show_letter(kept)


def _show_letter(kept: Kept) -> None:
    found = kept.mail
    head = f"{found.sender} to {found.recipient}, {local_time(found.sent_at)}, {found.priority.value}"
    about = [f"in reply to {found.in_reply_to}"] if found.in_reply_to else []
    about += [f"{kept.partition}: {kept.note}"] if kept.note else []
    show_lines([head, *about, "", found.text], prose=True)


async def _listed(office: Office, name: str, box: str, limit: int) -> tuple[Kept, ...]:
    if box == "sent":
        return await office.mailbox.sent(name, limit=limit)
    return await office.mailbox.list(name, cast("Partition", box), limit=limit)


async def _read(office: Office, beginning: str) -> Kept:
    """Read one letter. If the letter is in the operator's inbox, archive it."""
    from artoo.team.by_hand import read_letter

    ids = await office.database.read(
        lambda reading: [str(row["id"]) for row in reading.all("SELECT id FROM mails ORDER BY position")]
    )
    return await read_letter(office, await asyncio.to_thread(the_one, beginning, ids, "mail"))


def _kept_object(kept: Kept) -> JsonObject:
    return {**plain_object(kept.mail), "partition": kept.partition, "note": kept.note, "held": kept.held}


def _print_reply(reply: MailReply, recipient: str, seconds: float, as_json: bool) -> None:
    late = f"no answer from {recipient} within {seconds:g} s; it will come as a letter: artoo mail list"
    answer = reply.text if reply.mail else None
    plain = {"answer": answer, "missed": reply.missed, "cycle": reply.cycle}
    if as_json:
        print_json(plain)
    else:
        show_lines([late if answer is None else answer], prose=True)
