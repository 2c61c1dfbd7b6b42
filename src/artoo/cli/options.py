"""What the declarations of commands have in common."""

from __future__ import annotations

import click

HELP: dict[str, object] = {"help_option_names": ["-h", "--help"]}
"""Settings of a command's context: help is asked for with either."""

as_json_option = click.option("--json", "as_json", is_flag=True, help="Print JSON, for programs.")
