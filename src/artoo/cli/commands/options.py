"""The options that several commands share, such as `--json` and `-h`, and the limit of standard input."""

from __future__ import annotations

import os
import sys

import click

HELP: dict[str, object] = {"help_option_names": ["-h", "--help"]}
"""Settings of every command, with which both `-h` and `--help` show its help."""

as_json_option = click.option("--json", "as_json", is_flag=True, help="Print JSON, for programs.")


class Directory(click.Path):
    """A directory as the value of an option. An empty value is refused, because it usually comes from a variable
    that is not set."""

    def convert(
        self, value: str | os.PathLike[str], param: click.Parameter | None, ctx: click.Context | None
    ) -> str | bytes | os.PathLike[str]:
        if not os.fspath(value):
            self.fail("it is empty; name a directory, or leave the option out", param, ctx)
        return super().convert(value, param, ctx)


LONGEST_INPUT = 256 * 1024
"""Maximum number of bytes that are read from standard input."""


def text_of(words: tuple[str, ...]) -> str:
    """Return the words of the command line as one text. If they are a single `-`, return the text on standard
    input."""
    if words != ("-",):
        # Bytes of an argument that cannot be decoded arrive as surrogates. Messages cannot contain surrogates, so
        # they are escaped.
        return " ".join(words).encode("utf-8", "surrogateescape").decode("utf-8", "backslashreplace")
    raw = sys.stdin.buffer.read(LONGEST_INPUT + 1)
    if len(raw) > LONGEST_INPUT:
        raise click.UsageError(f"standard input is longer than {LONGEST_INPUT:,} bytes; name a file instead")
    try:
        return raw.decode("utf-8")
    except UnicodeDecodeError as error:
        raise click.UsageError("standard input is not UTF-8 text") from error
