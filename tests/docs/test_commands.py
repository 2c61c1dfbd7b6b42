"""Every command that the documentation names is one: the real parser takes its words and its options."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import click
import pytest

from artoo.cli.commands.group import COMMANDS
from artoo.cli.main import artoo

ROOT = Path(__file__).parents[2]
PAGES = (ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md")))
_IN_BLOCK = re.compile(r"^(?: {4}|\$ | {4}\$ )artoo(?: .*)?$")
_IN_TEXT = re.compile(r"`(artoo [^`\n]*)`")
_EXPLAINED = re.compile(r" {2,}.*$|\s+# .*$")
_LEFT_OUT = re.compile(r"[\[\]]|(?<!\w)…|…(?!\w)|\.\.\.")


MEANT_SO = frozenset({"artoo modle", "artoo count the files"})
"""What `cli.md` shows of words that are no command."""


def each_of(synopsis: str) -> Iterator[str]:
    """`artoo config path|get KEY` is two commands."""
    first, *others = re.split(r"(?<! )\|(?! )", synopsis)
    yield first
    yield from (f"{first.rpartition(' ')[0]} {other}" for other in others)


def written(page: str) -> Iterator[str]:
    """The command lines of a page: in blocks, and in the text."""
    fenced = False
    for line in page.splitlines():
        fenced ^= line.startswith("```")
        if _IN_BLOCK.match(line) or (fenced and re.match(r"artoo(?: |$)", line)):
            command = line.strip().removeprefix("$ ")
            yield from re.split("; (?=artoo)", _EXPLAINED.sub("", command))
        elif not fenced:
            for command in _IN_TEXT.findall(line):
                yield from each_of(command)


def lines() -> list[tuple[str, str]]:
    """(page, command line), each once."""
    pairs = ((page.name, line) for page in PAGES for line in written(page.read_text(encoding="utf-8")))
    return [pair for pair in dict.fromkeys(pairs) if pair[1] not in MEANT_SO]


def words_of(line: str) -> list[str]:
    """The arguments, without what a synopsis adds: brackets around what may be left out, dots for more of it."""
    return [word for word in shlex.split(_LEFT_OUT.sub("", line.replace("…]", "]"))) if word][1:]


def parse(words: list[str]) -> None:
    """Raises UsageError for what the parser does not take; runs nothing."""
    context: click.Context = artoo.make_context("artoo", list(words))
    rest = [*context._protected_args, *context.args]  # pyright: ignore[reportPrivateUsage]  # as Group.invoke does
    command: click.Command = artoo
    while isinstance(command, click.Group) and rest:  # pyright: ignore[reportUnnecessaryIsInstance]
        name, found, rest = command.resolve_command(context, rest)
        assert found is not None and name is not None
        context, command = click.Context(found, info_name=name, parent=context, **found.context_settings), found
        alone = isinstance(found, click.Group) and found.invoke_without_command and rest[:1] != []
        if isinstance(found, click.Group) and not (alone and rest[0].startswith("-")):
            continue
        # The parser alone: a synopsis leaves arguments out, and its files are not here, which is no mistake.
        with suppress(click.BadOptionUsage):  # nor is an option without its value
            found.make_parser(context).parse_args(args=rest)
        rest = []


def test_the_parser_takes_every_command_of_the_pages() -> None:
    """Commands, subcommands and options exist; all other words are quoted requests."""
    wrong = list[str]()
    for page, line in lines():
        words = words_of(line)
        named = bool(words) and words[0].isascii() and not words[0].startswith("-") and not words[0].isupper()
        if named and " " not in words[0] and words[0] not in COMMANDS:  # a Chinese sentence has no space
            wrong.append(f"{page}: {line}: no command {words[0]!r}")
        try:
            parse(words)
        except click.UsageError as error:
            wrong.append(f"{page}: {line}: {error.message}")
    assert wrong == []


def test_the_pages_name_commands() -> None:
    """The patterns above find what is there: blocks and text, of many commands."""
    found = {words[0] for _, line in lines() if (words := words_of(line))}
    assert len(lines()) > 80
    assert found >= {"run", "apply", "agent", "log", "audit", "mcp", "config", "sandbox"}


@pytest.mark.parametrize("words", [["log", "shwo"], ["run", "--jason", "x"], ["apply", "01a2", "--jsno"]])
def test_a_mistake_would_be_found(words: list[str]) -> None:
    """A subcommand or an option that there is not."""
    with pytest.raises(click.UsageError):
        parse(words)
