"""`artoo review`: findings by severity about a diff or branch, with the prompt, time and size limits.

It is for users and for CI. It can also review changes that are not committed.
"""

from __future__ import annotations

import asyncio
import re
import subprocess
import sys
from dataclasses import asdict, dataclass
from typing import BinaryIO, Literal

import click

from artoo.cli.commands.exit_codes import FAILED
from artoo.cli.commands.options import HELP, as_json_option
from artoo.cli.conversation.confirm import dialogue
from artoo.cli.display import run_task as running
from artoo.cli.display.interrupts import Interrupts
from artoo.cli.display.sanitize import one_line, print_json, show
from artoo.cli.display.side_channel import Aside
from artoo.contracts.errors import ConfigurationError
from artoo.contracts.settling import ApplyMode
from artoo.contracts.solution import Directive
from artoo.runtime.app.run_options import Budgets, RunOptions
from artoo.runtime.config.loader import load_config
from artoo.sandbox.reading.programs import find_program

Severity = Literal["critical", "major", "minor"]
SEVERITIES: tuple[Severity, ...] = ("critical", "major", "minor")
LARGEST = 120_000
"""Maximum number of characters of a diff in the request. A longer diff is shortened, but all names of files in it
are included."""
_SECONDS = 120.0
_BRANCHES = ("origin/HEAD", "origin/main", "origin/master", "main", "master")
_TASK = """\
Review the change below as an experienced engineer. Look for defects: wrong results, missed cases, security, lost
data, broken interfaces, missing tests for new behaviour. Read the files around a change before you judge it. Name
only what you have verified in the code. No praise, and no remarks on style.

Answer with one line for each defect, in this form, and nothing else (severity: critical, major or minor; the line
is that of the new file):
severity path:line what is wrong, and what to do instead
If nothing is wrong, the answer is the one word none."""
_LINE = re.compile(r"[-*\s]*\W*(critical|major|minor)\W+([^\s:`]+):(\d+)`?[\s:,-]+(\S.*)", re.IGNORECASE)
_NONE = re.compile(r"\W*none\W*", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Finding:
    """One defect of a change."""

    path: str
    line: int
    severity: Severity
    text: str


@dataclass(frozen=True, slots=True)
class ChangeReview:
    """The findings about a change, the most severe first."""

    findings: tuple[Finding, ...] = ()


@dataclass(frozen=True, slots=True)
class Change:
    """A diff, and the paths of the files that it changes."""

    text: str
    paths: tuple[str, ...]
    about: str


@click.command(context_settings=HELP)
@click.argument("range_", metavar="[RANGE]", required=False)
@click.option("--diff", "file", type=click.File("rb"), help="Review a diff from a file (- is standard input).")
@click.option("--instructions", default="", help="What else to look for.")
@click.option(
    "--fail-on", type=click.Choice(SEVERITIES), help="Exit with 1 if a finding has this severity or a higher one."
)
@click.option("--budget", multiple=True, metavar="LIMITS", help="As in artoo run.")
@as_json_option
@click.pass_context
def review(
    context: click.Context,
    range_: str | None,
    file: BinaryIO | None,
    instructions: str,
    fail_on: Severity | None,
    budget: tuple[str, ...],
    as_json: bool,
) -> None:
    """Review a change in this git repository, and change nothing.

    RANGE is an argument of git diff (main...HEAD, a commit). Without it, artoo reviews everything since the branch
    left the main branch, with uncommitted changes. Exit codes: 0 reviewed, 1 --fail-on found something or the
    review was not completed, 2 no such range.
    """
    if file is not None and range_ is not None:
        raise click.UsageError("give either a RANGE or --diff")
    data = None if file is None else file.read()
    change = _diff(range_) if data is None else _change(data.decode("utf-8", "replace"), "the diff")
    if not change.text.strip():
        show("Nothing has changed." if not as_json else '{"findings": []}')
        return
    found = asyncio.run(_reviewed(change, instructions, Budgets.parse(budget)))
    if found is None:
        click.echo("artoo: the review did not come to an end; artoo log show tells why", err=True)
        context.exit(FAILED)
    if as_json:
        print_json(asdict(found))
    else:
        show(_told(found, change))
    worst = SEVERITIES.index(fail_on) if fail_on else -1
    context.exit(FAILED if any(SEVERITIES.index(one.severity) <= worst for one in found.findings) else 0)


def _diff(range_: str | None) -> Change:
    """Return the change in a range of commits, or the change since the branch was begun. Raises
    ConfigurationError."""
    if range_ is not None:
        if range_.startswith("-"):
            raise click.UsageError(f"{range_!r} is no range; it is as in main...HEAD")
        return _change(_git("diff", range_, "--"), range_)
    for branch in _BRANCHES:
        base = _git("merge-base", branch, "HEAD", may_fail=True).strip()
        if base:
            return _change(_git("diff", base, "--"), f"everything since {branch}")
    return _change(_git("diff", "HEAD", "--"), "the uncommitted changes")


def _git(verb: str, *arguments: str, may_fail: bool = False) -> str:
    program = find_program("git")
    if program is None:
        raise ConfigurationError("git is not installed; artoo review --diff FILE reads a diff from a file")
    # Git must not start a pager, or programs that the repository's configuration names.
    options = ("--no-pager", "-c", "core.fsmonitor=false", verb)
    plain = ("--no-ext-diff", "--no-textconv", "--no-color") if verb == "diff" else ()
    try:
        ended = subprocess.run(
            (program, *options, *plain, *arguments), capture_output=True, timeout=_SECONDS, check=False
        )
    except subprocess.TimeoutExpired as error:
        raise ConfigurationError(f"git {verb} did not end within {_SECONDS:g} s") from error
    if ended.returncode and not may_fail:
        said = ended.stderr.decode("utf-8", "replace").strip().splitlines()
        raise ConfigurationError(f"git {verb}: {one_line(said[0]) if said else ended.returncode}")
    return "" if ended.returncode else ended.stdout.decode("utf-8", "replace")


def _change(text: str, about: str) -> Change:
    lines = [line for line in text.splitlines() if line[:4] in ("+++ ", "--- ")]
    paths = [line[4:].split("\t")[0].removeprefix("b/" if line[0] == "+" else "a/") for line in lines]
    return Change(text, tuple(dict.fromkeys(one for one in paths if one != "/dev/null")), about)


async def _reviewed(change: Change, instructions: str, budgets: Budgets) -> ChangeReview | None:
    """Run the review as a task that applies nothing. Return None if the task was abandoned, or if its answer does
    not have the requested form."""
    cut = len(change.text) > LARGEST
    more = f"\n[the diff is longer; all files: {', '.join(change.paths)}]" if cut else ""
    also = f"\n\nAlso: {instructions}" if instructions else ""
    request = f"{_TASK}{also}\n\n```diff\n{change.text[:LARGEST]}\n```{more}"
    options = RunOptions(apply=ApplyMode.ASK, memory=False, budgets=budgets)
    config, aside, asking = load_config(), Aside(), dialogue()
    with Interrupts() as interrupts:
        async with running.open_runtime(config, aside, asking) as runtime:
            with interrupts.during(runtime.interrupt):
                result = await runtime.run(request, options=options)
    found = None if result.directive is Directive.ABANDON else findings_in(result.output)
    if found is None:
        return None
    # The paths of the change are known, so a finding about any other path is left out.
    for one in found:
        if one.path not in change.paths:
            sys.stderr.write(f"artoo: left out, {one_line(one.path)} is not in the change: {one_line(one.text)}\n")
    about = (one for one in found if one.path in change.paths)
    return ChangeReview(tuple(sorted(about, key=lambda one: (SEVERITIES.index(one.severity), one.path, one.line))))


def findings_in(answer: str) -> list[Finding] | None:
    """Return the findings in an answer that has the requested form. Return None if it has another form."""
    lines = [line for line in answer.splitlines() if line.strip()]
    found = [
        Finding(
            match[2].removeprefix("./"), int(match[3]), SEVERITIES[SEVERITIES.index(match[1].lower())], match[4]
        )
        for line in lines
        if (match := _LINE.fullmatch(line.rstrip())) is not None
    ]
    return found if found or any(_NONE.fullmatch(line) for line in lines) else None


def _told(found: ChangeReview, change: Change) -> str:
    """Return the review as Markdown."""
    head = f"Review of {one_line(change.about)}: {len(change.paths)} files, {len(found.findings)} findings"
    lines = [head, ""]
    for one in found.findings:
        where = f"{one_line(one.path)}:{one.line}" if one.line else one_line(one.path)
        lines.append(f"- **{one.severity}** `{where}` {one_line(one.text)}")
    return "\n".join(lines).rstrip()
