"""Two independent ways that must agree: the remedy for a program that runs well and computes the wrong thing.

A small model's most dangerous answer is a plausible figure. Its judgement of that figure is no better than the
figure; a second program, written without sight of the first, is. A third decides between two that differ.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from enum import StrEnum
from typing import Literal

from artoo.contracts.criteria import Mode
from artoo.contracts.execution import (
    CallStatus,
    CorrectionSignal,
    CriterionVerdict,
    DecidedBy,
    ExecutionResult,
    FailureClass,
    ToolCall,
)

TWO_WAYS_AGREE = "Two independent ways give the same figure"
"""The criterion that stands open until a second way has been tried."""


class SecondLook(StrEnum):
    """When a computed figure needs a second way: for small models, always, or never."""

    AUTO = "auto"
    ALWAYS = "always"
    NEVER = "never"

    def wanted(self, *, small_model: bool) -> bool:
        """Whether a figure of such a model is looked at twice."""
        return self is SecondLook.ALWAYS or (self is SecondLook.AUTO and small_model)


_NUMBER = re.compile(r"(?<![\w.])-?\d[\d,]*(?:\.\d+)?(?![\w.]*\w)")
_MOST_FIGURES = 12
_ASKS_FOR_FIGURES = re.compile(
    r"\bhow (?:many|much|old|large|big|long)\b"
    r"|\b(?:number|count|sum|total|average|mean|median|percentage|maximum|minimum|largest|smallest|highest|lowest)\b"
    r"|多少|几个|总和|总数|合计|平均|求和|数量|最大|最小|最高|最低",
    re.IGNORECASE,
)
_ASKS_WHICH = re.compile(
    r"\b(?:which|who|whose)\b[^.?!]{0,80}\b(?:most|fewest|least|highest|lowest|largest|smallest|biggest|cheapest"
    r"|longest|shortest|fastest|slowest|oldest|youngest)\b"
    r"|(?:谁|哪)[^。？！]{0,30}最[多少高低大小长短贵]|最[多少高低大小长短贵][^。？！]{0,30}(?:谁|哪)",
    re.IGNORECASE,
)
_WORD = re.compile(r"[A-Za-z0-9_\u3400-\u9fff][\w.:@/-]*")
_MOST_WORDS = 60
_PROGRAMS = ("shell", "python")


def figures_of(text: str) -> frozenset[float]:
    """The numbers of an answer; none when it is a table rather than an answer."""
    found = [match.group().rstrip(",").replace(",", "") for match in _NUMBER.finditer(text)]
    return frozenset(float(each) for each in found) if len(found) <= _MOST_FIGURES else frozenset()


def deserved(intent: str, result: ExecutionResult) -> bool:
    """A figure that was asked for, or the one of many, that a program of the model's own found."""
    last = _producing_call(result.tool_calls)
    if last is None or last.tool not in _PROGRAMS or last.changes:
        return False
    figures = _ASKS_FOR_FIGURES.search(intent) is not None and bool(figures_of(result.output))
    return figures or (_ASKS_WHICH.search(intent) is not None and bool(_words_of(result.output)))


def agree(one: str, other: str, *, by_name: bool = False) -> bool:
    """Whether two answers give the same figures; one may say more around them than the other.

    `by_name`: it was asked which one; then answers without figures agree by their words.
    """
    a, b = figures_of(one), figures_of(other)
    if by_name and not (a and b):
        a, b = _words_of(one), _words_of(other)
    return bool(a and b) and (a <= b or b <= a)


def _words_of(text: str) -> frozenset[str]:
    """Names, addresses and words of an answer; none when it is a table rather than an answer."""
    found = [match.group().rstrip(".:").casefold() for match in _WORD.finditer(text)]
    return frozenset(found) if len(found) <= _MOST_WORDS else frozenset()


def confirmed(
    results: Sequence[ExecutionResult], earlier: Sequence[str], intent: str = ""
) -> ExecutionResult | None:
    """The first result whose answer to `intent` another one, or an earlier round, gives too; or None."""
    by_name = _ASKS_WHICH.search(intent) is not None
    for index, one in enumerate(results):
        others = (*(other.output for other in results[index + 1 :]), *earlier)
        if any(agree(one.output, other, by_name=by_name) for other in others):
            return one
    return None


def open_verdict(answers: Sequence[str]) -> CriterionVerdict:
    """The criterion while no two ways agree. It blames no tool: one of the ways may well have been right."""
    shown = " / ".join(answer.strip()[:80] for answer in answers)
    said = f"different ways gave {shown}" if len(answers) > 1 else f"only one way was tried: {shown}"
    return _verdict("fail", said)


def unrefuted() -> CriterionVerdict:
    """The criterion when a second way could not be carried out: nothing speaks against the figure."""
    return _verdict("pass", "no second way could be carried out; nothing contradicts the first")


def signal(result: ExecutionResult) -> CorrectionSignal:
    """Asks for a second way, without showing the first: a program that was seen is copied."""
    return once_more(
        result,
        TWO_WAYS_AGREE,
        "the figure was computed in one way only",
        "Compute the answer once more in another way, from the files themselves.",
    )


def once_more(result: ExecutionResult, criterion: str, wrong: str, to_do: str) -> CorrectionSignal:
    """Asks for another way by another tool that runs programs."""
    last = _producing_call(result.tool_calls)
    return CorrectionSignal(
        subtask_id=result.subtask_id,
        attempt=result.attempt,
        what_was_wrong=wrong,
        what_to_do=to_do,
        failed_criterion=criterion,
        failure_class=FailureClass.LOGICAL,
        switch_from=last.tool if last is not None else None,
        by_program=True,
    )


def _verdict(verdict: Literal["pass", "fail"], evidence: str) -> CriterionVerdict:
    return verdict_on(TWO_WAYS_AGREE, verdict, evidence)


def verdict_on(criterion: str, verdict: Literal["pass", "fail"], evidence: str) -> CriterionVerdict:
    """A rule's verdict on a criterion that two ways decide: while it is open it blames no tool."""
    return CriterionVerdict(
        criterion=criterion,
        mode=Mode.VERIFIABLE,
        verdict=verdict,
        failure_class=FailureClass.LOGICAL if verdict == "fail" else None,
        evidence=evidence,
        decided_by=DecidedBy.FACT,
        blameless=verdict == "fail",
    )


def _producing_call(calls: Sequence[ToolCall]) -> ToolCall | None:
    return next((call for call in reversed(calls) if call.status is CallStatus.OK), None)
