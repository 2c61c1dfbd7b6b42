"""How tools run commands: one small interface, so that the Law 1 gate replaces read-only running without them.

shell, python ──► CommandRunner ──► ReadOnlyCommands      every change is dropped, and named
                               └──► the gate's runner     changes are shown, confirmed, applied
"""

from __future__ import annotations

import sys
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Protocol

from artoo.contracts.changes import Change, Trait
from artoo.contracts.execution import OUTPUT_KEPT, CallEffects, CallStatus
from artoo.ports.sandbox import Limits, Roots, RunStatus, Sandbox, SandboxRequest, SandboxRun
from artoo.tools.output import clip
from artoo.tools.tool import Outcome
from artoo.tools.under_way import goes_out
from artoo.tools.wanted import NOTHING, Wanted

ERROR_OUTPUT_KEPT = OUTPUT_KEPT // 2
"""Characters of standard error that are kept: it rarely says more, and the prompt pays for it."""

_INCIDENTAL = (Trait.DERIVED, Trait.GIT_BOOKKEEPING, Trait.TIMES_ONLY)

_STATUS: Mapping[RunStatus, CallStatus] = {
    "ok": CallStatus.OK,
    "timeout": CallStatus.TIMEOUT,
    "interrupted": CallStatus.INTERRUPTED,
    "refused": CallStatus.REFUSED,
}

_LIMIT_REASONS: Mapping[RunStatus, str] = {
    "timeout": "it did not end within {wall:g} s and was stopped; what it printed until then is incomplete",
    "interrupted": "it was interrupted",
    "killed": "it was killed from outside",
    "output_limit": "it printed more than {output} bytes and was stopped",
    "disk_limit": "it wrote more than {disk} bytes and was stopped",
    "process_limit": "it started more than {processes} processes and was stopped",
    "memory_limit": "it needed more than {memory} bytes of memory and was stopped",
    "refused": "the sandbox refused to run it",
}


@dataclass(frozen=True, slots=True)
class Command:
    """A program to run in the project root. `argv[0]` is looked up on the sandbox's PATH. `network`: what it may
    reach, if that is agreed to."""

    argv: tuple[str, ...]
    wall_seconds: float
    stdin: bytes | None = None
    env: Mapping[str, str] = field(default_factory=lambda: PLAIN_LOCALE)
    network: Wanted = NOTHING


def bash(script: str) -> tuple[str, ...]:
    """How a script of bash is run: without the person's start-up files, and a failure inside a pipe shows."""
    return ("bash", "--noprofile", "--norc", "-o", "pipefail", "-c", script)


def python(script: str, interpreter: str = "python3") -> tuple[str, ...]:
    """How a script of Python is run: apart from the person's environment and site directory."""
    return (interpreter, "-I", "-X", "utf8", "-c", script)


class CommandRunner(Protocol):
    """Runs commands and settles what they changed."""

    async def run(self, command: Command) -> Outcome:
        """Runs to the end. The outcome says what took effect (`changes`) and what did not (`dropped`, `reason`).

        Raises SandboxError when the command could not be contained; cancelling ends it and drops its changes.
        """
        ...


@dataclass(frozen=True, slots=True)
class ReadOnlyCommands:
    """Runs commands so that nothing of theirs takes effect."""

    sandbox: Sandbox
    roots: Roots
    task_id: str
    limits: Limits = field(default_factory=Limits)

    async def run(self, command: Command) -> Outcome:
        """A command that changed anything but caches ends as `error`: what it did is not done."""
        request = SandboxRequest(
            argv=command.argv,
            cwd=self.roots.project,
            roots=self.roots,
            task_id=self.task_id,
            read_only=True,
            env=command.env,
            stdin=command.stdin,
            limits=replace(self.limits, wall_seconds=command.wall_seconds),
        )
        await goes_out(CallEffects.NONE)
        run = await self.sandbox.run(request)
        async with run.staged:
            return _read_only(outcome_of(run, request.limits), run.staged.changes)


def outcome_of(run: SandboxRun, limits: Limits) -> Outcome:
    """What a run was, with its streams cut; whether its changes took effect is for the caller to add."""
    output, output_cut = clip(run.stdout)
    error_output, error_cut = clip(run.stderr, ERROR_OUTPUT_KEPT)
    status = _STATUS.get(run.status, CallStatus.ERROR)
    if run.needs_confirmation:
        status = CallStatus.REFUSED
    return Outcome(
        output=output,
        error_output=error_output,
        status=status,
        exit_code=run.exit_code,
        total_bytes=run.stdout.total_bytes + run.stderr.total_bytes,
        truncated=output_cut or error_cut,
        reason=_reason(run, limits),
    )


def _reason(run: SandboxRun, limits: Limits) -> str | None:
    if run.needs_confirmation:
        return f"the sandbox here ({run.tier}) cannot run this without asking, and nobody was asked"
    template = _LIMIT_REASONS.get(run.status)
    if template is None:
        return "; ".join(run.notes) or None
    said = template.format(
        wall=limits.wall_seconds,
        output=limits.output_bytes,
        disk=limits.disk_bytes,
        processes=limits.processes,
        memory=limits.memory_bytes,
    )
    return "; ".join((said, *run.notes))


def _read_only(outcome: Outcome, changes: tuple[Change, ...]) -> Outcome:
    """Adds what was dropped. Caches and bookkeeping of git are dropped without a word: nobody asked for them."""
    dropped = meant_changes(changes)
    if dropped:
        reason = f"nothing was changed, commands run read-only here; not done: {_some(dropped)}; " + ADVICE
        status = CallStatus.ERROR if outcome.status is CallStatus.OK else outcome.status
        return replace(outcome, dropped=dropped, reason=_and(reason, outcome.reason), status=status)
    if outcome.status is CallStatus.ERROR and "Read-only file system" in outcome.error_output:
        reason = "nothing was changed, commands run read-only here; " + ADVICE
        return replace(outcome, reason=_and(reason, outcome.reason))
    return outcome


PLAIN_LOCALE: Mapping[str, str] = {"LC_ALL": "en_US.UTF-8" if sys.platform == "darwin" else "C.UTF-8"}
"""Programs complain in English and sort as Python does, whatever the user's language: rules read what they say."""

ADVICE = "to make a new file, print its content and give that to write_file"
"""What to do instead of writing from a command while commands are read-only."""


def meant_changes(changes: tuple[Change, ...]) -> tuple[str, ...]:
    """The paths of changes that somebody may have wanted: caches, git's bookkeeping and times are left out."""
    return tuple(change.path for change in changes if not any(change.has(trait) for trait in _INCIDENTAL))


def _some(paths: tuple[str, ...]) -> str:
    shown = ", ".join(paths[:5])
    return shown if len(paths) <= 5 else f"{shown} and {len(paths) - 5} more"


def _and(first: str, second: str | None) -> str:
    return first if second is None else f"{first}; {second}"
