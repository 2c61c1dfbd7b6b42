"""Sentences about a result, such as stop reasons, unmet criteria and suggested next moves.

Criteria, outputs, and texts of models and tools are not translated.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final, NamedTuple

from artoo.contracts.criteria import CheckAmended, in_a_line
from artoo.contracts.findings import (
    ByJudge,
    ChangedByTwo,
    FailedLast,
    Found,
    HeldWith,
    LeftOpen,
    LeftRunning,
    NotAgreed,
    NotSeen,
    NotThere,
    OwnValues,
    PartChecked,
    Reason,
    Remark,
    ResultFact,
    StoppedAtEnd,
    Unchanged,
    Unconfirmed,
    Unformed,
    Unheard,
    Unjudged,
    Unread,
)
from artoo.contracts.solution import Directive, FinalResult, StoppedBy, UnmetCriterion
from artoo.contracts.text import CUT, shortened
from artoo.words.catalogue import Catalogue, in_language

_MOST_TRIED = 5
_OF_A_CHECK = 400
"""The most characters of each part of a replaced check. The log has the whole text."""


class HowTo(NamedTuple):
    """The options and commands that suggestions name, which differ between the terminal and other interfaces.

    `budget` and `setting` are format strings for a name. `answer` is the command that continues the conversation.
    """

    budget: str = ""
    setting: str = "{}"
    answer: str = ""


_NAMES = ("seconds", "calls", "tokens", "money")
"""The names of a task's budgets, which are the same everywhere."""


@dataclass(frozen=True, slots=True)
class ResultWords:
    """The sentences about results in the language of `text`."""

    text: Catalogue

    def criterion(self, text: str) -> str:
        """Return a criterion. Criteria that code has added are translated."""
        return self.text(text)

    def reason(self, unmet: UnmetCriterion) -> str:
        """Return the reason why a criterion is not met."""
        found = unmet.found
        if found is None or self.text.gettext(found.template) == found.template:
            # If the template has no translation, the English reason may have more details.
            return unmet.reason
        return self.found(found)

    def found(self, found: Reason) -> str:
        """Return the translated reason that code has found."""
        return self.text(found.template, subject=found.subject, said=found.said).rstrip("：: ")

    def failed(self, result: FinalResult) -> tuple[UnmetCriterion, ...]:
        """Return the unmet criteria that could have been met."""
        return tuple(each for each in result.unmet if not each.impossible)

    def why_unmet(self, unmet: UnmetCriterion, output: str) -> str:
        """Return the reason, or an empty text if the output begins with it."""
        reason = self.reason(unmet)
        return "" if output.strip().startswith(reason.removesuffix(CUT)) else reason

    def _missed(self, unmet: UnmetCriterion, output: str) -> str:
        criterion, reason = self.criterion(unmet.criterion), self.why_unmet(unmet, output)
        return self.text("{reason} ({detail})", reason=criterion, detail=reason) if reason else criterion

    def fact(self, fact: ResultFact) -> str:
        """Format one fact as a line."""
        match fact:
            case Unconfirmed(confirmed=(_, *_) as confirmed):
                return self.text("Verified in part: {criteria}.", criteria=self._listed(confirmed))
            case Unconfirmed(looked=True):
                return self.text("Unverified: nothing has confirmed this answer.")
            case Unconfirmed(images=False, files=(_, *_) as files):
                return self.text(
                    "Unverified: no tool showed this, and no file was changed. The model's prompt contained all "
                    "of {paths}.",
                    paths=", ".join(files),
                )
            case Unconfirmed(images=True):
                return self.text(
                    "Unverified: no tool showed this, and no file was changed. It comes from the model's "
                    "knowledge, its prompt or the images."
                )
            case Unconfirmed():
                return self.text(
                    "Unverified: no tool showed this, and no file was changed. It comes from the model's knowledge "
                    "or its prompt."
                )
            case LeftOpen(criterion=criterion, found=found):
                text = self.criterion(criterion)
                detailed = (
                    self.text("{reason} ({detail})", reason=text, detail=self.found(found)) if found else text
                )
                return self.text("Not verified: {criterion}", criterion=detailed)
            case Unjudged(said=said):
                return self.text("Not judged: {reason}", reason=said)
            case Unread(checks=checks, put_out=True):
                return self.text(
                    "Checked: {checks}. Nothing else in the program's output was checked.",
                    checks=self._listed(checks),
                )
            case Unread(checks=checks):
                return self.text(
                    "Checked: {checks}. The text of the answer was not checked.", checks=self._listed(checks)
                )
            case PartChecked(criteria=checks):
                return self.text("Checked in part: {checks}.", checks=self._listed(checks))
            case CheckAmended(criterion=criterion, before=before, after=after, reason=reason):
                known = {"criterion": criterion.rstrip(".\u3002"), "reason": shortened(reason, _OF_A_CHECK)}
                was, now = (shortened(in_a_line(each), _OF_A_CHECK) for each in (before, after))
                return self.text(
                    "The check of a criterion was replaced after it failed: {criterion} (was: {before}; "
                    "is: {after}; reason: {reason})",
                    before=was,
                    after=now,
                    **known,
                )
            case ByJudge(same=True):
                return self.text("Judged by the model that did the work, from the record of its calls.")
            case ByJudge():
                return self.text("Judged by a model, from the record of the calls.")
            case Unchanged():
                return self.text("No file was changed.")
            case NotThere(paths=paths, empty=empty):
                return self.text(
                    "Empty files: {paths}" if empty else "Missing files: {paths}", paths=", ".join(paths)
                )
            case FailedLast(command=command, tool=tool, said=said, said_no=said_no):
                call = f"{tool}: {command}" if tool else command
                call = self.text("{reason} ({detail})", reason=call, detail=said) if said else call
                return self.text("Ended with exit code 1: {call}" if said_no else "Last failure: {call}", call=call)
            case Unformed(problem=problem):
                return self.text("Not in the requested form: {reason}", reason=problem)
            case OwnValues(places=places):
                return self.text(
                    "Values that the model added, and that are not in the answer: {fields}",
                    fields=", ".join(places),
                )
            case NotAgreed(what=what):
                said = self.text("Not used, because you did not approve it: {what}", what=", ".join(what))
                if not (lines := [f'--allow "{each}"' for each in what if each.startswith("skill ")]):
                    return said
                how = self.text(
                    "To approve it: `artoo skill accept --all`, or for one run {lines}", lines=" ".join(lines)
                )
                return f"{said}. {how}"
            case Unheard(texts=texts):
                return self.text("The task ended before it read your message: {texts}", texts="; ".join(texts))
            case StoppedAtEnd(commands=commands):
                return self.text(
                    "Stopped at the end: {commands}", commands=", ".join(f"`{each}`" for each in commands)
                )
            case LeftRunning(commands=commands):
                return self.text(
                    "Left running (`artoo ps`, `artoo stop ID`): {commands}", commands=", ".join(commands)
                )
            case NotSeen(notes=notes):
                return self.text("The commands did not see all of your files: {notes}", notes="; ".join(notes))
            case HeldWith(changes="discarded"):
                return self.text("That held with the changes, which are discarded.")
            case HeldWith():
                return self.text("That holds with the pending changes, which are not in your files yet.")
            case ChangedByTwo(paths=paths, parts=parts):
                return self.text(
                    "Changed by parts that ran at the same time: {paths} ({parts})",
                    paths=", ".join(paths),
                    parts="; ".join(parts).rstrip(".\u3002"),
                )
            case Remark(text=text):
                return text

    def _listed(self, criteria: Iterable[str]) -> str:
        """Join criteria, without a full stop at the end."""
        return "; ".join(map(self.criterion, criteria)).rstrip(".\u3002")

    def why_stopped(self, result: FinalResult) -> str:
        """Return the reason why a task was abandoned, or an empty text for any other task."""
        if result.directive is not Directive.ABANDON:
            return ""
        why = result.stopped_by or StoppedBy.INTERNAL
        if why is StoppedBy.QUESTION:
            return self.text("The task needs your answer to this question:")
        if why is StoppedBy.MISSING_INPUT:
            if not result.detail:
                return self.text("As far as artoo has seen, it cannot be done here.")
            return self.text(
                "As far as artoo has seen, a part of it cannot be done here: {reason}", reason=result.detail
            )
        # If the task gave up because a subtask ran out of time, the reason is the time.
        late = why in (StoppedBy.REPLANS, StoppedBy.DIVERGENCE) and _is_out_of_time(result)
        reason = self.text("the time for a subtask ran out before there was a result" if late else _STOPPED[why])
        if result.detail not in ("", why.value):
            reason = self.text("{reason} ({detail})", reason=reason, detail=result.detail)
        return self.text("The task could not be completed: {reason}.", reason=reason)

    def could(self, result: FinalResult, how: HowTo | None = None) -> tuple[str, ...]:
        """List possible next steps, which a model suggested, or else which follow from the reason of the ending.

        If no plan was possible, there is none, because other words would not help. If a subtask ran out of time,
        more time is suggested. If the budget left no room for a judge, a larger budget is suggested.
        """
        why, how = result.stopped_by, how or HowTo()
        if _is_out_of_time(result):
            more = self.text(
                "give the task more time ({setting})", setting=how.setting.format("control.time_budget_ms")
            )
            return (more, *result.next_moves)
        if why is None:
            facts = (fact for fact in result.facts if isinstance(fact, Unjudged) and fact.budget)
            return (*result.next_moves, *(self._move(StoppedBy(fact.budget), how) for fact in facts))
        if result.next_moves or why not in _MOVES:
            return result.next_moves
        # Without unmet criteria no plan was carried out, so other words or more time would not help.
        in_vain = why in (StoppedBy.COST, StoppedBy.DIVERGENCE, StoppedBy.REPLANS) and not result.unmet
        return () if in_vain else (self._move(why, how),)

    def _move(self, why: StoppedBy, how: HowTo) -> str:
        budgets = {name: (how.budget or self.text("budget: {}")).format(name) for name in _NAMES}
        answer = self.text(": {}").format(how.answer) if how.answer else ""
        return self.text(_MOVES[why], answer=answer, **budgets)

    def plain(self, result: FinalResult, how: HowTo | None = None, *, told: bool = True) -> str:
        """Return the whole answer as text, with unmet criteria, the reason of the ending, and next steps.

        `told`: true if a user reads the text. If false, a model reads it, and gets only a model's suggestions.
        """
        why, output = self.why_stopped(result), result.output.strip()
        lines = [why, self.text("What was reached:") if why and result.done else "", output]
        lines += (
            self.text("Not met: {criterion}", criterion=self._missed(each, output)) for each in self.failed(result)
        )
        lines += (self.text("Not done, because it was not approved: {act}", act=act) for act in result.withheld)
        if result.tried:
            lines.append(self.text("Tried: {tried}", tried="; ".join(result.tried[:_MOST_TRIED])))
        moves = self.could(result, how) if told else result.next_moves
        lines += (self.text("You could:"), *(f"- {move}" for move in moves)) if moves else ()
        return "\n".join(filter(None, lines))


def _is_out_of_time(result: FinalResult) -> bool:
    """Check whether a subtask of the last round ran out of time."""
    found = (unmet.found for unmet in result.unmet)
    return any(reason is not None and reason.found is Found.OUT_OF_TIME for reason in found)


_SAY_MORE = "say more precisely what is wanted, or where it is"

_STOPPED: Final = {
    StoppedBy.COST: "its budget of rounds and time is nearly spent",
    StoppedBy.DIVERGENCE: "the results were getting worse",
    StoppedBy.REPLANS: "no way that was tried led to the goal",
    StoppedBy.TIME: "the time budget is spent",
    StoppedBy.CALLS: "the budget of model calls is spent",
    StoppedBy.TOKENS: "the budget of tokens is spent",
    StoppedBy.MONEY: "the budget of money is spent",
    StoppedBy.NO_MODEL: "no language model could be used",
    StoppedBy.PROMPT_REFUSED: "the model's server refused what it was asked",
    StoppedBy.INTERRUPTED: "it was interrupted",
    StoppedBy.REFUSED_BY_USER: "a step that it needs was not allowed",
    StoppedBy.INTERNAL: "a part of artoo failed",
}

_MOVES: Final = {
    StoppedBy.COST: "give it more time ({seconds}), or say more precisely what is wanted",
    StoppedBy.DIVERGENCE: _SAY_MORE,
    StoppedBy.REPLANS: _SAY_MORE,
    StoppedBy.MISSING_INPUT: "provide the missing input, or ask for something else",
    StoppedBy.QUESTION: "answer the question in the same conversation{answer}",
    StoppedBy.TIME: "give it more time ({seconds})",
    StoppedBy.CALLS: "allow more model calls ({calls})",
    StoppedBy.TOKENS: "allow more tokens ({tokens})",
    StoppedBy.MONEY: "allow it to cost more ({money})",
    StoppedBy.NO_MODEL: "check the model settings with `artoo doctor`",
    StoppedBy.PROMPT_REFUSED: "ask for less at once, or use another model (`artoo doctor`)",
    StoppedBy.INTERNAL: "look at the whole record with `artoo log show`",
}


def result_words(language: str) -> ResultWords:
    """Return the sentences for a BCP 47 tag, in English if there is no catalogue for it."""
    return ResultWords(in_language(language))
