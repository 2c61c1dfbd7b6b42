"""`artoo doctor`: the order of the checks, the layout and the colours of the findings, and its exit code.

For each problem, a remedy is shown.
"""

from __future__ import annotations

import asyncio
import os
import shutil
import textwrap
from collections.abc import Mapping

import click

from artoo.cli.commands.options import HELP, as_json_option
from artoo.cli.display.sanitize import print_json
from artoo.cli.doctor import checks as diagnosis
from artoo.cli.doctor.checks import Diagnosis, State
from artoo.cli.doctor.models import models
from artoo.cli.doctor.sandbox import sandbox
from artoo.cli.doctor.team import servers, team
from artoo.runtime.app.home import default_home

INDENT = 22
COLOURS = {State.OK: "green", State.WARN: "yellow", State.FAIL: "red"}


@click.command(context_settings=HELP)
@as_json_option
@click.pass_context
def doctor(context: click.Context, as_json: bool) -> None:
    """Check this machine, and say how to fix what does not work. Exit code 1: something must be fixed."""
    findings = asyncio.run(examine(os.environ))
    if as_json:
        print_json(findings)
    else:
        for finding in findings:
            _show(finding)
    context.exit(1 if any(finding.state is State.FAIL for finding in findings) else 0)


async def examine(environ: Mapping[str, str]) -> list[Diagnosis]:
    """Run all checks. Return the findings, the most important first."""
    home = default_home(environ)
    settings, config = diagnosis.configuration(home, environ)
    findings = [diagnosis.system(), diagnosis.home(home), settings, diagnosis.texts()]
    if findings[1].state is not State.FAIL:
        findings += await sandbox(home)
    to_fetch = 0
    if config is not None:
        answering, to_fetch = await models(config, environ)
        findings += [
            *answering,
            diagnosis.workspace(config),
            diagnosis.apply(config),
            *servers(config),
            *await team(config),
        ]
    return [*findings, diagnosis.disk(home, to_fetch), diagnosis.terminal(environ)]


def _show(finding: Diagnosis) -> None:
    state = f"{finding.state.value:<4}"
    shown = state if os.environ.get("NO_COLOR") else click.style(state, fg=COLOURS[finding.state])
    first, *rest = [part for line in finding.detail.splitlines() for part in _wrapped(line)] or [""]
    click.echo(f"{shown}  {finding.name:<15} {first}")
    advice, _, to_type = finding.remedy.partition("\n")
    for line in [*rest, *_wrapped(f"> {advice}" if advice else "")]:
        click.echo(f"{'':<{INDENT}}{line}")
    if to_type:  # not wrapped and not indented, so that the command can be copied
        click.echo(f"\n{to_type}\n")


def _wrapped(text: str) -> list[str]:
    """Wrap a text to the width of the column that follows the names. A word such as a path is never broken."""
    room = max(30, shutil.get_terminal_size().columns - INDENT)
    return textwrap.wrap(text, room, break_long_words=False, break_on_hyphens=False)
