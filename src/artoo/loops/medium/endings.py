"""Write a task's final result, with met and unmet criteria, attempts, reason to stop, and next moves."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from pydantic import Field

from artoo.contracts.base import Contract
from artoo.contracts.criteria import Assurance
from artoo.contracts.envelope import Envelope
from artoo.contracts.errors import BudgetExhausted, IdentityRefused, ModelError
from artoo.contracts.execution import (
    CallStatus,
    CriterionVerdict,
    DecidedBy,
    SubTaskOutcome,
    ToolCall,
    assurance_of,
    standing_failure,
)
from artoo.contracts.findings import (
    ByJudge,
    ChangedByTwo,
    FailedLast,
    Found,
    HeldWith,
    LeftOpen,
    LeftRunning,
    NotSeen,
    NotThere,
    PartChecked,
    ResultFact,
    StoppedAtEnd,
    Unchanged,
    Unconfirmed,
    Unjudged,
    Unread,
)
from artoo.contracts.plan import SharedPath
from artoo.contracts.settling import Settled
from artoo.contracts.solution import Directive, FinalResult, ReplanRequest, RoleFailure, StoppedBy, UnmetCriterion
from artoo.contracts.text import shortened
from artoo.evidence.facts import rests_on_nothing
from artoo.evidence.shown_files import names_file
from artoo.loops.asking import Asker
from artoo.loops.medium.trajectory import verdicts_of
from artoo.prompts.segments import Segment

# The reasons to stop for which a model is asked for next moves. For the other reasons there are no resources for a
# call, or the reason explains itself.
_EXPLAINED = (StoppedBy.COST, StoppedBy.DIVERGENCE, StoppedBy.REPLANS)

_SURER = (Assurance.CHECKED, Assurance.AGREED)
_OF_A_CHECK = (Found.HELD_BEFORE, Found.NO_VERDICT, Found.BAD_PATTERN, Found.BAD_SCHEMA)
_OF_A_CALL = (Found.FAILED, Found.CUT_SHORT, Found.STILL_RUNNING, Found.SAYS_ONLY, Found.WITHHELD)
# The findings that are shown to the user together with an open criterion.
_BESIDE = (Found.NOWHERE, Found.NOT_LOOKED_UP, Found.WAYS_DIFFER, *_OF_A_CHECK, *_OF_A_CALL)

LAW1_MARK = "[LAW1]"
# Signs at the start of a line in a summary. They mark the reason for the stop, an unmet criterion, and a withheld
# operation, in this order.
_STOPPED, _UNMET, _KEPT_BACK = "\u25a0 ", "\u2717 ", "\u2298 "

_LINE_END, _LEFT_OUT = " \u21b5 ", " \u2026 "
# Number of characters of an input, and of a reason, that are shown to the user.
_INPUT, _REASON = 80, 300
# At most this many entries of a list are shown to the user.
_MOST_TRIED = 8


class FailureReport(Contract):
    """The answer of the model to the question for next moves, which is the only call that an abandoned task may
    make."""

    next_moves: tuple[str, ...] = Field(default=(), max_length=3)


@dataclass(frozen=True, slots=True)
class EndState:
    """The state of a task when it ends. `result` holds the fields that all endings share. `failed` holds the failed
    outcomes of all rounds. `images`: true if the request had images. `whole`: the files that models were shown
    completely.
    """

    result: FinalResult
    request: str
    failed: tuple[SubTaskOutcome, ...] = ()
    images: bool = False
    whole: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Endings:
    """Writes FinalResults. Their content comes from outcomes. A model adds at most suggestions for next moves."""

    asker: Asker
    ask_for_moves: bool = True

    def delivered(self, standing: EndState, end: ReplanRequest, directive: Directive) -> FinalResult:
        """Write the result of a task that delivers an answer: the output, its assurance, and the unmet and open
        criteria."""
        verdicts = verdicts_of(end.outcomes, end.task_verdicts)
        opened = open_criteria(end.outcomes, end.task_verdicts)
        assurance = assurance_of(verdicts)
        looked = not rests_on_nothing(call for one in (*end.outcomes, *standing.failed) for call in one.tool_calls)
        told = (*_BESIDE, Found.OWN_WORDS) if looked else _BESIDE
        beside = {each.criterion: each.reason for each in verdicts if each.reason and each.reason.found in told}
        facts: list[ResultFact] = []
        doubted = any(reason.found is Found.NOWHERE for reason in beside.values())
        sure = (each for each in verdicts if not doubted or assurance_of((each,)) is not Assurance.JUDGED)
        confirmed = tuple(dict.fromkeys(_what_held(each) for each in sure if each.verdict == "pass"))
        if assurance is Assurance.UNVERIFIED:
            files = _named(standing.whole, f"{standing.request}\n{end.merged_output}")
            held = confirmed[:_MOST_TRIED]
            facts.append(Unconfirmed(looked=looked, images=standing.images, files=files, confirmed=held))
        # the fact `Unconfirmed` already says this of the request
        named = (each for each in opened if confirmed or each != standing.request)
        facts += (LeftOpen(criterion=each, found=beside.get(each)) for each in named)
        facts += _without_judge(end)
        facts += (_unread(end),) if assurance is Assurance.CHECKED else ()
        passed = (each for each in verdicts if each.verdict == "pass" and assurance_of((each,)) in _SURER)
        surer = dict.fromkeys(map(_what_held, passed))
        if assurance is Assurance.JUDGED and surer:
            facts.append(PartChecked(criteria=tuple(surer)[:_MOST_TRIED]))
        facts += (*_judges(end), *_failing(end.outcomes), *_about_files(standing, end))
        known = {"assurance": assurance, "open": opened, "facts": tuple(facts)}
        return _result(standing, directive, end, unmet_of(end, standing.failed), known)

    async def abandon(
        self, standing: EndState, request: ReplanRequest, why: StoppedBy, detail: str, cause: Envelope
    ) -> FinalResult:
        """Write the result of an abandoned task, with the unmet criteria and the parts that were done."""
        unmet = unmet_of(request, standing.failed)
        tried = _tried(standing.failed, " ".join(each.reason for each in unmet))
        moves = await self._moves(standing, request, why, cause)
        detail = detail or _why_impossible(request)
        facts = (Unconfirmed(looked=True),) if request.unjudged else ()
        stopped = {"stopped_by": why, "detail": detail, "tried": tried, "next_moves": moves, "facts": facts}
        return _result(standing, Directive.ABANDON, request, unmet, stopped)

    def bare(self, standing: EndState, failure: RoleFailure) -> FinalResult:
        """Write a result that reports only the failure, because writing the ending itself failed."""
        stopped = {"stopped_by": failure.stopped_by, "detail": failure.reason}
        nothing = ReplanRequest(task_id=standing.result.task_id)
        return _result(standing, Directive.ABANDON, nothing, (), stopped)

    async def _moves(
        self, standing: EndState, request: ReplanRequest, why: StoppedBy, cause: Envelope
    ) -> tuple[str, ...]:
        if not self.ask_for_moves or why not in _EXPLAINED:
            return ()
        segments = {
            Segment.TASK: standing.request,
            Segment.EVIDENCE: "\n".join((request.gap_summary, *_tried(standing.failed)))[:2_000],
        }
        try:
            report = await self.asker.ask("FailureReport", FailureReport, segments, cause=cause, max_tokens=200)
        except (ModelError, BudgetExhausted, IdentityRefused):
            # Without a model the result has no next moves. It loses no facts, and the failed call is in the event
            # stream.
            return ()
        return tuple(move.strip() for move in report.next_moves if move.strip())


def unmet_of(request: ReplanRequest, failed: Sequence[SubTaskOutcome] = ()) -> tuple[UnmetCriterion, ...]:
    """Return every unmet criterion once, with its reason and the role that is accountable for it.

    `failed`: failed outcomes of all rounds. All calls of the last round may have been rejected because the same
    calls had failed before. The reason then comes from the round in which they ran, because only that round has the
    tool's own words.
    """
    known = {
        verdict.criterion: verdict
        for outcome in reversed(failed)
        if any(not call.never_ran for call in outcome.tool_calls)
        for verdict in outcome.criteria_verdicts
        if verdict.verdict == "fail"
    }
    turned_away = {
        verdict.criterion
        for outcome in request.outcomes
        if outcome.tool_calls and all(call.never_ran for call in outcome.tool_calls)
        for verdict in outcome.criteria_verdicts
    }
    unmet: dict[str, UnmetCriterion] = {}
    impossible = _impossible(request)
    for verdict in verdicts_of(request.outcomes, request.task_verdicts):
        if verdict.verdict == "fail":
            said = known.get(verdict.criterion, verdict) if verdict.criterion in turned_away else verdict
            unmet.setdefault(
                verdict.criterion,
                UnmetCriterion(
                    criterion=verdict.criterion,
                    reason=shortened(said.evidence, _REASON),
                    found=said.reason,
                    failure_class=verdict.failure_class,
                    accountable=verdict.accountable,
                    impossible=verdict.criterion in impossible,
                ),
            )
    return tuple(unmet.values())


def _impossible(request: ReplanRequest) -> frozenset[str]:
    """Return the criteria that cannot be met. If every failed subtask was impossible, they include the criteria of
    the task."""
    failed = [outcome for outcome in request.outcomes if outcome.status == "failed"]
    hopeless = [outcome for outcome in failed if outcome.hopeless]
    verdicts = [verdict for outcome in hopeless for verdict in outcome.criteria_verdicts]
    if hopeless == failed and failed:
        verdicts += request.task_verdicts
    return frozenset(verdict.criterion for verdict in verdicts)


def _why_impossible(request: ReplanRequest) -> str:
    """Return the reason why a part cannot be done. Return "" if no other part matched, because the reason is then
    the output itself."""
    outcomes = request.outcomes
    if not any(outcome.status == "matched" for outcome in outcomes):
        return ""
    return shortened("; ".join(outcome.output.strip() for outcome in outcomes if outcome.hopeless), _REASON)


def open_criteria(outcomes: Sequence[SubTaskOutcome], task_verdicts: Sequence[CriterionVerdict]) -> tuple[str, ...]:
    """Return the criteria that were not decided, each once."""
    verdicts = verdicts_of(outcomes, task_verdicts)
    return tuple(dict.fromkeys(verdict.criterion for verdict in verdicts if verdict.verdict == "open"))


def changed_by_two(shared: Sequence[SharedPath], outcomes: Sequence[SubTaskOutcome]) -> tuple[ChangedByTwo, ...]:
    """Return the fact that parts which ran at the same time changed the same paths; empty if they did not."""
    if not shared:
        return ()
    intents = {outcome.subtask_id: outcome.intent for outcome in outcomes}
    ids = dict.fromkeys(each for one in shared for each in one.subtasks)
    parts = tuple(shortened(intents[each], _INPUT) for each in ids if each in intents)
    paths = tuple(dict.fromkeys(one.path for one in shared))
    return (ChangedByTwo(paths=paths[:_MOST_TRIED], parts=parts[:_MOST_TRIED]),)


def about_workspace(
    settled: Settled, assurance: Assurance
) -> Iterator[HeldWith | StoppedAtEnd | LeftRunning | NotSeen]:
    """Yield facts about changes that did not take effect although the criteria were confirmed with them, about
    processes that still ran at the end of the task, and about files hidden from commands."""
    if settled.state not in ("none", "applied") and assurance is not Assurance.UNVERIFIED:
        yield HeldWith(changes=settled.state)
    if settled.stopped:
        yield StoppedAtEnd(commands=settled.stopped)
    if settled.running:
        yield LeftRunning(commands=settled.running)
    if settled.unseen:
        yield NotSeen(notes=settled.unseen)


def _without_judge(end: ReplanRequest) -> Iterable[Unjudged]:
    """Return, each once, the facts that a result was not judged because a budget was used up."""
    reasons = (verdict.reason for verdict in verdicts_of(end.outcomes, end.task_verdicts))
    spent = (each for each in reasons if each is not None and each.found is Found.NO_BUDGET)
    return dict.fromkeys(Unjudged(said=each.said, budget=each.subject) for each in spent)


def _unread(end: ReplanRequest) -> Unread:
    """Return the fact that no model and no user has read the answer. Checks have passed, but they test only the
    form of a program's output."""
    outputs = {call.output.strip() for outcome in end.outcomes for call in outcome.tool_calls}
    decided = dict.fromkeys(map(_what_held, verdicts_of(end.outcomes, end.task_verdicts)))
    return Unread(checks=tuple(decided)[:_MOST_TRIED], put_out=end.merged_output.strip() in outputs)


def _named(whole: Sequence[str], text: str) -> tuple[str, ...]:
    """Return the files that models were shown completely and whose path or name occurs in a text."""
    return tuple(path for path in whole if names_file(text, path))[:_MOST_TRIED]


def _what_held(verdict: CriterionVerdict) -> str:
    """Return the check of a verdict, which is more precise than its criterion. Return the criterion if there is no
    check."""
    return verdict.check or verdict.criterion


def _judges(end: ReplanRequest) -> Iterator[ByJudge]:
    """Yield the fact that a model decided a criterion. If that criterion belongs to a subtask, the judge was the
    same model that worked on it. A subtask is judged by the model that worked on it (the same tier)."""
    own = (each for outcome in end.outcomes for each in outcome.criteria_verdicts)
    same = any(each.decided_by is DecidedBy.JUDGEMENT for each in own)
    if same or any(each.decided_by is DecidedBy.JUDGEMENT for each in end.task_verdicts):
        yield ByJudge(same=same)


def _about_files(standing: EndState, end: ReplanRequest) -> Iterator[Unchanged | NotThere]:
    """Yield the facts that no file was changed, and that files which the answer names do not exist or are empty."""
    calls = [call for outcome in (*end.outcomes, *standing.failed) for call in outcome.tool_calls]
    # outputs are not searched, because logs omit secrets from them
    if calls and not any(call.changed_something for call in calls):
        yield Unchanged()
    for empty in (False, True):
        told = (path for one in end.outcomes for path in (one.empty if empty else one.absent))
        if paths := tuple(dict.fromkeys(told))[:_MOST_TRIED]:
            yield NotThere(paths=paths, empty=empty)


def _result(
    standing: EndState,
    directive: Directive,
    end: ReplanRequest,
    unmet: tuple[UnmetCriterion, ...],
    more: Mapping[str, object],
) -> FinalResult:
    """Build the result. `more`: the additional fields of this kind of ending."""
    withheld = _withheld(end.outcomes)
    ended = {
        "directive": directive,
        "summary": _summary(end.merged_output, unmet, withheld, more),
        "output": end.merged_output,
        "unmet": unmet,
        "done": tuple(outcome.intent for outcome in end.outcomes if outcome.done),
        "withheld": withheld,
    }
    return standing.result.model_copy(update={**ended, **more})


def _summary(
    output: str, unmet: Sequence[UnmetCriterion], withheld: Sequence[str], stopped: Mapping[str, object]
) -> str:
    """Write the output, preceded by the reason to stop and followed by a line for each unmet criterion and each
    withheld operation. The lines consist of signs and exact names, without sentences that code would have to word.
    """
    why = ": ".join(str(stopped[name]) for name in ("stopped_by", "detail") if stopped.get(name))
    missed = [(each.criterion, each.found.bare if each.found is not None else each.reason) for each in unmet]
    lines = [_STOPPED + why if why else "", output]
    lines += (_UNMET + ": ".join(filter(None, each)) for each in missed)
    lines += (_KEPT_BACK + act for act in withheld)
    text = "\n".join(filter(None, lines))
    return f"{LAW1_MARK} {text}" if withheld else text


def _tried(failed: Sequence[SubTaskOutcome], told: str = "") -> tuple[str, ...]:
    """List the calls, and how each ended in the tool's own words, unless `told` already contains these words.

    A call that was rejected because an identical one had failed is not listed again.
    """
    calls = [call for outcome in failed for call in outcome.tool_calls]
    ran = {(call.tool, call.input) for call in calls if not call.never_ran}
    lines = (
        f"{call.tool}: {_shown(call.input)} → {_how_it_ended(call, told)}"
        for call in calls
        if not call.never_ran or (call.tool, call.input) not in ran
    )
    return tuple(dict.fromkeys(lines))[:_MOST_TRIED]


def _how_it_ended(call: ToolCall, told: str) -> str:
    said = [line for each in (call.error_output or call.reason or "").splitlines() if (line := each.strip())]
    kept_back = call.withheld_by is not None or bool(call.dropped)  # reported as a withheld operation
    if call.status is CallStatus.OK or kept_back or not said or said[-1] in told:
        return call.status.value
    ends = dict.fromkeys((said[0], said[-1]))  # some programs print the error first, others last
    return (_LEFT_OUT if said[2:] else _LINE_END).join(shortened(each, _REASON // len(ends)) for each in ends)


def _shown(text: str) -> str:
    """Shorten a text to one line. A sign marks each line end, so that two commands do not look like one."""
    lines = (" ".join(line.split()) for line in text.splitlines())
    return shortened(_LINE_END.join(filter(None, lines)), _INPUT)


def _failing(outcomes: Sequence[SubTaskOutcome]) -> tuple[FailedLast, ...]:
    """Return the last failed call of each matched subtask, unless a later call repaired the failure."""
    found = list[FailedLast]()
    for outcome in outcomes:
        calls = outcome.tool_calls if outcome.status == "matched" else ()
        number = standing_failure(calls) or (len(calls) if calls and calls[-1].went_wrong else 0)
        found += (_failed_last(call) for call in calls[number - 1 : number])
    return tuple(found[:_MOST_TRIED])


def _failed_last(call: ToolCall) -> FailedLast:
    how = call.hidden_error.splitlines()[-1:] or [_how_it_ended(call, "")]
    said = "" if how[0] == CallStatus.ERROR.value else shortened(how[0], _REASON)
    return FailedLast(command=_shown(call.input), tool=call.tool, said=said, said_no=call.says_no)


def _withheld(outcomes: Sequence[SubTaskOutcome]) -> tuple[str, ...]:
    """List the changes that were withheld and that no other call has made."""
    calls = [call for outcome in outcomes for call in outcome.tool_calls]
    made = {path for call in calls for path in call.changes}
    return tuple(dict.fromkeys(path for call in calls for path in call.dropped if path not in made))
