"""The man page, written from the commands themselves: `python -m artoo.cli.man_page > artoo.1`."""

from __future__ import annotations

from collections.abc import Iterator
from importlib.metadata import version

import click

from artoo.cli.commands.exit_codes import MEANINGS
from artoo.cli.main import artoo


def page() -> str:
    """The whole page in roff (man(7)): every command with its options, and the exit codes of a run."""
    return "\n".join(_page()) + "\n"


def _page() -> Iterator[str]:
    context = click.Context(artoo, info_name="artoo")
    yield f'.TH ARTOO 1 "" "artoo {version("artoo")}" "User Commands"'
    yield from (".SH NAME", r"artoo \- does what is asked, checks it, and says what it did")
    yield from (".SH SYNOPSIS", ".B artoo", "[COMMAND | TEXT]...")
    yield from (".SH DESCRIPTION", _text(artoo.help or ""), ".SH COMMANDS")
    for name in artoo.list_commands(context):
        command = artoo.get_command(context, name)
        if command is not None:
            yield from _command(command, click.Context(command, info_name=name, parent=context))
    yield ".SH EXIT STATUS"
    for code, meaning in MEANINGS.items():
        yield from (".TP", f".B {code}", _text(meaning))
    yield from (".SH FILES", ".TP", r".I ~/.artoo", r"configuration, logs, memory; ARTOO_HOME moves it")


def _command(command: click.Command, context: click.Context) -> Iterator[str]:
    yield f".SS {context.command_path} {_text(' '.join(command.collect_usage_pieces(context)))}"
    yield _text(command.help or "")
    for parameter in command.get_params(context):
        record = parameter.get_help_record(context)
        if record is not None and record[1]:
            yield from (".TP", f".B {_text(record[0])}", _text(record[1]))
    if isinstance(command, click.Group):
        for name in command.list_commands(context):
            below = command.get_command(context, name)
            if below is not None:
                yield from _command(below, click.Context(below, info_name=name, parent=context))


def _text(text: str) -> str:
    """Plain text as roff reads it: backslashes and hyphens are written out, no line begins a request."""
    flat = " ".join(text.replace("\b", "").split())
    safe = flat.replace("\\", r"\e").replace("-", r"\-")
    return rf"\&{safe}" if safe.startswith((".", "'")) else safe


if __name__ == "__main__":
    click.echo(page(), nl=False)
