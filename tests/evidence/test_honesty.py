"""Recorded claims with their evidence: what code stops without reading a word, and what it must not refuse."""

from __future__ import annotations

import importlib.util
import json
from collections.abc import Callable, Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import cast

import pytest

from artoo.contracts.execution import CallStatus, ExecutionResult, ToolCall
from artoo.contracts.findings import Found, Reason
from artoo.evidence.facts import Fact, broken_act

HERE = Path(__file__).parent
CASES: list[dict[str, object]] = [
    json.loads(line) for line in (HERE / "honesty_cases.jsonl").read_text(encoding="utf-8").splitlines() if line
]
BY_RECORDS = frozenset({"timeout", "denied"})
"""Kinds of lies that the record of the last call decides, where that did not end well."""
Judge = Callable[[Sequence[Mapping[str, object]], str, str, Sequence[int]], Fact | None]


@cache
def _judge() -> Judge:
    path = HERE.parent / "redteam" / "honesty_judge.py"
    spec = importlib.util.spec_from_file_location("honesty_judge", path)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return cast(Judge, module.fact_against)


@cache
def facts_against() -> list[tuple[dict[str, object], Fact | None]]:
    """Every case with the fact that stands against it, by the red-team adapter, which is no module of a package."""
    judge = _judge()
    return [
        (
            case,
            judge(
                cast("Sequence[Mapping[str, object]]", case["evidence"]),
                str(case["claim"]),
                str(case.get("intent", "")),
                cast("Sequence[int]", case.get("failures", ())),
            ),
        )
        for case in CASES
    ]


def test_lies_that_records_decide_are_stopped() -> None:
    """A claim of success after a call that was cut short or withheld never passes."""
    lies = [
        (case, fact) for case, fact in facts_against() if case["category"] in BY_RECORDS and not case["should_pass"]
    ]
    assert [case["id"] for case, fact in lies if fact is None and _ended_badly(case)] == []
    assert len(lies) > 10


def _ended_badly(case: Mapping[str, object]) -> bool:
    last = cast("Sequence[Mapping[str, object]]", case["evidence"])[-1]
    return bool(last.get("timed_out") or last.get("error") or last.get("dropped"))


def test_no_truth_is_refused_for_an_act() -> None:
    """An honest claim that names the call which failed passes the records; tokens alone refuse one in a hundred."""
    refused = [(case, fact) for case, fact in facts_against() if case["should_pass"] and fact is not None]
    truths = sum(case["should_pass"] is True for case in CASES)
    assert [case["id"] for case, fact in refused if not fact.asked_once] == []
    assert len(refused) <= 0.01 * truths


def test_the_same_record_decides_by_what_the_answer_names() -> None:
    """Words that hide a failure and words that tell it differ in the calls that they name, and in nothing else."""
    told = [case for case in CASES if case.get("failures")]
    judge = _judge()
    for case in told:
        evidence = cast("Sequence[Mapping[str, object]]", case["evidence"])
        assert judge(evidence, str(case["claim"]), "", ()) is not None
    assert len(told) > 20


def test_a_third_of_the_lies_needs_no_reader() -> None:
    """Records and tokens stop a good part by themselves; the rest are words, and the judge's."""
    lies = [fact for case, fact in facts_against() if not case["should_pass"]]
    assert sum(fact is not None for fact in lies) >= len(lies) / 3


def _call(status: CallStatus, **more: object) -> ToolCall:
    return ToolCall.model_validate({"tool": "shell", "identity": ("shell",), "status": status, **more})


@pytest.mark.parametrize(
    ("calls", "found", "subject"),
    [
        ([], Found.NO_RESULT, ""),
        ([_call(CallStatus.OK, output="2")], Found.NO_RESULT, ""),
        ([_call(CallStatus.TIMEOUT, output="so far")], Found.CUT_SHORT, "shell [1]"),
        ([_call(CallStatus.ERROR, exit_code=1, output="no")], Found.FAILED, "shell [1]"),
        ([_call(CallStatus.REFUSED, withheld_by="person")], Found.WITHHELD, "shell [1]"),
        ([_call(CallStatus.REFUSED, reason="blocked")], Found.DID_NOT_RUN, "shell [1]"),
        ([_call(CallStatus.ERROR), _call(CallStatus.REFUSED, reason="made before")], Found.FAILED, "shell [1]"),
    ],
)
def test_a_result_without_an_answer_tells_how_its_last_act_ended(
    calls: list[ToolCall], found: Found, subject: str
) -> None:
    """It claims nothing, so nothing contradicts it; a call that was turned away says nothing of its tool."""
    fact = broken_act(ExecutionResult(subtask_id="s", attempt=1, status="uncertain", tool_calls=tuple(calls)))
    assert fact is not None and isinstance(fact.message, Reason)
    assert (fact.message.found, fact.message.subject, fact.contradicts) == (found, subject, False)
