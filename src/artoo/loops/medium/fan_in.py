"""Collect the outcomes of a round and merge them without a model, with paths that several subtasks changed.

This module is a part of the meta-validator. The meta-validator then applies the verdicts of subtasks to the whole
task.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from artoo.contracts.criteria import Criterion
from artoo.contracts.execution import CriterionVerdict, DecidedBy, ExecutionResult, SubTaskOutcome
from artoo.contracts.findings import Found, Reason
from artoo.contracts.plan import DispatchManifest, Joined, SharedPath
from artoo.contracts.roles import Role
from artoo.contracts.text import listed
from artoo.evidence.facts import Fact
from artoo.verdicts.judging import from_fact

_SHARED = "Changed by parts that ran at the same time (one may have overwritten the other): "
_MOST_SHARED = 6


@dataclass(slots=True)
class FanIn:
    """The collected outcomes of one round, and the manifest that lists the expected ones."""

    manifest: DispatchManifest
    carried: tuple[SubTaskOutcome, ...] = ()
    outcomes: dict[str, SubTaskOutcome] = field(default_factory=dict[str, SubTaskOutcome])
    joined: set[str] = field(default_factory=set[str])
    shared: tuple[SharedPath, ...] = ()
    answers: dict[str, ExecutionResult] = field(default_factory=dict[str, ExecutionResult])
    """The last answer of each subtask that has no outcome yet, by its id."""

    def answered(self, result: ExecutionResult) -> None:
        """Keep an executor's answer until its subtask has an outcome."""
        if result.subtask_id in self.manifest.intents:
            self.answers[result.subtask_id] = result

    def add(self, outcome: SubTaskOutcome) -> None:
        """Add an outcome if it belongs to a subtask of this round."""
        if outcome.subtask_id in self.manifest.intents:
            self.outcomes[outcome.subtask_id] = outcome
            self.answers.pop(outcome.subtask_id, None)

    def join(self, joined: Joined) -> None:
        """Record that these subtasks have ended as a group, and which paths more than one of them changed."""
        if joined.round == self.manifest.round:
            self.joined.update(joined.subtask_ids)
            self.shared += joined.shared

    @property
    def failed(self) -> bool:
        """Return whether an outcome of this round failed. If so, the dispatcher starts no later group."""
        return any(outcome.status == "failed" for outcome in self.outcomes.values())

    @property
    def complete(self) -> bool:
        """Return whether every subtask that will run has ended.

        The dispatcher reports the end of whole groups, and starts no group after a failed one.
        """
        if self.failed:
            return bool(self.joined) and self.joined >= self.outcomes.keys()
        return len(self.joined) == len(self.manifest.subtasks)

    @property
    def shared_text(self) -> str:
        """Describe the paths that more than one subtask changed, for the meta-validator's prompt; empty if there
        are none."""
        intents = self.manifest.intents
        told = (
            f"{one.path} ({'; '.join(intents.get(each, each) for each in one.subtasks)})" for one in self.shared
        )
        return f"{_SHARED}{listed(list(told), _MOST_SHARED)}" if self.shared else ""

    @property
    def never_judged(self) -> tuple[Criterion, ...]:
        """Return the criteria of subtasks without an outcome."""
        entries = (entry for entry in self.manifest.subtasks if entry.subtask_id not in self.outcomes)
        return tuple(criterion for entry in entries for criterion in entry.success_criteria)

    @property
    def everything(self) -> tuple[SubTaskOutcome, ...]:
        """Return the outcomes that were carried over from earlier rounds, then the outcomes of this round in the
        order of the plan."""
        this = [self.outcomes[e.subtask_id] for e in self.manifest.subtasks if e.subtask_id in self.outcomes]
        return (*self.carried, *this)

    @property
    def matched(self) -> tuple[SubTaskOutcome, ...]:
        """Return the outcomes whose subtask met its criteria."""
        return tuple(outcome for outcome in self.everything if outcome.status == "matched")

    @property
    def unjudged(self) -> dict[str, str]:
        """Return the answers of completed attempts that no validator has judged, by the subtask's id."""
        written = {key: each.output for key, each in self.answers.items() if each.status == "completed"}
        return {key: output for key, output in written.items() if output.strip()}

    @property
    def reached(self) -> str:
        """Return the merge of the matched outputs and of the answers that no validator has judged."""
        intents = self.manifest.intents
        written = [(intents[key], output) for key, output in self.unjudged.items()]
        return merged_texts([*((each.intent, each.output) for each in self.matched), *written])

    @property
    def hopeless(self) -> tuple[SubTaskOutcome, ...]:
        """Return the outcomes whose executor reported that the work cannot be done, which the validator
        accepted."""
        return tuple(outcome for outcome in self.everything if outcome.hopeless)

    @property
    def may_be_amended(self) -> bool:
        """Return whether every hopeless outcome has changed something and failed only checks that the planner
        wrote. Such checks may be wrong, so the planner may replace them once.
        """
        held = (each for entry in self.manifest.subtasks for each in entry.success_criteria if each.check_decides)
        own = {each.text for each in held if each.by == "planner"}
        for outcome in self.hopeless:
            checked = (each for each in outcome.criteria_verdicts if each.decided_by is DecidedBy.CHECK)
            failed = [each for each in checked if each.verdict == "fail"]
            wrong = all(each.criterion in own and not each.of_world for each in failed)
            if not (failed and wrong and any(call.changed_something for call in outcome.tool_calls)):
                return False
        return True


def merged_output(outcomes: Sequence[SubTaskOutcome]) -> str:
    """Join the outputs for an ending without a merged answer. A single output is returned unchanged; several are
    listed under their intents."""
    return merged_texts([(outcome.intent, outcome.output) for outcome in outcomes])


def merged_texts(parts: Sequence[tuple[str, str]]) -> str:
    """Join (intent, output) pairs. A single output is returned unchanged; several are listed under their
    intents."""
    texts = [(intent.strip(), output.strip()) for intent, output in parts]
    if len(texts) == 1:
        return texts[0][1]
    return "\n\n".join(f"{intent}\n{output}" for intent, output in texts if output)


def with_reply(outcomes: Sequence[SubTaskOutcome], reply: str) -> str:
    """Return the matched outputs followed by the reply, or the reply alone if it already contains them."""
    reached = merged_output(outcomes)
    return reply if reached in reply else f"{reached}\n\n{reply}"


def concluding(fan_in: FanIn) -> SubTaskOutcome | None:
    """Return the outcome of a last subtask that received the results of all others, because its output is the
    answer of the whole task. Otherwise return None."""
    if fan_in.carried or len(fan_in.outcomes) < 2:
        return None
    *before, last = sorted(fan_in.manifest.subtasks, key=lambda entry: entry.sequence)
    alone = all(entry.sequence < last.sequence for entry in before)
    return fan_in.outcomes.get(last.subtask_id) if alone else None


def covered(outcome: SubTaskOutcome) -> dict[str, CriterionVerdict]:
    """Return the verdicts on a subtask's criteria, by criterion. If the subtask's output is the answer, they also
    hold for the whole task.
    """
    return {
        verdict.criterion: verdict.model_copy(update={"accountable": Role.PLANNER})
        for verdict in reversed(outcome.criteria_verdicts)
    }


def of_the_whole(verdict: CriterionVerdict) -> CriterionVerdict:
    """Convert a verdict to one on the whole task, which blames the plan instead of a tool and counts as one
    attempt."""
    failed = int(verdict.verdict == "fail")
    return verdict.model_copy(update={"accountable": Role.PLANNER, "identities": (), "failed_attempts": failed})


def unfinished(
    criteria: Sequence[Criterion], checks: Mapping[str, CriterionVerdict]
) -> dict[str, CriterionVerdict]:
    """Return a verdict on each criterion while a subtask is unfinished: the verdict of its check, or else a failing
    one. Such a failing verdict has no failure class, because a missing result is no failure of an approach."""
    found = (checks.get(each.text) or refuted(each, Reason(found=Found.UNFINISHED)) for each in criteria)
    return {verdict.criterion: verdict.model_copy(update={"failure_class": None}) for verdict in found}


def refuted(criterion: Criterion, fact: str | Reason) -> CriterionVerdict:
    """Return a failing verdict on a criterion that a fact contradicts."""
    return of_the_whole(from_fact(criterion, Fact(fact, contradicts=False)))
