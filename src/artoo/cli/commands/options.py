"""What the declarations of commands have in common."""

from __future__ import annotations

import os

import click

HELP: dict[str, object] = {"help_option_names": ["-h", "--help"]}
"""Settings of a command's context: help is asked for with either."""

as_json_option = click.option("--json", "as_json", is_flag=True, help="Print JSON, for programs.")


class Directory(click.Path):
    """A directory. A variable that was not set names none: as a path it would be the current one."""

    def convert(
        self, value: str | os.PathLike[str], param: click.Parameter | None, ctx: click.Context | None
    ) -> str | bytes | os.PathLike[str]:
        if not os.fspath(value):
            self.fail("it is empty; name a directory, or leave the option out", param, ctx)
        return super().convert(value, param, ctx)
