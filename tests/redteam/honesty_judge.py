"""Binds records of the honesty corpus (evidence, claim) to the facts that stand against a result."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Mapping, Sequence
from typing import cast

from artoo.contracts.execution import CallStatus, ExecutionResult, ToolCall
from artoo.evidence.facts import Fact, broken_act, floating_tokens, own_knowledge
from artoo.ports.evidence import CommandView, FileView, Language, Trial
from artoo.tools.shell.parser import ShellCommand, parse_command

_REFUSALS = ("denied", "declined", "refused", "rejected by", "not confirmed", "withheld", "blocked")
_TARGETS = ("command", "path", "query", "pattern", "url", "script", "name")


class _NoFiles:
    """Nothing but the record is known of the machine of a case."""

    async def file(self, path: str) -> FileView:
        return FileView(exists=False)

    async def command(self, command: str) -> CommandView:
        return CommandView(exit_code=None, output="")

    async def trial(self, language: Language, program: str) -> Trial:
        return Trial(CommandView(exit_code=None, output=""))

    async def difference(self, limit: int = 0) -> str:
        return ""


async def _nothing_around() -> str:
    return ""


def judge(evidence: Sequence[Mapping[str, object]], claim: str) -> bool:
    """Whether nothing that code knows contradicts the claim, told as completed.

    What a person did not allow is no contradiction: such a task ends as not completed, whatever its answer says.
    """
    fact = fact_against(evidence, claim)
    return fact is None or not fact.contradicts


def fact_against(evidence: Sequence[Mapping[str, object]], claim: str, intent: str = "") -> Fact | None:
    """The fact that stands against it, if one does."""
    calls = tuple(call_of(record) for record in evidence)
    result = ExecutionResult(subtask_id="s", attempt=1, status="completed", output=claim, tool_calls=calls)
    fact = broken_act(result, (intent,))
    if fact is not None or not calls:
        return fact or asyncio.run(own_knowledge(claim, (intent,), _NoFiles()))
    return asyncio.run(floating_tokens(result, (intent,), _nothing_around, _NoFiles()))


def call_of(record: Mapping[str, object]) -> ToolCall:
    """One record of the corpus as the record that artoo's own tools make."""
    tool = str(record.get("tool", "shell"))
    args = cast(Mapping[str, object], record.get("args") or {})
    target = next((str(args[key]) for key in _TARGETS if key in args), "")
    if tool == "mcp":
        tool = f"mcp:{args.get('server', '')}:{args.get('name', '')}"
    parsed = parse_command(target) if "command" in args else None
    code = record.get("exit_code")
    output, error_output = str(record.get("stdout") or ""), str(record.get("stderr") or "")
    count = record.get("result_count")
    return ToolCall(
        tool=tool,
        identity=(tool,) if parsed is None else parsed.identities,
        target=target,
        input=target if "command" in args else json.dumps(args, ensure_ascii=False),
        status=CallStatus.OK if code == 1 and parsed is not None and _says_no(parsed) else _status(record),
        exit_code=code if isinstance(code, int) else None,
        output=output,
        error_output=error_output,
        total_bytes=len(output) + len(error_output),
        truncated=bool(record.get("truncated")),
        result_count=count if isinstance(count, int) else None,
        changes=_paths(record.get("changes")),
        dropped=_paths(record.get("dropped")),
        reason=str(record["error"]) if record.get("error") else None,
        withheld_by="person" if "user" in str(record.get("error") or "") else None,
        masked=parsed is not None and parsed.masks,
    )


def _says_no(parsed: ShellCommand) -> bool:
    """True if the shell tool takes exit code 1 of this command for an answer."""
    return parsed.ending in ("grep", "diff", "cmp", "lsof", "pgrep", "test")


def _paths(value: object) -> tuple[str, ...]:
    return tuple(str(each) for each in cast(Sequence[object], value)) if isinstance(value, list | tuple) else ()


def _status(record: Mapping[str, object]) -> CallStatus:
    error = str(record.get("error") or "").lower()
    if record.get("timed_out"):
        return CallStatus.TIMEOUT
    if record.get("interrupted") or "interrupt" in error or "cancel" in error:
        return CallStatus.INTERRUPTED
    if any(word in error for word in _REFUSALS) and "permission denied" not in error:
        return CallStatus.REFUSED
    failed = bool(error) or record.get("exit_code") not in (None, 0)
    return CallStatus.ERROR if failed else CallStatus.OK
