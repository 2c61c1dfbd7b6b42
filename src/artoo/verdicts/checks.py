"""Run the checks of criteria, with time limits for regular expressions and reasons for failures.

The set of checks is closed. They only read, and they use no model. Reference: SPEC sections 2 and 3.
"""

from __future__ import annotations

import asyncio
import json
import string
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Never

from artoo.contracts.criteria import (
    Check,
    CommandSucceeds,
    FileExists,
    FileMatches,
    OutputIsJson,
    OutputMatches,
    ToolSucceeded,
)
from artoo.contracts.execution import CallStatus, ToolCall
from artoo.contracts.failure import FailureClass, failure_class, says_absent
from artoo.contracts.findings import Found, Reason
from artoo.contracts.text import listed, without_middle

if TYPE_CHECKING:
    from artoo.ports.evidence import EvidenceSource

# Maximum time for which one regular expression may run.
REGEX_SECONDS = 1.0
# Maximum length of a regular expression that is tried.
REGEX_CHARACTERS = 2_000
# Maximum size of an output that is read as JSON.
JSON_CHARACTERS = 1_000_000
# Exit codes of a shell if a command cannot be run, or if no command of that name is found.
_CANNOT_RUN = (126, 127)
# Characters that continue a path, so that `data.txt` does not name `a.txt`.
_IN_PATHS = frozenset(f"{string.ascii_letters}{string.digits}_-./~+@%=")
# Number of characters of an output that are quoted in the evidence of a verdict.
SHOWN_CHARACTERS = 300
# Number of characters that are quoted of a failed command's output, and of its error output.
_FAILED_CHARACTERS = 600
# Texts for `cannot_fail` that have nothing to do with a task: short and long ones, with one line and several, with
# and without figures, in two scripts.
_PROBES = ("x", "7", "Nothing was done.", "\u6c34", "one\ntwo, three", "one more word " * 1_000)
_PROBE_SECONDS = 0.05


@dataclass(frozen=True, slots=True)
class CheckResult:
    """The result of a check. `identities` are the tool identities that a failing verdict cites. If `decided` is
    False, there is no verdict, because the check itself cannot be used or did not end."""

    passed: bool
    evidence: str | Reason
    failure_class: FailureClass | None = None
    identities: tuple[str, ...] = ()
    decided: bool = True


async def run_check(
    check: Check,
    *,
    output: str,
    tool_calls: Sequence[ToolCall],
    source: EvidenceSource,
    asked: str = "",
    never_made: Sequence[str] = (),
) -> CheckResult:
    """Run one check. A bad regular expression or schema does not raise an exception, but then there is no verdict.

    `asked` describes the work. The command of a check must not do this work itself. `asked` is empty for a check
    that the user gave. `never_made` are files that other checks require and that do not exist."""
    match check:
        case ToolSucceeded():
            return _tool_succeeded(check.tool, tool_calls)
        case OutputMatches():
            return await _matches(check.regex, output)
        case OutputIsJson():
            return await asyncio.to_thread(_is_json, output, check.json_schema)
        case FileExists():
            return await _file_exists(check.path, source)
        case FileMatches():
            return await _file_matches(check.path, check.regex, source)
        case CommandSucceeds():
            return await _command_succeeds(check.command, tool_calls, source, asked, never_made)


def cannot_fail(check: Check) -> bool:
    """Return whether a check passes for every answer, as a check with the expression `.` or `\\S` does.

    The check is tried on unrelated texts, and on the words of its own expression, for which a check such as "no
    TODO in it" fails. A check of a file can always fail, because the file may be missing.
    """
    if not isinstance(check, OutputMatches) or len(check.regex) > REGEX_CHARACTERS:
        return False
    first, *escaped = check.regex.split("\\")
    own = " ".join((first, *(part[1:] for part in escaped))).strip()
    return all(_matches_probe(check.regex, text) for text in filter(None, (*_PROBES, own)))


def _matches_probe(pattern: str, text: str) -> bool:
    import regex

    try:
        return regex.search(pattern, text, regex.MULTILINE, timeout=_PROBE_SECONDS) is not None
    except (regex.error, TimeoutError, RecursionError, MemoryError, OverflowError):
        return False


def _passed(evidence: str) -> CheckResult:
    return CheckResult(passed=True, evidence=evidence)


def _failed(
    found: Found,
    subject: str = "",
    said: str = "",
    *,
    why: FailureClass = FailureClass.LOGICAL,
    identities: tuple[str, ...] = (),
) -> CheckResult:
    return CheckResult(False, Reason(found=found, subject=subject, said=said), why, identities)


def _undecided(found: Found, subject: str, said: str) -> CheckResult:
    why = FailureClass.ENVIRONMENTAL if found is Found.NO_VERDICT else FailureClass.LOGICAL
    return CheckResult(False, Reason(found=found, subject=subject, said=said), why, decided=False)


def _shown(text: str) -> str:
    text = text.strip()
    return text if len(text) <= SHOWN_CHARACTERS else f"{text[:SHOWN_CHARACTERS]}… ({len(text)} characters)"


def _tool_succeeded(tool: str | None, tool_calls: Sequence[ToolCall]) -> CheckResult:
    calls = [call for call in tool_calls if tool is None or call.tool == tool or tool in call.identity]
    if not calls:
        return _failed(Found.NOT_CALLED, tool or "*")
    last = calls[-1]
    if last.status is not CallStatus.OK or last.exit_code not in (None, 0):
        code = "" if last.exit_code is None else f", exit {last.exit_code}"
        ended = f"{last.status}{code}"
        said = _shown(last.line())
        return _failed(Found.CALL_ENDED, ended, said, why=last.failure_class, identities=last.identity)
    if last.dropped:
        said, why = listed(last.dropped), FailureClass.ENVIRONMENTAL
        return _failed(Found.WITHHELD, last.tool, said, why=why, identities=last.identity)
    return _passed(_shown(last.line()))


async def _matches(pattern: str, text: str, where: str = "") -> CheckResult:
    """Search in a thread. The search releases the GIL, so that a slow expression never blocks the event loop."""
    if len(pattern) > REGEX_CHARACTERS:
        return _undecided(Found.BAD_PATTERN, _shown(pattern), f"{len(pattern)} > {REGEX_CHARACTERS}")
    return await asyncio.to_thread(_search, pattern, text, where)


def _search(pattern: str, text: str, where: str) -> CheckResult:
    import regex

    try:
        found = regex.search(pattern, text, regex.MULTILINE, timeout=REGEX_SECONDS, concurrent=True)
    except regex.error as problem:
        return _undecided(Found.BAD_PATTERN, repr(pattern), str(problem))
    except (TimeoutError, RecursionError, MemoryError, OverflowError):
        return _undecided(Found.BAD_PATTERN, repr(pattern), f"> {REGEX_SECONDS:g} s")
    if found is None and where:
        return _failed(Found.NO_MATCH_IN, where, f"{pattern!r}: {_shown(text)}")
    if found is None:
        return _failed(Found.NO_MATCH, repr(pattern), _shown(text))
    return _passed(f"{where or 'the output'} matches {pattern!r}: {_shown(found.group())}")


def _no_constant(name: str) -> Never:
    raise ValueError(f"{name} is no JSON value")


def _is_json(output: str, schema: dict[str, object] | None) -> CheckResult:
    if len(output) > JSON_CHARACTERS:
        return _failed(Found.NOT_JSON, said=f"{len(output)} > {JSON_CHARACTERS} characters")
    try:
        value: object = json.loads(output.strip(), parse_constant=_no_constant)
    except (ValueError, RecursionError) as problem:
        return _failed(Found.NOT_JSON, said=f"{problem}: {_shown(output)}")
    return _passed("the output is JSON") if schema is None else _fits(value, schema)


def misfit(value: object, schema: Mapping[str, object]) -> str | None:
    """Return why a value does not fit a schema, or why this cannot be decided. Return None if it fits."""
    evidence = _fits(value, dict(schema)).evidence
    return evidence.text if isinstance(evidence, Reason) else None


def _fits(value: object, schema: dict[str, object]) -> CheckResult:
    """Validate a value. References to other documents are not followed, and patterns have a time limit."""
    from jsonschema.exceptions import SchemaError, ValidationError
    from referencing.exceptions import Unresolvable

    from artoo.verdicts.json_schema import PatternProblem, validate

    try:
        validate(value, schema)
    except SchemaError as problem:
        return _undecided(Found.BAD_SCHEMA, "", problem.message)
    except (Unresolvable, PatternProblem, RecursionError, OverflowError) as problem:
        return _undecided(Found.BAD_SCHEMA, "", str(problem))
    except ValidationError as problem:
        return _failed(Found.MISFIT, problem.json_path, _shown(problem.message))
    return _passed("the output is JSON and fits its schema")


def names(text: str, path: str) -> bool:
    """Return whether a text names this path or the end of it. If the path is a directory (it ends with a slash),
    the text must write it with a slash, as in `./lib` or `lib/`, because a bare `build` may be any word. If the
    path is relative, the text may write more directories before it."""
    is_directory, path = path.endswith("/"), path.rstrip("/")
    end = "" if path.startswith("/") else f"/{_bare(path)}/"
    name = path.rpartition("/")[2]
    start = text.find(name) if name else -1
    while start >= 0:
        first, last = start, start + len(name)
        while first and _of_path(text[first - 1]):
            first -= 1
        while last < len(text) and _of_path(text[last]):
            last += 1
        said = text[first:last].rstrip(".")
        written = f"/{_bare(said)}/"
        is_it = f"/{path}/".endswith(written) or (end and written.endswith(end))
        if ("/" in said or not is_directory) and is_it:
            return True
        start = text.find(name, last)
    return False


def _of_path(character: str) -> bool:
    return character in _IN_PATHS


def _bare(said: str) -> str:
    return said.removeprefix("./").removeprefix("~").strip("/")


async def _file_exists(path: str, source: EvidenceSource) -> CheckResult:
    view = await source.file(path)
    if view.exists:  # This also holds if its text could not be read.
        return _passed(f"{path} is a directory" if view.is_directory else f"{path} exists ({view.size} bytes)")
    if view.problem is not None:
        return _failed(Found.UNREADABLE, path, view.problem, why=FailureClass.ENVIRONMENTAL)
    return _failed(Found.MISSING, path)


async def _file_matches(path: str, pattern: str, source: EvidenceSource) -> CheckResult:
    view = await source.file(path)
    if view.problem is not None:
        return _failed(Found.UNREADABLE, path, view.problem, why=FailureClass.ENVIRONMENTAL)
    if not view.exists:
        return _failed(Found.MISSING, path)
    if view.is_directory:
        return _failed(Found.IS_DIRECTORY, path)
    if view.text is None:
        return _failed(Found.NO_TEXT, path, str(view.size))
    found = await _matches(pattern, view.text, path)
    if found.passed or "\r\n" not in view.text:
        return found
    return await _matches(pattern, view.text.replace("\r\n", "\n"), path)  # `$` only matches before LF.


async def _command_succeeds(
    command: str, tool_calls: Sequence[ToolCall], source: EvidenceSource, asked: str, never_made: Sequence[str]
) -> CheckResult:
    """Run the command of a check in a fork of the workspace, so that its writes are discarded and a build may be a
    check. A command that itself makes the requested files gives no verdict, because it would pass even if the work
    had not been done."""
    view = await source.command(command)
    made = [path for path in view.written if asked and names(asked, path)]
    if view.exit_code == 0 and made:
        problem = f"it makes {listed(made)} itself, so it does not show that this was done"
        return _undecided(Found.NO_VERDICT, command, problem)
    if view.exit_code == 0:
        return _passed(f"`{command}` ended with 0: {_shown(view.output)}")
    if view.exit_code is None or view.exit_code in _CANNOT_RUN:
        problem = view.problem or _shown(view.output) or "it did not end by itself"
        return _undecided(Found.NO_VERDICT, command, problem)
    # Both texts are shortened in the middle, so that their ends remain.
    printed = (view.output.removesuffix(view.errors), view.errors)
    parts = "\n".join(without_middle(part.strip(), _FAILED_CHARACTERS) for part in printed if part.strip())
    said = f"{view.exit_code}: {parts}"
    absence = _absence(view.output, tool_calls, never_made)
    return _failed(Found.COMMAND_FAILED, command, said, why=failure_class(view.output, absence=absence))


def _absence(output: str, tool_calls: Sequence[ToolCall], never_made: Sequence[str]) -> FailureClass:
    """Return the failure class of a command that misses a file. The failure is environmental if a call met a
    missing file too, and if the command misses no file that the work had to make. Otherwise it is logical, because
    the work forgot the file."""
    lines = [line for line in output.splitlines() if says_absent(line)]
    met = any(call.absences for call in tool_calls) and not lacks(lines, never_made)
    return FailureClass.ENVIRONMENTAL if met else FailureClass.LOGICAL


def lacks(lines: Iterable[str], never_made: Sequence[str]) -> bool:
    """Return whether one of these lines, which are about missing files, names a file that the work had to make."""
    return any(names(line, path) for line in lines for path in never_made)
