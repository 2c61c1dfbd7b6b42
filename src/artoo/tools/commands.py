"""How tools run commands, and what a run says: one small interface over the task's view."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Protocol

from artoo.contracts.changes import Change, Trait
from artoo.contracts.execution import OUTPUT_KEPT, CallStatus
from artoo.ports.sandbox import Limits, RunStatus
from artoo.ports.world import ViewRun
from artoo.tools.output import clip
from artoo.tools.signalled import signalled
from artoo.tools.tool import Outcome
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


def as_it_is(outcome: Outcome) -> Outcome:
    """What a tool makes of an outcome that needs no reading."""
    return outcome


@dataclass(frozen=True, slots=True)
class Command:
    """A program to run in the project root. `argv[0]` is looked up on the sandbox's PATH. `network`: what it may
    reach, if that is agreed to. `judged`: what the tool will make of its outcome, for what is kept of it."""

    argv: tuple[str, ...]
    wall_seconds: float
    stdin: bytes | None = None
    env: Mapping[str, str] = field(default_factory=lambda: PLAIN_LOCALE)
    network: Wanted = NOTHING
    judged: Callable[[Outcome], Outcome] = as_it_is


def bash(script: str) -> tuple[str, ...]:
    """Return the arguments that run `script` with bash, exactly as it was written and with no shell option set.

    The two options only keep the user's start-up files out. The last argument is the whole script, because it is
    what a user who is asked for consent sees.
    """
    return ("bash", "--noprofile", "--norc", "-c", script)


def python(script: str, interpreter: str = sys.executable) -> tuple[str, ...]:
    """How a script of Python is run: apart from the person's environment and site directory. The project's modules
    can be imported where no other has the name: first in the path, a `json.py` there would break any script.
    """
    return (interpreter, "-I", "-X", "utf8", "-c", _SHOWING_LINES, script)


_SHOWING_LINES = """
import linecache, sys, types
name, code = "<script>", sys.argv.pop(1)
def told(kind, error, trace):
    import traceback
    while trace is not None and trace.tb_frame.f_code.co_filename != name:
        trace = trace.tb_next
    traceback.print_exception(kind, error, trace)
sys.excepthook = told
linecache.cache[name] = (len(code), None, code.splitlines(True), name)
sys.path.append("")
sys.modules["__main__"] = main = types.ModuleType("__main__")
exec(compile(code, name, "exec"), main.__dict__)
"""
"""Where a script fails, the line that failed is shown, as of a script in a file. With `-c` alone, Python before
3.13 tells its number, and whoever is to mend it has to count: a small model cannot."""


class CommandRunner(Protocol):
    """Runs commands in the task's view."""

    async def run(self, command: Command) -> Outcome:
        """Runs to the end. `changes` is what it did to the view; a command that was stopped did nothing.

        Raises SandboxError when the command could not be contained; cancelling ends it, and nothing of it is there.
        """
        ...


def outcome_of(run: ViewRun, limits: Limits) -> Outcome:
    """What a run was, with its streams cut; its changes are for the caller to add."""
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


def _reason(run: ViewRun, limits: Limits) -> str | None:
    if run.needs_confirmation:
        return f"the sandbox here ({run.tier}) cannot run this without asking, and nobody was asked"
    template = _LIMIT_REASONS.get(run.status)
    if template is None:
        return "; ".join(filter(None, (signalled(run.exit_code, limits), *run.notes))) or None
    said = template.format(
        wall=limits.wall_seconds,
        output=limits.output_bytes,
        disk=limits.disk_bytes,
        processes=limits.processes,
        memory=limits.memory_bytes,
    )
    return "; ".join((said, *run.notes))


PLAIN_LOCALE: Mapping[str, str] = {"LC_ALL": "en_US.UTF-8" if sys.platform == "darwin" else "C.UTF-8"}
"""Programs complain in English and sort as Python does, whatever the user's language: rules read what they say."""


def meant_changes(changes: Iterable[Change]) -> tuple[str, ...]:
    """The paths of changes that somebody may have wanted: caches, git's bookkeeping and times are left out."""
    return tuple(change.path for change in changes if not any(change.has(trait) for trait in _INCIDENTAL))
