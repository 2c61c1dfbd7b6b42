"""Reasons why a criterion failed and facts about an answer, each with its English text.

The findings of code are typed.

A finding holds only exact values: paths, commands, numbers, a program's own words. Models and logs read it in
English (`Reason.text`); `artoo.words.result` has its sentences in the user's language.
"""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated, Literal

from pydantic import BeforeValidator, Field

from artoo.contracts.base import Contract
from artoo.contracts.criteria import CheckAmended


class Found(StrEnum):
    """The kinds of findings against a criterion, each with an English sentence about `subject` and `said`."""

    sentence: str

    def __new__(cls, value: str, sentence: str) -> Found:
        made = str.__new__(cls, value)
        made._value_ = value
        made.sentence = sentence
        return made

    NOT_CALLED = "not_called", "no call of {subject} was made"
    CALL_ENDED = "call_ended", "{subject}: {said}"
    WITHHELD = "withheld", "{subject} was withheld: {said}"
    CUT_SHORT = "cut_short", "{subject} was cut short ({said})"
    STILL_RUNNING = "still_running", "{subject} is still running: {said}"
    DID_NOT_RUN = "did_not_run", "{subject} did not run: {said}"
    FAILED = "failed", "{subject} failed: {said}"
    SAYS_ONLY = "says_only", "the exit code of {subject} hides what it printed: {said}"
    NO_CALL = "no_call", "the answer rests on call {subject}, and {said} calls were made"
    EMPTY = "empty", "the answer is empty"
    NO_RESULT = "no_result", "there is no result: {said}"
    OUT_OF_TIME = "out_of_time", "{said}"
    NOWHERE = "nowhere", "in no call's output, no change, not in the request: {said}"
    MISCALCULATED = "miscalculated", "a formula of the answer comes to something else: {said}"
    NOT_LOOKED_UP = "not_looked_up", "it tells of files here, and no call has looked at them: {said}"
    OWN_WORDS = "own_words", "no tool has shown it: it is what the model knows or was shown"
    WAYS_DIFFER = "ways_differ", "other ways give: {said}"
    BAD_PATTERN = "bad_pattern", "the regular expression {subject} cannot be used: {said}"
    NO_MATCH = "no_match", "the output has no match of {subject}: {said}"
    NO_MATCH_IN = "no_match_in", "{subject} has no match of {said}"
    NOT_JSON = "not_json", "the output is not one JSON value: {said}"
    BAD_SCHEMA = "bad_schema", "the JSON schema itself cannot be used: {said}"
    MISFIT = "misfit", "the JSON does not fit its schema at {subject}: {said}"
    MISSING = "missing", "{subject} does not exist"
    UNREADABLE = "unreadable", "{subject} cannot be looked at: {said}"
    IS_DIRECTORY = "is_directory", "{subject} is a directory, not a text file"
    NO_TEXT = "no_text", "{subject} is binary or too large to be searched ({said} bytes)"
    COMMAND_FAILED = "command_failed", "`{subject}` ended with {said}"
    NO_VERDICT = "no_verdict", "`{subject}` gave no verdict: {said}"
    HELD_BEFORE = "held_before", "its check held before the work: {subject}"
    UNFINISHED = "unfinished", "not judged: a subtask is unfinished"
    NO_BUDGET = "no_budget", "not judged: {said}"
    CONFLICT = "conflict", "what another subtask that ran at the same time made of {subject} stands: {said}"


BLAMES_NOBODY = frozenset(
    (
        *(Found.NOWHERE, Found.MISCALCULATED, Found.NOT_LOOKED_UP, Found.WAYS_DIFFER, Found.NO_CALL),
        *(Found.NO_VERDICT, Found.BAD_PATTERN, Found.BAD_SCHEMA),
        Found.CONFLICT,
    )
)


class Reason(Contract):
    """The reason why a criterion failed. `subject` is the thing concerned, `said` the details or a program's
    words."""

    found: Found
    subject: str = ""
    said: str = ""

    @property
    def text(self) -> str:
        """Return the English text, for models, logs and programs."""
        return self.template.format(subject=self.subject, said=self.said).rstrip(": ")

    @property
    def template(self) -> str:
        """Return the English sentence without its fields, by which a catalogue finds its translation."""
        return self.found.sentence

    @property
    def bare(self) -> str:
        """Return only the exact values of the reason, which need no translation."""
        return ": ".join(filter(None, (self.subject, self.said)))


class Unconfirmed(Contract):
    """The fact that nothing confirmed the answer. `looked`: true if any call showed or changed anything;
    otherwise the answer comes from the model's own knowledge, from an image of the request (`images`), or from
    files that the model was shown whole and that the request or the answer names (`files`). `confirmed`: criteria
    that are met nevertheless, so that only the rest is open."""

    fact: Literal["unconfirmed"] = "unconfirmed"
    looked: bool
    images: bool = False
    files: tuple[str, ...] = ()
    confirmed: tuple[str, ...] = ()


class LeftOpen(Contract):
    """A criterion that nothing decided. `found` is the finding of code about it, if any."""

    fact: Literal["left_open"] = "left_open"
    criterion: str
    found: Reason | None = None


class Unjudged(Contract):
    """The fact that the budget left no model call to judge an existing answer. `said` is the message of the spent
    budget; `budget` is its name, or empty if unknown."""

    fact: Literal["unjudged"] = "unjudged"
    said: str
    budget: str = ""


class Unread(Contract):
    """The fact that checks decided every criterion and no model read the answer itself. `checks` are the decided
    criteria. `put_out`: the answer is a call's output word for word, which may still be wrong."""

    fact: Literal["unread"] = "unread"
    checks: tuple[str, ...]
    put_out: bool = False


class PartChecked(Contract):
    """The fact that only a part is decided by checks or by two ways that agree, and a judge decided the rest.
    `criteria` are the criteria of that surer part, in order."""

    fact: Literal["part_checked"] = "part_checked"
    criteria: tuple[str, ...]


class ByJudge(Contract):
    """The fact that a model read the record and judged a part of the result.

    `same`: the judge is the model that did the work."""

    fact: Literal["by_judge"] = "by_judge"
    same: bool = False


class Unchanged(Contract):
    """The fact that calls were made but no file was changed."""

    fact: Literal["unchanged"] = "unchanged"


class NotThere(Contract):
    """The files that the task and the answer name and that are missing, or (`empty`) have no content."""

    fact: Literal["not_there"] = "not_there"
    paths: tuple[str, ...]
    empty: bool = False


class FailedLast(Contract):
    """The last failed call of a matched subtask. `command` is its input; `said` is the error in the tool's own
    words. `said_no`: the call may be a search, a test or a comparison with a negative result (exit code 1)."""

    fact: Literal["failed_last"] = "failed_last"
    command: str
    tool: str = ""
    said: str = ""
    said_no: bool = False


class StoppedAtEnd(Contract):
    """The commands that still ran when the task ended and that artoo stopped."""

    fact: Literal["stopped_at_end"] = "stopped_at_end"
    commands: tuple[str, ...]


class LeftRunning(Contract):
    """The commands that artoo started outside the workspace after the user agreed, each as `ID: command`."""

    fact: Literal["left_running"] = "left_running"
    commands: tuple[str, ...]


class NotSeen(Contract):
    """The user's files that the task's commands could not see, as reported by the workspace."""

    fact: Literal["not_seen"] = "not_seen"
    notes: tuple[str, ...]


class ChangedByTwo(Contract):
    """The paths that several subtasks changed at the same time. `parts` are the intents of these subtasks."""

    fact: Literal["changed_by_two"] = "changed_by_two"
    paths: tuple[str, ...]
    parts: tuple[str, ...]


class Unformed(Contract):
    """The fact that the answer could not be converted to the requested form.

    `problem` is the error of the library that validates the form."""

    fact: Literal["unformed"] = "unformed"
    problem: str


class OwnValues(Contract):
    """The places of the form (`$.age`) whose values the model supplied although the answer does not contain
    them."""

    fact: Literal["own_values"] = "own_values"
    places: tuple[str, ...]


class NotAgreed(Contract):
    """The parts of a task that no user agreed to (`skill PATH`, `start COMMAND`)."""

    fact: Literal["not_agreed"] = "not_agreed"
    what: tuple[str, ...]


class Unheard(Contract):
    """The user's messages to the running task that no model had read when the task ended."""

    fact: Literal["unheard"] = "unheard"
    texts: tuple[str, ...]


class Remark(Contract):
    """A plain line of text, found only in logs of earlier versions."""

    fact: Literal["remark"] = "remark"
    text: str


def _from_line(value: object) -> object:
    return {"fact": "remark", "text": value} if isinstance(value, str) else value


ResultFact = Annotated[
    Annotated[
        Unconfirmed
        | LeftOpen
        | Unjudged
        | Unread
        | PartChecked
        | CheckAmended
        | ByJudge
        | Unchanged
        | NotThere
        | FailedLast
        | Unformed
        | OwnValues
        | NotAgreed
        | Unheard
        | StoppedAtEnd
        | LeftRunning
        | NotSeen
        | ChangedByTwo
        | Remark,
        Field(discriminator="fact"),
    ],
    BeforeValidator(_from_line),
]
"""A fact that code knows about a result, independent of the text of the result."""
