"""The closed set of checks that code decides, read-only and without a model (SPEC sections 2 and 3)."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Mapping, Sequence
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
from artoo.contracts.execution import CallStatus, FailureClass, ToolCall
from artoo.loops.fast.failure import failure_class, failure_class_of

if TYPE_CHECKING:
    from artoo.ports.evidence import EvidenceSource

REGEX_SECONDS = 1.0
"""Longest time that one regular expression may run."""
REGEX_CHARACTERS = 2_000
"""Longest regular expression that is tried."""
JSON_CHARACTERS = 1_000_000
"""Largest output that is read as JSON."""
SHOWN_CHARACTERS = 300
"""How much of an output a verdict's evidence quotes."""


@dataclass(frozen=True, slots=True)
class CheckResult:
    """What a check found. `identities` are the tool identities that a failing verdict cites."""

    passed: bool
    evidence: str
    failure_class: FailureClass | None = None
    identities: tuple[str, ...] = ()


async def run_check(
    check: Check, *, output: str, tool_calls: Sequence[ToolCall], source: EvidenceSource
) -> CheckResult:
    """Decides one check. Never raises for what it looks at: a bad regex or schema is a failing verdict."""
    match check:
        case ToolSucceeded():
            return _tool_succeeded(check.tool, tool_calls)
        case OutputMatches():
            return await _matches(check.regex, output, "the output")
        case OutputIsJson():
            return await asyncio.to_thread(_is_json, output, check.json_schema)
        case FileExists():
            return await _file_exists(check.path, source)
        case FileMatches():
            return await _file_matches(check.path, check.regex, source)
        case CommandSucceeds():
            return await _command_succeeds(check.command, source)


def _passed(evidence: str) -> CheckResult:
    return CheckResult(passed=True, evidence=evidence)


def _failed(
    evidence: str, why: FailureClass = FailureClass.LOGICAL, identities: tuple[str, ...] = ()
) -> CheckResult:
    return CheckResult(passed=False, evidence=evidence, failure_class=why, identities=identities)


def _shown(text: str) -> str:
    text = text.strip()
    return text if len(text) <= SHOWN_CHARACTERS else f"{text[:SHOWN_CHARACTERS]}… ({len(text)} characters)"


def _tool_succeeded(tool: str | None, tool_calls: Sequence[ToolCall]) -> CheckResult:
    calls = [call for call in tool_calls if tool is None or call.tool == tool or tool in call.identity]
    if not calls:
        return _failed(f"no call of {tool} was made" if tool else "no tool was called")
    last = calls[-1]
    if last.status is not CallStatus.OK or last.exit_code not in (None, 0):
        code = "" if last.exit_code is None else f", exit code {last.exit_code}"
        return _failed(f"{last.status}{code}: {_shown(last.line())}", failure_class_of(last), last.identity)
    if last.dropped:
        withheld = ", ".join(last.dropped)
        return _failed(f"changes were withheld: {withheld}", FailureClass.ENVIRONMENTAL, last.identity)
    return _passed(_shown(last.line()))


async def _matches(pattern: str, text: str, where: str) -> CheckResult:
    """Searches in a thread that releases the interpreter, so that a slow expression never blocks the loop."""
    if len(pattern) > REGEX_CHARACTERS:
        return _failed(f"the regular expression has {len(pattern)} characters; at most {REGEX_CHARACTERS} are run")
    return await asyncio.to_thread(_search, pattern, text, where)


def _search(pattern: str, text: str, where: str) -> CheckResult:
    import regex

    try:
        found = regex.search(pattern, text, timeout=REGEX_SECONDS, concurrent=True)
    except regex.error as problem:
        return _failed(f"the regular expression {pattern!r} cannot be read ({problem}): correct it")
    except (TimeoutError, RecursionError, MemoryError, OverflowError):
        return _failed(f"the regular expression {pattern!r} took longer than {REGEX_SECONDS:g} s: make it simpler")
    if found is None:
        return _failed(f"{where} has no match of {pattern!r}: {_shown(text)}")
    return _passed(f"{where} matches {pattern!r}: {_shown(found.group())}")


def _no_constant(name: str) -> Never:
    raise ValueError(f"{name} is no JSON value")


def _is_json(output: str, schema: dict[str, object] | None) -> CheckResult:
    if len(output) > JSON_CHARACTERS:
        return _failed(f"the output has {len(output)} characters; at most {JSON_CHARACTERS} are read as JSON")
    try:
        value: object = json.loads(output.strip(), parse_constant=_no_constant)
    except (ValueError, RecursionError) as problem:
        return _failed(f"the output is not one JSON value ({problem}): {_shown(output)}")
    return _passed("the output is JSON") if schema is None else _fits(value, schema)


def misfit(value: object, schema: Mapping[str, object]) -> str | None:
    """How a value does not fit a schema, or why that cannot be told; None when it fits."""
    result = _fits(value, dict(schema))
    return None if result.passed else result.evidence


def _fits(value: object, schema: dict[str, object]) -> CheckResult:
    """Validates without following references to other documents and with the time bound for patterns."""
    from jsonschema.exceptions import SchemaError, ValidationError
    from referencing.exceptions import Unresolvable

    from artoo.loops.fast.json_schema import PatternProblem, validate

    try:
        validate(value, schema)
    except SchemaError as problem:
        return _failed(f"the JSON schema itself is wrong ({problem.message}): correct it")
    except (Unresolvable, PatternProblem, RecursionError) as problem:
        return _failed(f"the JSON schema cannot be applied ({problem}): make it simpler")
    except ValidationError as problem:
        return _failed(f"the JSON does not fit its schema at {problem.json_path}: {_shown(problem.message)}")
    return _passed("the output is JSON and fits its schema")


async def _file_exists(path: str, source: EvidenceSource) -> CheckResult:
    view = await source.file(path)
    if view.exists:  # whether its text could be read is another question
        return _passed(f"{path} is a directory" if view.is_directory else f"{path} exists ({view.size} bytes)")
    if view.problem is not None:
        return _failed(f"{path} cannot be looked at: {view.problem}", FailureClass.ENVIRONMENTAL)
    return _failed(f"{path} does not exist")


async def _file_matches(path: str, pattern: str, source: EvidenceSource) -> CheckResult:
    view = await source.file(path)
    if view.problem is not None:
        return _failed(f"{path} cannot be read: {view.problem}", FailureClass.ENVIRONMENTAL)
    if not view.exists:
        return _failed(f"{path} does not exist")
    if view.is_directory:
        return _failed(f"{path} is a directory, not a text file")
    if view.text is None:
        return _failed(f"{path} ({view.size} bytes) is binary or too large to be searched")
    return await _matches(pattern, view.text, path)


async def _command_succeeds(command: str, source: EvidenceSource) -> CheckResult:
    view = await source.command(command)
    if view.exit_code == 0:
        return _passed(f"`{command}` ended with 0: {_shown(view.output)}")
    if view.exit_code is None:
        problem = view.problem or "it did not end by itself"
        return _failed(f"`{command}` gave no verdict: {problem}", FailureClass.ENVIRONMENTAL)
    return _failed(f"`{command}` ended with {view.exit_code}: {_shown(view.output)}", failure_class(view.output))
