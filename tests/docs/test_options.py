"""Every option of every command stands in a page of docs/ that names the command: whole, and as code."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import suppress
from functools import cache

import click
from test_commands import PAGES, words_of, written

from artoo.cli.main import artoo

_SPAN = re.compile(r"`([^`\n]+)`")
_FLAG = re.compile(r"(?<![\w-])--?[A-Za-z][\w-]*")
EVERYWHERE = frozenset({"--help"})
"""What every command has."""


def commands(command: click.Command, path: tuple[str, ...] = ()) -> Iterator[tuple[tuple[str, ...], click.Command]]:
    """Every command with the words that call it."""
    yield path, command
    if isinstance(command, click.Group):
        context = click.Context(command)
        for name in command.list_commands(context):
            below = command.get_command(context, name)
            if below is not None and not below.hidden:
                yield from commands(below, (*path, name))


def options() -> list[tuple[str, tuple[str, ...]]]:
    """(command, the ways to write one of its options)."""
    return [
        (" ".join(path), tuple(parameter.opts))
        for path, command in commands(artoo)
        for parameter in command.params
        if isinstance(parameter, click.Option) and not parameter.hidden and not EVERYWHERE & {*parameter.opts}
    ]


def in_code(page: str) -> Iterator[str]:
    """Code spans, and the lines of blocks."""
    fenced = False
    for line in page.splitlines():
        if line.startswith("```"):
            fenced = not fenced
        elif fenced or line.startswith("    "):
            yield line
        else:
            yield from _SPAN.findall(line)


@cache
def said() -> dict[str, set[str]]:
    """For each command the flags in code of all pages that name it."""
    found: dict[str, set[str]] = {}
    for page in PAGES:
        text = page.read_text(encoding="utf-8")
        flags = {flag for code in in_code(text) for flag in _FLAG.findall(code)}
        for line in written(text):
            with suppress(ValueError):  # a synopsis whose quotes are open
                words = words_of(line)
                for end in range(len(words) + 1):
                    found.setdefault(" ".join(words[:end]), set()).update(flags)
    return found


def test_every_option_is_in_a_page_that_names_its_command() -> None:
    """Otherwise no one finds it but by `--help`."""
    missing = [
        f"artoo {command} {flags[-1]}" for command, flags in options() if not said().get(command, set()) & {*flags}
    ]
    assert missing == []
