"""Define what code finds, typed: why a criterion failed, and what a user should know with an answer.

A finding holds exact things only: paths, commands, numbers, a program's own words. Models and logs read it in
English (`Reason.text`); who shows it to a person has the sentences of their language (`artoo.words.result`).
"""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated, Literal

from pydantic import BeforeValidator, Field

from artoo.contracts.base import Contract
from artoo.contracts.criteria import CheckAmended


class Found(StrEnum):
    """The kinds of finding against a criterion, each with its English sentence about `subject` and `said`."""

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
    """Give the reason why a criterion failed: about what (`subject`), and in whose own words (`said`)."""

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
        """Return the exact values in it alone, in no language but their own."""
        return ": ".join(filter(None, (self.subject, self.said)))


class Unconfirmed(Contract):
    """Report that nothing has confirmed the answer. `looked`: whether any call showed or changed anything; else a
    model knows it, or not, or has seen it in an image of the request (`images`) or in files that it was shown whole
    and that the request or the answer names (`files`). `confirmed`: criteria that hold all the same: only the rest
    of it is open then.
    """

    fact: Literal["unconfirmed"] = "unconfirmed"
    looked: bool
    images: bool = False
    files: tuple[str, ...] = ()
    confirmed: tuple[str, ...] = ()


class LeftOpen(Contract):
    """Name a criterion that nothing decided. `found`: what code found about it."""

    fact: Literal["left_open"] = "left_open"
    criterion: str
    found: Reason | None = None


class Unjudged(Contract):
    """Report that no call was left to judge an answer that was there. `said`: the words of the budget that was
    spent; `budget`: which one it was, empty where that is not known.
    """

    fact: Literal["unjudged"] = "unjudged"
    said: str
    budget: str = ""


class Unread(Contract):
    """Report that checks decided every criterion, and no model has read the answer itself. `checks`: what they
    decided; `put_out`: the answer is a call's output word for word, which may be wrong all the same.
    """

    fact: Literal["unread"] = "unread"
    checks: tuple[str, ...]
    put_out: bool = False


class PartChecked(Contract):
    """Report that a judge decided the rest: what checks decided, or that two ways agree, is surer than the whole.
    `criteria`: these, in order.
    """

    fact: Literal["part_checked"] = "part_checked"
    criteria: tuple[str, ...]


class ByJudge(Contract):
    """Report that a model read the record and judged a part of the result.

    `same`: it is the model that did the work.
    """

    fact: Literal["by_judge"] = "by_judge"
    same: bool = False


class Unchanged(Contract):
    """Report that calls were made, and no file was changed."""

    fact: Literal["unchanged"] = "unchanged"


class NotThere(Contract):
    """Name files that the task and the answer name and that are not there, or (`empty`) hold nothing."""

    fact: Literal["not_there"] = "not_there"
    paths: tuple[str, ...]
    empty: bool = False


class FailedLast(Contract):
    """Report that the last call of a part that stands ended badly. `command`: what it was given; `said`: how it
    failed, in the tool's own words; `said_no`: it may be a search, a test or a comparison that says no (exit code
    1).
    """

    fact: Literal["failed_last"] = "failed_last"
    command: str
    tool: str = ""
    said: str = ""
    said_no: bool = False


class StoppedAtEnd(Contract):
    """Name the commands that still ran when the task ended, and that artoo stopped."""

    fact: Literal["stopped_at_end"] = "stopped_at_end"
    commands: tuple[str, ...]


class LeftRunning(Contract):
    """Name the commands that artoo started outside the workspace after the user agreed, each as `ID: command`."""

    fact: Literal["left_running"] = "left_running"
    commands: tuple[str, ...]


class NotSeen(Contract):
    """Name the user's files that the task's commands could not see, in the workspace's own words."""

    fact: Literal["not_seen"] = "not_seen"
    notes: tuple[str, ...]


class ChangedByTwo(Contract):
    """Name the paths that several parts of the task changed at the same time. `parts`: what these were to do."""

    fact: Literal["changed_by_two"] = "changed_by_two"
    paths: tuple[str, ...]
    parts: tuple[str, ...]


class Unformed(Contract):
    """Report that the answer could not be put into the form that was asked for.

    `problem` is that of the form's library.
    """

    fact: Literal["unformed"] = "unformed"
    problem: str


class OwnValues(Contract):
    """Name places of the form (`$.age`) whose values the model put in; the answer does not hold them."""

    fact: Literal["own_values"] = "own_values"
    places: tuple[str, ...]


class NotAgreed(Contract):
    """Name the parts of a task that no user agreed to (`skill PATH`, `start COMMAND`)."""

    fact: Literal["not_agreed"] = "not_agreed"
    what: tuple[str, ...]


class Unheard(Contract):
    """Name the messages that the user wrote to the running task and that no model had read when it ended."""

    fact: Literal["unheard"] = "unheard"
    texts: tuple[str, ...]


class Remark(Contract):
    """A line as it was written: what logs of earlier versions hold."""

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
"""One thing that code knows of a result, whatever its words say."""
