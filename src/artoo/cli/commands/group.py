"""The command group behind `artoo`: loads a command only when it is called, and reads free text as a request."""

from __future__ import annotations

import importlib
from typing import cast

import click

from artoo.cli.commands.registry import COMMANDS, DEFAULT_COMMAND

OWN_OPTIONS = frozenset({"-h", "--help", "--version"})
ALIKE = 0.75
"""How near a word must come to a command's name to be a misspelling of it (difflib ratio)."""
_MOST_WORDS = 2
"""After the first, in what may be a command. A sentence has more."""


class LazyGroup(click.Group):
    """`artoo COMMAND …`, or `artoo any request in plain words`."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        """All names, without loading anything."""
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Loads one command."""
        mounted = COMMANDS.get(cmd_name)
        if mounted is None:
            return None
        command: object = getattr(importlib.import_module(mounted.module), mounted.attribute)
        if not isinstance(command, click.Command):
            raise TypeError(f"{mounted.module}.{mounted.attribute} is not a command")
        return command

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """The list of commands from the table, so that showing it imports none of them."""
        with formatter.section("Commands"):
            formatter.write_dl([(name, mounted.summary) for name, mounted in COMMANDS.items()])

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Puts `run` before anything that is neither a command nor an option of artoo itself."""
        if args and args[0] not in OWN_OPTIONS and args[0] not in COMMANDS:
            self._refuse_what_is_no_request(ctx, args)
            args = [DEFAULT_COMMAND, *args]
        return super().parse_args(ctx, args)

    def _refuse_what_is_no_request(self, ctx: click.Context, args: list[str]) -> None:
        """`artoo --json status` has an option before its command, and `artoo modle`, `artoo doctro --json`,
        `artoo agnet show bob` are mistakes; `artoo modle the world` is a request: what is alone, or goes on with a
        part of that command and at most one word, has a command's form.
        """
        words = self._words(ctx, args)
        if not words:
            return
        word, *more = words
        request = " ".join(("artoo", DEFAULT_COMMAND, *args))
        if word in COMMANDS:
            hint = f"a command's options stand after its name: artoo {word} --help. (For a request: {request})"
            raise click.UsageError(f"{word!r} is a command; {hint}", ctx)
        if len(word.split()) != 1 or len(more) > _MOST_WORDS:
            return
        from difflib import get_close_matches

        near = get_close_matches(word.lower(), COMMANDS, n=1, cutoff=ALIKE)
        if near and (not more or self._is_part_of(ctx, near[0], more[0])):
            raise click.UsageError(
                f"There is no command {word!r}. Did you mean {near[0]!r}? (For a request: {request})", ctx
            )

    def _words(self, ctx: click.Context, args: list[str]) -> list[str]:
        """The words of a request, without its options and their values; none where `--` says that it is one."""
        run = self.get_command(ctx, DEFAULT_COMMAND)
        if run is None or "--" in args:
            return []
        parsed = run.make_context(DEFAULT_COMMAND, list(args), parent=ctx, resilient_parsing=True)
        found: object = parsed.params["text"]
        if isinstance(found, tuple) and found:
            return list(map(str, cast("tuple[object, ...]", found)))
        # An option that a request has not got: it is one of the command that was meant.
        return [] if args[0].startswith("-") else [each for each in args if not each.startswith("-")]

    def _is_part_of(self, ctx: click.Context, name: str, word: str) -> bool:
        """True when `word` is a subcommand of `name`."""
        command = self.get_command(ctx, name)
        return isinstance(command, click.Group) and word in command.list_commands(ctx)
