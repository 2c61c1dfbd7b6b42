"""`artoo sandbox`: one command under the gate; what it would change is shown and asked about."""

from __future__ import annotations

import asyncio
import shlex
import sys
from pathlib import Path

import click

from artoo.cli.confirm import dialogue
from artoo.cli.printable import show
from artoo.contracts.confirmation import ConfirmationAnswer, ConfirmationRequest, Consent
from artoo.contracts.errors import ConfigurationError, ToolError
from artoo.contracts.execution import CallStatus
from artoo.ports.sandbox import Roots, TaskLedger
from artoo.runtime.answers import Answers
from artoo.runtime.config import Config
from artoo.runtime.config_file import load_config
from artoo.runtime.options import check_policy_line
from artoo.tools.tool import Outcome

REFUSED, TIMED_OUT = 1, 124
SECONDS = 24 * 3_600.0


@click.command(
    context_settings={"help_option_names": ["-h", "--help"], "ignore_unknown_options": True},
)
@click.option(
    "--workspace", type=click.Path(file_okay=False, path_type=Path), help="Where new files are free, besides here."
)
@click.option("--allow", multiple=True, metavar="LINE", help='Permit an act beforehand: "overwrite out/*.csv".')
@click.option("--network", multiple=True, metavar="HOST[:PORT]", help="What the command may reach, if you agree.")
@click.option("--seconds", type=click.FloatRange(0.1, SECONDS), default=600.0, help="Stop it after this time.")
@click.argument("command", nargs=-1, required=True, type=click.UNPROCESSED)
@click.pass_context
def sandbox(
    context: click.Context,
    workspace: Path | None,
    allow: tuple[str, ...],
    network: tuple[str, ...],
    seconds: float,
    command: tuple[str, ...],
) -> None:
    """Run COMMAND against a view of your files, show what it would change, and ask.

    One word is a line for bash; several are a program and its arguments. The exit code is the command's own, or 1
    when its changes were not made. artoo undo puts back what was.
    """
    for line in allow:
        check_policy_line(line)
    context.exit(asyncio.run(_run(command, workspace, allow, network, seconds)))


async def _run(
    command: tuple[str, ...],
    workspace: Path | None,
    allow: tuple[str, ...],
    network: tuple[str, ...],
    seconds: float,
) -> int:
    from artoo.runtime.settling import settle_earlier
    from artoo.runtime.system import UuidIds
    from artoo.tools.commands import Command
    from artoo.tools.gate import Gate
    from artoo.tools.gated import GatedCommands
    from artoo.tools.origins import Origins
    from artoo.tools.policy import Policies
    from artoo.tools.wanted import wanted
    from artoo.world.choose import open_sandbox

    config = load_config()
    await settle_earlier(config)
    roots = _roots(config, workspace)
    task_id = UuidIds().new()
    asking = dialogue()
    answers = Answers(Policies.parse((*config.allow, *allow), roots.project, roots.home), asking)
    gate = Gate(_Told(answers, talks=asking is not None), Origins(shlex.join(command)))
    runner = GatedCommands(await open_sandbox(config.home), roots, task_id, gate, TaskLedger())
    argv = ("bash", "--noprofile", "--norc", "-c", command[0]) if len(command) == 1 else command
    try:
        asked = wanted(network)
    except ToolError as error:
        raise click.UsageError(str(error)) from error
    outcome = await runner.run(Command(argv, seconds, env={}, network=asked))
    return _tell(outcome, task_id)


class _Told:
    """Shows the question also where nobody can be asked: what was not done must be seen."""

    def __init__(self, answers: Answers, *, talks: bool) -> None:
        self._answers = answers
        self._talks = talks

    async def ask(self, request: ConfirmationRequest) -> ConfirmationAnswer:
        answer = await self._answers.answer(request)
        if answer.by.startswith("policy") or (not self._talks and answer.consent is Consent.NO):
            click.echo(f"? {request.title}", err=True)
            for line in request.details:
                click.echo(f"  {line}", err=True)
            click.echo(f"{answer.consent.value} ({answer.by})", err=True)
        return answer


def _roots(config: Config, workspace: Path | None) -> Roots:
    place = workspace.expanduser().absolute() if workspace else config.workspace_path
    try:
        place.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise ConfigurationError(f"the workspace {place} cannot be made: {error.strerror}") from error
    return Roots(home=Path.home().resolve(), workspace=place.resolve(), project=Path.cwd().resolve())


def _tell(outcome: Outcome, task_id: str) -> int:
    """Prints what the command said and what became of its changes. Returns the exit code."""
    sys.stdout.flush()
    if outcome.output:
        show(outcome.output.removesuffix("\n"))
    if outcome.error_output:
        click.echo(outcome.error_output.removesuffix("\n"), err=True)
    for path in outcome.changes:
        click.echo(f"changed: {path}", err=True)
    for path in outcome.dropped:
        click.echo(f"not changed: {path}", err=True)
    if outcome.reason:
        click.echo(f"artoo: {outcome.reason}", err=True)
    if outcome.changes:
        click.echo(f"artoo undo {task_id} puts it back", err=True)
    if outcome.status is CallStatus.TIMEOUT:
        return TIMED_OUT
    if outcome.dropped or outcome.exit_code is None:
        return outcome.exit_code or REFUSED
    return outcome.exit_code
