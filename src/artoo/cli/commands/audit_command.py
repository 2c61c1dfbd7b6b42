"""`artoo audit report|verify|laws`: show the Auditor's report, check logs for changes, and list the Four Laws."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import click

from artoo.cli.commands.exit_codes import FAILED
from artoo.cli.commands.options import HELP, as_json_option
from artoo.cli.display.screen import report as print_report
from artoo.cli.results.home import current_home, current_store

if TYPE_CHECKING:
    from artoo.auditor.chain import Head

_HEAD = re.compile(r"(\d{1,18}):([0-9a-f]{64})")


@click.group(invoke_without_command=True, context_settings=HELP)
@click.pass_context
def audit(context: click.Context) -> None:
    """Show the report of the Auditor, and verify its records and the task logs. Without a command: the report."""
    if context.invoked_subcommand is None:
        context.invoke(report, earlier=0, as_json=False)


@audit.command("report")
@click.option("--earlier", default=0, type=click.IntRange(min=0), help="Show this many stored reports instead.")
@as_json_option
def report(earlier: int, as_json: bool) -> None:
    """Show the report since the previous report, and start a new period."""
    from artoo.auditor.reading import earlier_reports, report_now
    from artoo.cli.views.audit_view import report_lines
    from artoo.runtime.app.system import SystemClock

    home = current_home()
    if earlier:
        found = earlier_reports(home, earlier)
    else:
        now = report_now(home, SystemClock().now())
        found = [now] if now is not None else []
    lines = ["\n\n".join("\n".join(report_lines(each)) for each in found)]
    nothing = [f"Nothing has been audited yet in {home}."]
    print_report(found if earlier else next(iter(found), None), lines if found else nothing, as_json=as_json)


def _head(context: click.Context, option: click.Parameter, value: str | None) -> Head | None:
    from artoo.auditor.chain import Head

    match = _HEAD.fullmatch(value) if value is not None else None
    if value is not None and match is None:
        raise click.BadParameter("write COUNT:HASH as `artoo audit verify` printed it", context, option)
    return Head(int(match[1]), match[2]) if match is not None else None


@audit.command("verify")
@click.option(
    "--decisions",
    "task",
    metavar="TASK",
    help="Also recompute every decision of this task (its id, or the beginning of it).",
)
@click.option(
    "--head",
    "noted",
    metavar="COUNT:HASH",
    callback=_head,
    help="A head that an earlier verify printed, and that must still be in the log.",
)
@as_json_option
@click.pass_context
def verify(context: click.Context, task: str | None, noted: Head | None, as_json: bool) -> None:
    """Check the audit log and the task logs for changes. Exit code 1 if there are any, with file and line of each.

    With --decisions, also run the task again from its log, without a model and tools, and check every invariant.
    """
    import asyncio

    from artoo.auditor.layout import audit_directory
    from artoo.auditor.verify import verify as verified
    from artoo.cli.commands.log_command import reader_of
    from artoo.cli.views.audit_view import proof_lines, proof_object, verification_lines, verification_object
    from artoo.tasklog.layout import tasks_directory

    home = current_home()
    found = verified(audit_directory(home), tasks_directory(home), noted=noted)
    address = current_store()
    elsewhere: list[str] = []
    # A machine can rewrite its own home, so its anchors are also compared with the copies of them in the store.
    if address is not None:
        from artoo.runtime.cluster.remote_logs import verify_shared

        elsewhere = verify_shared(home, address, found)
    proof = None
    if task is not None:
        from artoo.runtime.replay.replay import prove

        proof = asyncio.run(prove(reader_of(task)))
    decisions = {} if proof is None else {"decisions": proof_object(proof)}
    decided = [] if proof is None else proof_lines(proof)
    plain = {**verification_object(found), "machines": elsewhere, **decisions}
    print_report(plain, [*elsewhere, *verification_lines(found), *decided], as_json=as_json)
    if not found.sound or (proof is not None and not proof.holds):
        context.exit(FAILED)


@audit.command(context_settings=HELP)
@as_json_option
def laws(as_json: bool) -> None:
    """Show the Four Laws and what enforces them. A lower number overrides a higher one."""
    from artoo.prompts.laws import LAWS

    lines = list[str]()
    for law in LAWS:
        places = [f"    - {place}" for place in law.enforced_by]
        lines += [f"Law {law.number}: {law.name}", f"  {law.text}", *places, ""]
    print_report(LAWS, lines, as_json=as_json)
