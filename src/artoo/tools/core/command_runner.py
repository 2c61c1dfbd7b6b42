"""Run a tool's command, with the default time limit of a command, its locale, and its outcome."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field

from artoo.contracts.changes import Change, Trait
from artoo.contracts.execution import OUTPUT_KEPT, CallStatus
from artoo.ports.sandbox import Captured
from artoo.ports.workspace import Ended, EndStatus
from artoo.sandbox.reading.programs import this_python
from artoo.tools.core.tool import Outcome
from artoo.tools.core.truncate import clip
from artoo.tools.shell.network_header import NOTHING, Wanted

COMMAND_SECONDS = 120.0
"""Default time in seconds that a call waits for its command. If the command has not ended by then, it continues as
a process (SPEC section 3.3)."""

_INCIDENTAL = (Trait.GIT_BOOKKEEPING, Trait.TIMES_ONLY)

_STATUS: Mapping[EndStatus, CallStatus] = {
    "ok": CallStatus.OK,
    "stopped": CallStatus.INTERRUPTED,
    "refused": CallStatus.REFUSED,
}

_REASONS: Mapping[EndStatus, str] = {
    "stopped": "it was stopped before its end",
    "killed": "a signal ended it that artoo did not send",
    "disk_limit": "it was ended because the workspace is full",
    "process_limit": "it was ended because the sandbox has too many processes",
    "memory_limit": "it was ended because the sandbox has no memory left",
    "refused": "the sandbox refused to run it",
}


def as_it_is(outcome: Outcome) -> Outcome:
    """Return an outcome unchanged, for programs whose exit code needs no interpretation."""
    return outcome


@dataclass(frozen=True, slots=True)
class Command:
    """A program that a tool runs in the project root.

    `text` is the command as the model wrote it, for questions and records. `argv[0]` is looked up on the sandbox's
    PATH. The call waits `seconds` for the end, or not at all with `background`. After that the command continues as
    a process. `pty` connects it to a pseudo-terminal, so that it can receive input. `keep`: true to ask the user at
    the task's end whether it shall keep running. `network`: the network access that it requests and the user may
    permit. `judged` interprets the outcome by the conventions of the tool's programs. `by` is the name of the tool
    in questions.
    """

    argv: tuple[str, ...]
    text: str
    seconds: float = COMMAND_SECONDS
    background: bool = False
    pty: bool = False
    keep: bool = False
    env: Mapping[str, str] = field(default_factory=lambda: PLAIN_SETTINGS)
    network: Wanted = NOTHING
    judged: Callable[[Outcome], Outcome] = as_it_is
    by: str = "shell"


def bash(script: str) -> tuple[str, ...]:
    """Return the arguments that run `script` with bash. The script is unchanged, and no shell option is set."""
    # These two options only keep bash from reading the user's start-up files.
    return ("bash", "--noprofile", "--norc", "-c", script)


def python(script: str, interpreter: str = this_python()) -> tuple[str, ...]:
    """Return the arguments that run a Python script. It is isolated from the user's environment, and writes no byte
    code."""
    # The project is the last entry of the module path. As the first entry, a file `json.py` in the project would
    # break every script that imports json.
    return (interpreter, "-I", "-B", "-X", "utf8", "-c", _SHOWING_LINES, script)


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
"""Runs a script so that an error shows the source line that failed, as for a script in a file. With `-c` alone,
Python before 3.13 shows only the number of the line, and a small model cannot count lines to find it."""


def outcome_of(ended: Ended, kept: int = OUTPUT_KEPT, read_on: str = "") -> Outcome:
    """Convert the end of a command to an outcome. Its output is truncated to the limits of a record."""
    reason = "; ".join(filter(None, (_REASONS.get(ended.status), *ended.notes))) or None
    return printed_outcome(
        (ended.stdout, ended.stderr),
        status=_STATUS.get(ended.status, CallStatus.ERROR),
        exit_code=ended.exit_code,
        reason=reason,
        kept=kept,
        read_on=read_on,
    )


def printed_outcome(
    printed: tuple[Captured, Captured],
    *,
    status: CallStatus,
    exit_code: int | None = None,
    reason: str | None = None,
    kept: int = OUTPUT_KEPT,
    read_on: str = "",
) -> Outcome:
    """Return an outcome with at most `kept` characters of a command's output, and half as many of its errors."""
    output, output_cut = clip(printed[0], kept, read_on)
    error_output, error_cut = clip(printed[1], kept // 2, read_on)
    return Outcome(
        output=output,
        error_output=error_output,
        status=status,
        exit_code=exit_code,
        total_bytes=sum(one.total_bytes for one in printed),
        truncated=output_cut or error_cut,
        reason=reason,
    )


PLAIN_SETTINGS: Mapping[str, str] = {
    "LC_ALL": "en_US.UTF-8" if sys.platform == "darwin" else "C.UTF-8",
    "PYTHONDONTWRITEBYTECODE": "1",
}
"""Environment variables with which programs print English and sort as Python does in every locale. Rules read their
output, so it must not depend on the user's locale. One variable also keeps Python from writing byte code into the
user's folders."""


def meant_changes(changes: Iterable[Change]) -> tuple[str, ...]:
    """Return the paths of the changes that were probably intended. Caches, git's own files and changes of times
    alone are left out."""
    return tuple(change.path for change in changes if not any(change.has(trait) for trait in _INCIDENTAL))
