"""Derive megrams for memory from a task's outcomes and decisions, with the limit on pairs.

Reference: SPEC section 5, "What is written".

    directive              each newly blocked pair, and its tool for this kind of request and in general, with the
                           stimulus of the directive
    accept, success        each pair that a confirmed subtask used, its tool likewise, and the kind of request.
                           Nothing is written if no tool was used or nothing confirmed the result
    abandon                the kind of request, unless the ending teaches nothing (no model, no network,
                           interrupted, something does not exist)
    after break_symmetry   +.75 for the pairs of the round that then matched
    a round of cell 6      the fact that it was one, by kind of request
    any lesson             with the first one: the words of the request, by which its kind is found later
    a named thing          the place where it was found (level K)

These functions are pure; the solver stores and publishes the lessons.
"""

from __future__ import annotations

import posixpath
import re
from collections.abc import Iterable, Sequence

from artoo.contracts.execution import CallStatus, CriterionVerdict, SubTaskOutcome, ToolCall, identities_of
from artoo.contracts.memory import Level, MegramState, MemoryWritten
from artoo.contracts.solution import Directive, PlanDirective
from artoo.contracts.tags import (
    Pair,
    doubt_pair,
    kind_pair,
    macro_pair,
    micro_pair,
    request_pair,
    thing_pair,
    tool_pair,
)
from artoo.control.potentials import KNOWLEDGE, MET, QUANTISATION, SUSPICION, Stimulus, failure_stimulus
from artoo.loops.lesson import Lesson
from artoo.loops.medium.trajectory import WRONG_WAYS

# One decision teaches at most this many pairs with a target, because hundreds of calls would add only noise.
MOST_PAIRS = 32
_TEXT = 200
_TOOLS_TOLD = 6

# A tool identity and its target.
Use = tuple[str, str]


class Lessons:
    """The lessons of one task so far. A pair or a tool that keeps failing is blamed only once in a task."""

    def __init__(self) -> None:
        self._blamed: set[Use] = set()
        self._blamed_tools: set[str] = set()
        self._credited: set[str] = set()

    def directed(self, directive: PlanDirective, kind: str, outcomes: Sequence[SubTaskOutcome]) -> list[Lesson]:
        """Return the lessons of a failed round: its newly blocked pairs, each with the stimulus of the directive.

        If the approach was wrong, calls that failed because of the environment (for example a missing file) teach
        nothing. All rounds of a task count as one experience with a tool, because the rounds work on the same
        request.
        """
        state = MegramState(directive.directive.value)
        wrong = directive.directive in WRONG_WAYS
        failed = [each for each in outcomes if each.status == "failed" and each.infrastructure is None]
        refused = _refused_by_the_world(failed) if wrong else frozenset[Use]()
        uses = [use for use in _blocked(directive, failed) if use not in self._blamed | refused][:MOST_PAIRS]
        self._blamed.update(uses)
        tools = [tool for tool in _tools_of(uses) if wrong and tool not in self._blamed_tools]
        self._blamed_tools.update(tools)
        stimulus = failure_stimulus(state.value)
        reason = "; ".join(each.failure_reason or each.intent for each in failed)
        # Lessons about tools are read in other projects too, so they name unmet criteria and no file content.
        return [
            *_lessons(_places(uses), state, stimulus, f"failed: {reason}"),
            *_lessons(_of_tools(tools, kind), state, stimulus, f"did not meet: {_unmet(failed)}"),
        ]

    def after_break(self, obeyed: Directive, kind: str, outcomes: Sequence[SubTaskOutcome]) -> list[Lesson]:
        """Return the credit for outcomes that newly matched in a round. It is given only if the directive that the
        round `obeyed` was break_symmetry."""
        fresh = [each for each in _matched(outcomes) if each.subtask_id not in self._credited]
        self._credited.update(each.subtask_id for each in fresh)
        if obeyed is not Directive.BREAK_SYMMETRY:
            return []
        state = MegramState.BREAK_SYMMETRY
        told = "matched after everything else had failed"
        return _lessons(_about(_used(fresh), kind), state, QUANTISATION[state.value], told)

    def delivered(
        self,
        state: MegramState,
        kind: str,
        request: str,
        outcomes: Sequence[SubTaskOutcome],
        whole: Iterable[CriterionVerdict] = (),
    ) -> list[Lesson]:
        """Return the lessons of a delivered result: all pairs of confirmed subtasks, and the kind of request.

        `whole` are the verdicts on the result of the whole task. Results that nothing confirmed teach nothing,
        because they may be wrong. Answers without a call teach nothing, because they may be luck.
        """
        confirmed = any(verdict.verdict == "pass" for verdict in whole)
        uses = _used([each for each in _matched(outcomes) if confirmed or each.confirmed])
        if not uses:
            return []
        stimulus = QUANTISATION[state.value]
        micro = _lessons(_about(uses, kind), state, stimulus, f"worked for: {request}")
        told = f"was done with {_told_of(_tools_of(uses))}"
        return [*micro, Lesson(macro_pair(kind), state, stimulus, told)]

    def abandoned(self, kind: str, why: str, outcomes: Sequence[SubTaskOutcome]) -> list[Lesson]:
        """Return the lesson of an abandoned task. Return none if only the network or missing consent caused all
        failures."""
        failed = [each for each in outcomes if each.status == "failed"]
        if failed and all(each.infrastructure is not None or _withheld(each) for each in failed):
            return []
        ran = (call for each in outcomes for call in each.tool_calls if not call.never_ran)
        tried = _told_of(identities_of(ran))
        told = f"was abandoned before ({why})" + (f" after {tried}" if tried else "")
        state = MegramState.ABANDON
        return [Lesson(macro_pair(kind), state, QUANTISATION[state.value], told)]


def met(kind: str, request: str) -> Lesson:
    """Return the lesson that stores the words of a request. Later requests of the same kind are recognised by these
    words."""
    return Lesson(request_pair(kind), MegramState.REQUEST, MET, _short(request), Level.KNOWLEDGE)


def doubted(directive: PlanDirective, kind: str) -> list[Lesson]:
    """Return a lesson about a round of the paper's cell 6 (nearer by a wrong approach), or none if it is no such
    round. The Dreamer looks for repeated lessons of this sort."""
    if not directive.suspicious:
        return []
    told = f"came nearer by a wrong approach: D {directive.loss.D:.2f}, P {directive.loss.P:.2f}"
    return [Lesson(doubt_pair(kind), MegramState.SUSPICION, SUSPICION, told)]


def found_things(names: Iterable[str], outcomes: Sequence[SubTaskOutcome], project: str) -> list[Lesson]:
    """Return lessons about the places where the things named in a request were found, if the request named another
    place. They have level K (local context)."""
    calls = [call for each in _matched(outcomes) for call in each.tool_calls if call.status is CallStatus.OK]
    lessons: list[Lesson] = []
    for name in dict.fromkeys(names):
        place = next((place for call in calls if (place := _place_in(call, name)) is not None), None)
        if place is not None:
            where = place if place.startswith("~") else posixpath.normpath(posixpath.join(project, place))
            told = f"{name} was found at {where}"
            pair = thing_pair(posixpath.basename(name), project if where.startswith(f"{project}/") else "")
            lessons.append(Lesson(pair, MegramState.FOUND, KNOWLEDGE, told, Level.KNOWLEDGE))
    return lessons


def opposing(megram_id: str, state: MegramState, pair: Pair, worth: Stimulus) -> MemoryWritten:
    """Build the message about a megram that memory writes against a rule or against a lesson of a task."""
    return MemoryWritten(
        megram_id=megram_id,
        level=Level.MEGRAM,
        state=state,
        space=pair.space,
        entity=pair.entity,
        f=worth.f,
        sigma=worth.sigma,
        k=worth.k,
    )


def _lessons(pairs: Iterable[Pair], state: MegramState, stimulus: Stimulus, told: str) -> list[Lesson]:
    return [Lesson(pair, state, stimulus, _short(told)) for pair in pairs]


def _about(uses: Sequence[Use], kind: str) -> list[Pair]:
    """Return the pair of each use that has a target, and the pairs of the tools that were used."""
    return [*_places(uses), *_of_tools(_tools_of(uses), kind)]


def _places(uses: Sequence[Use]) -> list[Pair]:
    """Return the (tool, target) pair of each use that has a target."""
    return [micro_pair(identity, target) for identity, target in uses if target]


def _of_tools(tools: Iterable[str], kind: str) -> list[Pair]:
    """Return two pairs for each tool: one for this kind of request, and one for the tool in general."""
    return [pair for tool in tools for pair in (kind_pair(tool, kind), tool_pair(tool))]


def _blocked(directive: PlanDirective, failed: Sequence[SubTaskOutcome]) -> list[Use]:
    """Return the blocked targets that failed in this round, and each blocked tool with the targets on which it was
    used."""
    # Missing consent is no fault of the tool. Otherwise one refusal, or a user who is absent, would forbid the tool
    # permanently.
    calls = [call for each in failed for call in each.tool_calls if call.withheld_by is None]
    bad = [call for call in calls if call.went_wrong and not call.never_ran]
    failing = {(identity, call.target) for call in bad for identity in call.identity}
    uses: list[Use] = [use for use in directive.blocked_targets if use in failing]
    for blocked in directive.blocked_tools:
        # A refused call never ran. If no call failed, the successful ones are blamed, because then the approach was
        # wrong.
        made = [c for c in calls if blocked in c.identity and c.status is not CallStatus.REFUSED]
        uses += [(blocked, call.target) for call in [c for c in made if c in bad] or made]
        tried = blocked in identities_of(call for each in failed for call in each.tool_calls)
        uses += [] if tried else [(blocked, "")]
    return list(dict.fromkeys(uses))


def _refused_by_the_world(failed: Iterable[SubTaskOutcome]) -> frozenset[Use]:
    refused = (call for each in failed for call in each.tool_calls if call.met_the_world)
    return frozenset((identity, call.target) for call in refused for identity in call.identity)


def _unmet(failed: Iterable[SubTaskOutcome]) -> str:
    return "; ".join(
        "; ".join(one.criterion for one in each.criteria_verdicts if one.verdict == "fail") or each.intent
        for each in failed
    )


def _withheld(outcome: SubTaskOutcome) -> bool:
    return any(call.withheld_by is not None for call in outcome.tool_calls)


def _matched(outcomes: Iterable[SubTaskOutcome]) -> list[SubTaskOutcome]:
    return [each for each in outcomes if each.status == "matched"]


def _used(outcomes: Iterable[SubTaskOutcome]) -> list[Use]:
    """Return the (identity, target) pairs of the successful calls. Calls that failed before the subtask matched
    earn no credit."""
    calls = (call for each in outcomes for call in each.tool_calls if call.status is CallStatus.OK)
    uses = dict.fromkeys((identity, call.target) for call in calls for identity in call.identity)
    return list(uses)[:MOST_PAIRS]


def _place_in(call: ToolCall, name: str) -> str | None:
    """Return a longer path that ends with `name`. It is searched in a call's target, and in the results if the call
    was a search."""
    text = f"{call.target}\n{call.output}" if call.result_count else call.target
    base = re.escape(posixpath.basename(name))
    for match in re.finditer(rf"(?<![\w./~-])(?P<path>[~\w./-]*/{base})(?![\w/-]|\.\w)", text):
        path = match["path"]
        if posixpath.normpath(path) != posixpath.normpath(name):
            return path
    return None


def _tools_of(uses: Iterable[Use]) -> list[str]:
    return list(dict.fromkeys(identity for identity, _ in uses))


def _told_of(tools: Iterable[str]) -> str:
    return ", ".join(list(dict.fromkeys(tools))[:_TOOLS_TOLD])


def _short(text: str) -> str:
    return " ".join(text.split())[:_TEXT]
