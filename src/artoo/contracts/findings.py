"""Reasons why a criterion failed and facts about an answer, each with its English text.

The findings of code are typed values and not texts.

A finding contains only exact values, such as paths, commands, numbers, and the words of a program. Models and logs
get it in English (`Reason.text`). `artoo.words.result` has the sentences in the user's language.
"""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated, Literal

from pydantic import BeforeValidator, Field

from artoo.contracts.base import Contract
from artoo.contracts.criteria import CheckAmended


class Found(StrEnum):
    """The kinds of findings against a criterion. Each has an English sentence about `subject` and `said`."""

    sentence: str

    def __new__(cls, value: str, sentence: str) -> Found:
        made = str.__new__(cls, value)
        made._value_ = value
        made.sentence = sentence
        return made

    NOT_CALLED = "not_called", "no call of {subject} was made"
    CALL_ENDED = "call_ended", "{subject}: {said}"
    WITHHELD = "withheld", "{subject} was withheld: {said}"
    CUT_SHORT = "cut_short", "{subject} was stopped before its end ({said})"
    STILL_RUNNING = "still_running", "{subject} is still running: {said}"
    DID_NOT_RUN = "did_not_run", "{subject} did not run: {said}"
    FAILED = "failed", "{subject} failed: {said}"
    SAYS_ONLY = "says_only", "{subject} printed an error that its exit code does not show: {said}"
    NO_CALL = "no_call", "the answer refers to call {subject}, but only {said} calls were made"
    EMPTY = "empty", "the answer is empty"
    NO_RESULT = "no_result", "there is no result: {said}"
    OUT_OF_TIME = "out_of_time", "{said}"
    NOWHERE = "nowhere", "found in no output, in no change and not in the request: {said}"
    MISCALCULATED = "miscalculated", "a formula in the answer has another result: {said}"
    NOT_LOOKED_UP = "not_looked_up", "it states facts about local files that no call has read: {said}"
    OWN_WORDS = "own_words", "no tool has shown it; it comes from the model's knowledge or its prompt"
    WAYS_DIFFER = "ways_differ", "another way gives another answer: {said}"
    BAD_PATTERN = "bad_pattern", "the regular expression {subject} cannot be used: {said}"
    NO_MATCH = "no_match", "the output has no match of {subject}: {said}"
    NO_MATCH_IN = "no_match_in", "{subject} has no match of {said}"
    NOT_JSON = "not_json", "the output is not one JSON value: {said}"
    BAD_SCHEMA = "bad_schema", "the JSON schema itself cannot be used: {said}"
    MISFIT = "misfit", "the JSON does not fit its schema at {subject}: {said}"
    MISSING = "missing", "{subject} does not exist"
    UNREADABLE = "unreadable", "{subject} cannot be read: {said}"
    IS_DIRECTORY = "is_directory", "{subject} is a directory, not a text file"
    NO_TEXT = "no_text", "{subject} is binary or too large to be searched ({said} bytes)"
    COMMAND_FAILED = "command_failed", "`{subject}` ended with {said}"
    NO_VERDICT = "no_verdict", "`{subject}` gave no verdict: {said}"
    HELD_BEFORE = "held_before", "its check already held before the work: {subject}"
    UNFINISHED = "unfinished", "not judged: a subtask is unfinished"
    NO_BUDGET = "no_budget", "not judged: {said}"
    CONFLICT = "conflict", "another subtask changed {subject} at the same time, and its version is kept: {said}"


BLAMES_NOBODY = frozenset(
    (
        *(Found.NOWHERE, Found.MISCALCULATED, Found.NOT_LOOKED_UP, Found.WAYS_DIFFER, Found.NO_CALL),
        *(Found.NO_VERDICT, Found.BAD_PATTERN, Found.BAD_SCHEMA),
        Found.CONFLICT,
    )
)


class Reason(Contract):
    """The reason why a criterion failed. `subject` is the thing that is concerned. `said` contains details, or the
    words of a program."""

    found: Found
    subject: str = ""
    said: str = ""

    @property
    def text(self) -> str:
        """Return the text in English, for models, logs and programs."""
        return self.template.format(subject=self.subject, said=self.said).rstrip(": ")

    @property
    def template(self) -> str:
        """Return the English sentence without the values of its fields. A message catalogue finds its translation
        by it."""
        return self.found.sentence

    @property
    def bare(self) -> str:
        """Return only the exact values in the reason, which need no translation."""
        return ": ".join(filter(None, (self.subject, self.said)))


class Unconfirmed(Contract):
    """The fact that nothing confirmed the answer. `looked`: true if any call showed or changed anything. If false,
    the answer comes from the model's own knowledge, from an image of the request (`images`), or from files that the
    model was shown whole and that the request or the answer names (`files`). `confirmed`: criteria that are met
    nevertheless, so that only the other criteria are open."""

    fact: Literal["unconfirmed"] = "unconfirmed"
    looked: bool
    images: bool = False
    files: tuple[str, ...] = ()
    confirmed: tuple[str, ...] = ()


class LeftOpen(Contract):
    """A criterion that nothing has decided. `found` is what code has found about it, if anything."""

    fact: Literal["left_open"] = "left_open"
    criterion: str
    found: Reason | None = None


class Unjudged(Contract):
    """The fact that the budget was used up before a model could judge the answer. `said` is the message about this
    budget. `budget` is its name, or empty if the name is not known."""

    fact: Literal["unjudged"] = "unjudged"
    said: str
    budget: str = ""


class Unread(Contract):
    """The fact that checks decided every criterion, and that no model has read the answer itself. `checks` are the
    decided criteria. `put_out`: true if the answer is the output of a call, word for word. It may still be
    wrong."""

    fact: Literal["unread"] = "unread"
    checks: tuple[str, ...]
    put_out: bool = False


class PartChecked(Contract):
    """The fact that checks, or two ways that agree, decided only a part of the criteria, and a judge decided the
    others. `criteria` are the criteria of the part that is more certain, in order."""

    fact: Literal["part_checked"] = "part_checked"
    criteria: tuple[str, ...]


class ByJudge(Contract):
    """The fact that a model has read the record of the work and judged a part of the result.

    `same`: true if the judge is the model that did the work."""

    fact: Literal["by_judge"] = "by_judge"
    same: bool = False


class Unchanged(Contract):
    """The fact that calls were made but no file was changed."""

    fact: Literal["unchanged"] = "unchanged"


class NotThere(Contract):
    """The files that the task and the answer name and that do not exist. If `empty` is true, they exist but have no
    content."""

    fact: Literal["not_there"] = "not_there"
    paths: tuple[str, ...]
    empty: bool = False


class FailedLast(Contract):
    """The last call of a matched subtask, if it failed. `command` is its input. `said` is the error in the words of
    the tool. `said_no`: true if the call may be a search, a test or a comparison with a negative result (exit code
    1)."""

    fact: Literal["failed_last"] = "failed_last"
    command: str
    tool: str = ""
    said: str = ""
    said_no: bool = False


class StoppedAtEnd(Contract):
    """The commands that were still running when the task ended, and that artoo has stopped."""

    fact: Literal["stopped_at_end"] = "stopped_at_end"
    commands: tuple[str, ...]


class LeftRunning(Contract):
    """The commands that artoo started outside the workspace after the user agreed, each as `ID: command`."""

    fact: Literal["left_running"] = "left_running"
    commands: tuple[str, ...]


class NotSeen(Contract):
    """The user's files that the commands of the task could not see. The workspace reports them."""

    fact: Literal["not_seen"] = "not_seen"
    notes: tuple[str, ...]


class HeldWith(Contract):
    """The criteria held in the task's workspace, but its changes are not all in the user's files."""

    fact: Literal["held_with"] = "held_with"
    changes: Literal["pending", "partly", "discarded"]


class ChangedByTwo(Contract):
    """The paths that several subtasks changed at the same time. `parts` are the intents of these subtasks."""

    fact: Literal["changed_by_two"] = "changed_by_two"
    paths: tuple[str, ...]
    parts: tuple[str, ...]


class Unformed(Contract):
    """The fact that the answer could not be converted to the form that was requested.

    `problem` is the error of the library that validates the form."""

    fact: Literal["unformed"] = "unformed"
    problem: str


class OwnValues(Contract):
    """The places in the requested form (such as `$.age`) for which a model supplied a value that the answer does
    not contain."""

    fact: Literal["own_values"] = "own_values"
    places: tuple[str, ...]


class NotAgreed(Contract):
    """The parts of a task to which no user agreed (`skill PATH`, `start COMMAND`)."""

    fact: Literal["not_agreed"] = "not_agreed"
    what: tuple[str, ...]


class Unheard(Contract):
    """The messages of the user to the running task that no model had read when the task ended."""

    fact: Literal["unheard"] = "unheard"
    texts: tuple[str, ...]


class Remark(Contract):
    """A plain line of text. It occurs only in logs of earlier versions."""

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
        | HeldWith
        | ChangedByTwo
        | Remark,
        Field(discriminator="fact"),
    ],
    BeforeValidator(_from_line),
]
"""A fact about a result that code knows. It does not depend on the text of the result."""
