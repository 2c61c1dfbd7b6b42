"""`artoo sandbox`: run one command in a workspace with review of its changes, and its time limit."""

from __future__ import annotations

import asyncio
import os
import shlex
import sys
from contextlib import nullcontext
from dataclasses import replace
from pathlib import Path

import click

from artoo.cli.commands.exit_codes import INTERRUPTED, PENDING
from artoo.cli.commands.options import HELP
from artoo.cli.conversation.confirm import dialogue
from artoo.cli.display.colors import Paint, is_plain
from artoo.cli.display.interrupts import Interrupts
from artoo.cli.display.sanitize import printable, show
from artoo.cli.results.redact_output import say
from artoo.cli.results.relative_paths import Here
from artoo.cli.results.result_view import allowing
from artoo.cli.results.settlement_view import SettledLines
from artoo.cli.results.task_names import name_at
from artoo.cli.review.layout import Layout
from artoo.contracts.confirmation import AskedAct, ConfirmationAnswer, ConfirmationRequest, Consent
from artoo.contracts.errors import ConfigurationError, SandboxError, ToolError
from artoo.contracts.execution import CallStatus
from artoo.contracts.settling import ApplyMode, Ending, Settled
from artoo.ports.sandbox import Roots
from artoo.runtime.app.run_options import RunOptions, check_policy_line
from artoo.runtime.approvals.consent import Answers
from artoo.runtime.config.loader import load_config
from artoo.runtime.config.model import Config
from artoo.settings.expanded import expanded
from artoo.tools.core.tool import Outcome
from artoo.tools.shell.network_header import Wanted, wanted, wanted_by
from artoo.words.catalogue import ENGLISH

REFUSED, TIMED_OUT = 1, 124
SECONDS = 24 * 3_600.0


@click.command(
    context_settings={**HELP, "ignore_unknown_options": True},
)
@click.option(
    "--workspace",
    type=click.Path(file_okay=False, path_type=Path),
    help="A further directory in which new files need no approval.",
)
@click.option(
    "--apply",
    type=click.Choice([mode.value for mode in ApplyMode]),
    help="What takes effect without approval, as in artoo run --help.",
)
@click.option("--allow", multiple=True, metavar="LINE", help='Permit an operation beforehand: "edits src/**".')
@click.option(
    "--network", multiple=True, metavar="HOST[:PORT]", help="A host that the command may reach, if you agree."
)
@click.option(
    "--seconds", type=click.FloatRange(0.1, SECONDS), default=600.0, help="Stop the command after this time."
)
@click.argument("command", nargs=-1, required=True, type=click.UNPROCESSED)
@click.pass_context
def sandbox(
    context: click.Context,
    workspace: Path | None,
    apply: str | None,
    allow: tuple[str, ...],
    network: tuple[str, ...],
    seconds: float,
    command: tuple[str, ...],
) -> None:
    """Run COMMAND as a task of its own, in a workspace. Its changes are shown before they take effect.

    One word is a script for bash, whose first line may ask for hosts (# artoo hosts: pypi.org). Several words are a
    program and its arguments. The exit code is that of the command, but instead of 0 it is 4 if changes are pending
    (artoo apply), and 1 if they were discarded. After an interruption (130) or the end of its time (124), all
    changes are pending. artoo undo restores the files.
    """
    for line in allow:
        check_policy_line(line)
    try:
        written = str(wanted_by(command[0])).split() if len(command) == 1 else ()
        asked = wanted((*network, *written))
    except ToolError as error:
        raise click.UsageError(str(error)) from error
    options = RunOptions(workspace=workspace, apply=ApplyMode(apply) if apply is not None else None, allow=allow)
    by_option = len(command) > 1 or (bool(network) and not written)
    context.exit(asyncio.run(_run(command, options, asked, seconds, by_option=by_option)))


async def _run(
    command: tuple[str, ...], options: RunOptions, asked: Wanted, seconds: float, *, by_option: bool
) -> int:
    """Run the command and return its exit code. `by_option`: true if an option of the command line can permit a
    host that was refused."""
    from artoo.ports.workspace import MIB, SandboxLimits
    from artoo.runtime.app.system import UuidIds
    from artoo.runtime.changes.startup_recovery import keeping_of, settle_earlier
    from artoo.sandbox.backends.select import open_backend
    from artoo.tools.approval.gate import Gate
    from artoo.tools.approval.network_consent import Network
    from artoo.tools.approval.policy import Policies
    from artoo.tools.core.command_runner import Command
    from artoo.tools.core.workspace_commands import WorkspaceCommands
    from artoo.tools.provenance.taint import Origins
    from artoo.tools.settlement.settler import Settler
    from artoo.workspace.workspace import workspaces_in

    config = load_config()
    await settle_earlier(config)
    roots, task_id, line = _roots(config, options.workspace), UuidIds().new(), shlex.join(command)
    policies = Policies.parse((*config.allow, *options.allow), roots.project, roots.home)
    roots = replace(roots, opened=policies.opened())
    limits = SandboxLimits(disk_bytes=config.limits.view_megabytes * MIB)
    workspace = workspaces_in(await open_backend(config.home), config.home, limits=limits)(task_id, roots)
    asking, mode = dialogue(), options.mode(config.apply)
    told = _Told(Answers(policies, asking, mode, roots=roots), talks=asking is not None)
    used = Network(by_option=by_option)
    runner = WorkspaceCommands(workspace, Gate(told, Origins(line), advice=""), used)
    # The start-up files of the user's shell are not read, because they could change the result.
    argv = ("bash", "--noprofile", "--norc", "-c", command[0]) if len(command) == 1 else command
    settler = Settler(
        workspace, config.home, f"artoo sandbox -- {line}", mode, keeping_of(config), used.went_out, logged=False
    )
    with Interrupts() as interrupts:
        wanted_command = Command(argv, argv[-1], seconds=seconds, env={}, network=asked)
        running = asyncio.ensure_future(runner.run(wanted_command))
        try:
            with interrupts.during(running.cancel):
                outcome = await running
        except asyncio.CancelledError:
            cut = await settler.settle(Ending(task_id=task_id, directive="abandon"), None)
            _tell(cut, name_at(config.home, task_id))
            return INTERRUPTED
        except SandboxError:
            await settler.settle(Ending(task_id=task_id, directive="abandon"), None)
            raise
        # Background processes are ended, because they could write while the changes are read.
        await workspace.stop_processes()
        ended = outcome.status is not CallStatus.RUNNING
        if not ended:
            outcome = replace(outcome, reason=f"it was stopped, because it had not ended after {seconds:g} s")
        _say(outcome)
        for option in allowing(told.not_allowed):
            click.echo(ENGLISH("To allow it: {line}", line=option), err=True)
        # If the user presses Ctrl-C at the question, the changes are kept for later.
        with nullcontext() if asking is None else interrupts.during(asking.refuse):
            # If the command did not end by itself, its changes are never applied without approval.
            directive = "accept" if ended else "abandon"
            settled = await settler.settle(Ending(task_id=task_id, directive=directive), told)
    _tell(settled, name_at(config.home, task_id))
    return _code(outcome, settled)


class _Told:
    """Prints each question that is answered without asking the user, so that the user sees the refusal."""

    def __init__(self, answers: Answers, *, talks: bool) -> None:
        self._answers = answers
        self._talks = talks
        self.not_allowed: list[AskedAct] = []

    async def ask(self, request: ConfirmationRequest) -> ConfirmationAnswer:
        answer = await self._answers.answer(request)
        if request.review is None and not answer.consent.is_yes:
            self.not_allowed += request.acts
        if answer.by.startswith("policy") or (not self._talks and not answer.consent.is_yes):
            lines = [f"? {request.title}", *(f"  {line}" for line in request.details)]
            if request.review is not None:
                lines = Layout(request.review, request.language, Here(), Paint(), 80).whole()
            said = Consent.KEEP if request.review is not None and answer.consent is Consent.NO else answer.consent
            for line in (*lines, f"{said.value} ({answer.by})"):
                click.echo(line, err=True)
        return answer


def _roots(config: Config, workspace: Path | None) -> Roots:
    place = expanded(workspace).absolute() if workspace else config.workspace_path
    try:
        place.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise ConfigurationError(f"the workspace {place} cannot be made: {error.strerror}") from error
    return Roots(home=Path.home().resolve(), workspace=place.resolve(), project=Path.cwd().resolve())


def _say(outcome: Outcome) -> None:
    """Print the output of the command. If it was refused or stopped, also print the reason."""
    sys.stdout.flush()
    if outcome.output:
        show(outcome.output.removesuffix("\n"))
    if outcome.error_output:
        said = outcome.error_output.removesuffix("\n")
        click.echo(printable(said) if sys.stderr.isatty() else said, err=True)
    if outcome.reason:
        say(outcome.reason)


def _tell(settled: Settled, name: str) -> None:
    """Print the state of the command's changes, and the commands with which the user can apply or undo them."""
    paint = Paint(colours=not is_plain(sys.stderr, os.environ))
    for line in SettledLines(settled, ENGLISH, name, Here(), paint).lines():
        click.echo(line, err=True)


def _code(outcome: Outcome, settled: Settled) -> int:
    # This status means that the command was stopped when its time was over.
    if outcome.status is CallStatus.RUNNING:
        return TIMED_OUT
    if outcome.dropped or outcome.exit_code is None:
        return outcome.exit_code or REFUSED
    if outcome.exit_code == 0 and settled.waits:
        return PENDING
    return outcome.exit_code or (REFUSED if settled.state == "discarded" else 0)
