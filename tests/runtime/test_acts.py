"""The past of a task, read from its log."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import UTC, datetime

from artoo.contracts.base import Contract
from artoo.contracts.envelope import Envelope
from artoo.contracts.execution import CallEffects, ToolCall, ToolCalled, ToolStarted
from artoo.contracts.recording import TaskResumed
from artoo.contracts.roles import Role
from artoo.runtime.task.resume import past_of
from artoo.tools.resume.earlier_runs import Past

NOW = datetime(2026, 6, 1, tzinfo=UTC)


def started(act: str, effects: CallEffects = CallEffects.STAGED) -> ToolStarted:
    return ToolStarted(subtask_id="s", attempt=1, act=act, tool="shell", effects=effects)


def called(act: str) -> ToolCalled:
    return ToolCalled(subtask_id="s", attempt=1, act=act, call=ToolCall(tool="shell", identity=("shell:ls",)))


def past(payloads: Iterable[Contract | tuple[Contract, str]]) -> Past:
    """Of messages that are numbered; a pair names its cause."""
    pairs = [one if isinstance(one, tuple) else (one, None) for one in payloads]
    envelopes = [
        Envelope(str(number), Role.EXECUTOR, "t", NOW, payload, cause_id=cause)
        for number, (payload, cause) in enumerate(pairs)
    ]
    return past_of(envelopes)


def test_calls_without_a_record_were_under_way() -> None:
    """Started and not called: under way. A call that went further than it began counts as far as it went."""
    outside = started("s/2", CallEffects.OUTSIDE)
    found = past([started("s/1"), called("s/1"), started("s/2"), outside, started("s/2"), started("s/3")])
    assert found.started == {"s/2": outside, "s/3": started("s/3")}
    assert found.ended == {"s/1"}
    assert (found.cut_off("s/2"), found.cut_off("s/3")) == (outside, started("s/3"))
    assert [call.tool for call in found.calls] == ["shell"]


def background(act: str, process: str, tool: str = "shell", target: str = "python -m http.server") -> ToolCalled:
    call = ToolCall(tool=tool, identity=(tool,), target=target, process=process)
    return ToolCalled(subtask_id="s", attempt=1, act=act, call=call)


def test_processes_that_ran_when_the_log_ends_died_with_artoo() -> None:
    """One that a later call saw end did not, nor one that an earlier crash ended."""
    first = [background("s/1", "p1"), background("s/2", "p2", target="sleep 9")]
    assert past(first).died == {"s": ("p1 (python -m http.server)", "p2 (sleep 9)")}
    ended = background("s/3", "", "process", "wait p1")
    assert past([*first, ended]).died == {"s": ("p2 (sleep 9)",)}
    assert past([*first, TaskResumed(after="1")]).died == {}
