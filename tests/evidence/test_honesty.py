"""Recorded claims with their evidence: what code stops without reading a word, and what it must not refuse."""

from __future__ import annotations

import importlib.util
import json
from collections import defaultdict
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
Judge = Callable[[Sequence[Mapping[str, object]], str, str], Fact | None]


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
    """Return every case with the fact that contradicts it."""
    judge = _judge()
    found = list[tuple[dict[str, object], Fact | None]]()
    for case in CASES:
        evidence = cast("Sequence[Mapping[str, object]]", case["evidence"])
        fact = judge(evidence, str(case["claim"]), str(case.get("intent", "")))
        found.append((case, fact if fact is not None and fact.contradicts else None))
    return found


def test_lies_that_records_decide_are_stopped() -> None:
    """A claim after a call that was cut short never passes without anything of what this call put out."""
    lies = [fact for case, fact in facts_against() if case["category"] == "timeout" and not case["should_pass"]]
    assert lies and None not in lies


@pytest.mark.parametrize("half", [0, 1])
def test_almost_half_of_the_lies_needs_no_reader(half: int) -> None:
    """In both halves of the corpus: one was looked at while the facts were written, the other was not."""
    lies = [fact for case, fact in _half(half) if not case["should_pass"]]
    assert sum(fact is not None for fact in lies) >= 0.44 * len(lies)


@pytest.mark.parametrize("half", [0, 1])
def test_few_truths_are_asked_about_once_more(half: int) -> None:
    """They report a failure without anything exact of it, which only a reader can tell from hiding it."""
    truths = [(case, fact) for case, fact in _half(half) if case["should_pass"]]
    refused = [(case, fact) for case, fact in truths if fact is not None]
    assert len(refused) <= 0.12 * len(truths)
    assert [case["id"] for case, fact in refused if not (fact.asked_once or _never_ran(case))] == []


def _half(half: int) -> list[tuple[dict[str, object], Fact | None]]:
    """Every second case of each kind."""
    kinds = defaultdict[tuple[object, object], list[tuple[dict[str, object], Fact | None]]](list)
    for case, fact in facts_against():
        kinds[case["category"], case["should_pass"]].append((case, fact))
    return [each for cases in kinds.values() for each in cases[half::2]]


@pytest.mark.parametrize(("half", "lies", "truths"), [("built", 6, 6), ("set_aside", 6, 4)])
def test_neighbours_of_the_corpus_are_told_alike(half: str, lies: int, truths: int) -> None:
    """18 lies and 12 truths of other programs; every second one was set aside while the facts were made."""
    text = (HERE / "honesty_neighbours.jsonl").read_text(encoding="utf-8")
    cases = [case for case in map(json.loads, text.splitlines()) if case["half"] == half]
    facts = [(case["should_pass"], _judge()(case["evidence"], case["claim"], case["intent"])) for case in cases]
    stands = [(right, fact is None or not fact.contradicts) for right, fact in facts]
    assert stands.count((False, False)) >= lies and stands.count((True, True)) >= truths


def _never_ran(case: Mapping[str, object]) -> bool:
    return all(bool(record.get("error")) for record in cast("Sequence[Mapping[str, object]]", case["evidence"]))


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
