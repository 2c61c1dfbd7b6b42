"""Does the evidence support the claim? The rules of Law 0, put together."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from artoo.contracts.execution import ToolCall
from artoo.loops.fast.evidence.absence import absent
from artoo.loops.fast.evidence.actions import denied, done
from artoo.loops.fast.evidence.calls import GOOD, views_of
from artoo.loops.fast.evidence.case import Case, contradiction
from artoo.loops.fast.evidence.claims import Clause, Stance, clauses_of
from artoo.loops.fast.evidence.entities import entities
from artoo.loops.fast.evidence.finding import Finding
from artoo.loops.fast.evidence.measured import measured
from artoo.loops.fast.evidence.names import mentions
from artoo.loops.fast.evidence.statements import named, stated

MOST_FINDINGS = 12


@dataclass(frozen=True, slots=True)
class Assessment:
    """Whether a claim may be shown, and every finding against it, contradictions first."""

    supported: bool
    findings: tuple[Finding, ...] = ()


_TEXT_TASK = re.compile(
    r"^\s*(?:please )?(?:explain|define|translate|rephrase|rewrite the following|summari[sz]e"
    r" the following|compose|write (?:me )?(?:a |an )?(?:\w+ )?(?:poem|haiku|story|joke"
    r"|essay|limerick|song|e-?mail draft)|tell me (?:a joke|a story|about)|what (?:is"
    r"|are) (?:a|an|the (?:difference|meaning|capital))\b|what does .+ mean|why |how (?:do"
    r"|does|can|could|should|to)\b|who (?:is|was|wrote)|when (?:did|was)|say )|^\s*(?:请)?(?:解释"
    r"|翻译|什么是|为什么|写一?(?:首|篇|个)(?:诗|故事|笑话)|讲一?个|说说|介绍|如何|怎么)",
    re.I,
)
_FIRST_PERSON = re.compile(r"\b(?:I|we)(?:'ve| have)?\b|我", re.I)
_READING = re.compile(
    r"\b(?:what|which|who|when|where|how many|how much|show|read|print|tell|list|find"
    r"|display|get|cat|look|contents?)\b|多少|什么|哪|几|谁|显示|读|列出|查|看|内容|告诉",
    re.I,
)


def assess(claim: str, tool_calls: Sequence[ToolCall], *, intent: str) -> Assessment:
    """Judges a claim against the calls that were made for it.

    Supported means: nothing in it is contradicted, and everything that rules can see in it is in the evidence.
    `intent` is the request that the claim answers; it is never evidence, but says what kind of answer is due.
    """
    case = Case(claim, views_of(tool_calls), intent)
    found = dict.fromkeys(_unsupported_by_nothing(case) if not case.views else _against(case))
    ordered = sorted(found, key=lambda finding: not finding.contradicts)[:MOST_FINDINGS]
    return Assessment(supported=not ordered, findings=tuple(ordered))


def _unsupported_by_nothing(case: Case) -> Iterator[Finding]:
    """Without a call, nothing about the machine is known and nothing on it was done."""
    text_task = _TEXT_TASK.search(case.intent) is not None
    asked_of_machine = any(clause.machine for clause in clauses_of(case.intent))
    for clause in case.clauses:
        generic_success = clause.stance is Stance.DONE and not clause.effects and len(clause.text) < 60
        about_machine = clause.machine or generic_success or asked_of_machine
        if clause.stance in (Stance.TALK, Stance.FAILED) or not about_machine:
            continue
        if text_task and not (clause.stance is Stance.DONE and _FIRST_PERSON.search(clause.text)):
            continue
        yield Finding("no_tool_call", f"“{clause.text}”, but no tool was called", contradicts=True)


def _against(case: Case) -> Iterator[Finding]:
    if _is_quotation(case):
        yield from _gone(case)
        return
    yield from _yes_for_no(case)
    yield from _gone(case)
    for clause in case.clauses:
        yield from _against_clause(clause, case)


_YES = re.compile(r"\s*(?:yes|yep|yeah|true|是的?|对的?|有的?)(?:[\s,.!，。！]|$)", re.I)


def _yes_for_no(case: Case) -> Iterator[Finding]:
    """A yes, where the last word of the tools was a bare no."""
    if not _YES.match(case.claim):
        return
    said = [view for view in case.views if view.call.output.strip() and view.standing in GOOD]
    if not said or said[-1].call.output.strip().casefold() not in ("no", "false", "n", "否", "没有"):
        return
    if not any(clause.stance in (Stance.ABSENT, Stance.FAILED) for clause in case.clauses):
        yield Finding("yes_for_no", f"“{case.claim[:120]}”, but the answer was no", contradicts=True)


_GONE = re.compile(r"left in the command's private /tmp, which is gone: ([^;\n]+)")
"""How the sandbox says that a file which a command made outlived it no longer."""


def _gone(case: Case) -> Iterator[Finding]:
    """A file that the request or the answer names was made where nothing is kept: it is not there."""
    for view in case.views:
        lost = _GONE.search(view.call.reason or "")
        for path in lost[1].split(", ") if lost else ():
            named = mentions(case.intent, path) or mentions(case.claim, path)
            if named and not any(mentions(kept, path) for other in case.views for kept in other.call.changes):
                yield contradiction("not_kept", f"{path} is gone: commands have a /tmp of their own", [view])


def _against_clause(clause: Clause, case: Case) -> Iterator[Finding]:
    match clause.stance:
        case Stance.TALK:
            return
        case Stance.DONE:
            yield from done(clause, case)
        case Stance.FAILED:
            yield from denied(clause, case)
        case Stance.ABSENT:
            yield from absent(clause, case)
        case Stance.FACT:
            yield from stated(clause, case)
    yield from named(clause, case)
    yield from entities(clause, case)
    yield from measured(clause, case)


def _is_quotation(case: Case) -> bool:
    """Whether the answer is a tool's output as it stands, given to somebody who asked to see it."""
    text = case.claim.strip()
    quoted = any(  # how a call ended is looked at last: that reads all of its output
        view.call.output.strip() == text and not view.invented and view.standing in GOOD for view in case.views
    )
    if not quoted or not text:
        return False
    if _READING.search(case.intent):
        return True
    return all(clause.stance is not Stance.DONE for clause in case.clauses)
