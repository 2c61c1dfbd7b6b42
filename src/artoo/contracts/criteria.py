"""Criteria of a result and the kinds of checks (file, output, command), with assurance levels and aliases.

The set of checks that code can decide is fixed. Reference: SPEC section 2.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from enum import StrEnum
from typing import Annotated, Literal, cast

from pydantic import BeforeValidator, Field
from pydantic.json_schema import SkipJsonSchema

from artoo.contracts.base import Contract


class Assurance(StrEnum):
    """How reliable a result is, the strongest first. It is confirmed by a check or a fact, by two ways that agree,
    by the judgement of a model, or by nothing (SPEC section 3). Levels must be compared by `strength`, because the
    words are ordered differently."""

    CHECKED = "checked"
    AGREED = "agreed"
    JUDGED = "judged"
    UNVERIFIED = "unverified"

    @property
    def strength(self) -> int:
        """Return the strength as a number, from 3 for checked to 0 for unverified."""
        return _STRENGTHS[self]


_STRENGTHS = {one: strength for strength, one in enumerate(reversed(Assurance))}


def weakest(assurances: Iterable[Assurance]) -> Assurance:
    """Return the weakest of these assurances. Return `unverified` if there are none."""
    return min(assurances, key=lambda one: one.strength, default=Assurance.UNVERIFIED)


class Mode(StrEnum):
    """How much a failed criterion counts in D. It counts fully, or by how consistently it failed (in k of N
    attempts)."""

    VERIFIABLE = "verifiable"
    PLAUSIBLE = "plausible"


class ToolSucceeded(Contract):
    """A check that there was a tool call, and that the last one succeeded. If `tool` is given, only calls of this
    tool count."""

    check: Literal["tool_succeeded"] = "tool_succeeded"
    tool: str | None = None


class OutputMatches(Contract):
    """A check that the output contains a match of `regex`, with case-sensitive matching. `^` and `$` match at the
    ends of a line, and `\\A` and `\\Z` at the ends of the output. `.` does not match a line end."""

    check: Literal["output_matches"] = "output_matches"
    regex: str


class OutputIsJson(Contract):
    """A check that the output is one JSON value. If `schema` (JSON Schema) is given, the value must also be valid
    for it."""

    check: Literal["output_is_json"] = "output_is_json"
    json_schema: dict[str, object] | None = Field(default=None, alias="schema")


class FileExists(Contract):
    """A check that a file or directory exists. Relative paths start at the task's project root."""

    check: Literal["file_exists"] = "file_exists"
    path: str


class FileMatches(Contract):
    """A check that a text file exists and contains a match of `regex`. Matching is the same as in
    `OutputMatches`."""

    check: Literal["file_matches"] = "file_matches"
    path: str
    regex: str


class CommandSucceeds(Contract):
    """A check that a shell command ends with exit code 0 in the read-only sandbox."""

    check: Literal["command_succeeds"] = "command_succeeds"
    command: str


# Other names that models write for these fields. Each of them can mean only one field. No prompt mentions these
# names.
_ALIASES: Mapping[str, str] = {"type": "check", "pattern": "regex", "criterion": "text"}


def own_names(value: object) -> object:
    """Return the object that a model has written, with the names of fields in place of aliases. An alias is ignored
    if the field itself is given."""
    if not isinstance(value, dict):
        return value
    given = cast("dict[str, object]", value)
    names = {name: own for name, own in _ALIASES.items() if own not in given}
    return {names.get(name, name): each for name, each in given.items()}


OF_THE_WORLD = FileExists | FileMatches | CommandSucceeds
"""The checks of files and commands. All other checks are about the answer and its tool calls."""

PlannersCheck = OutputMatches | OutputIsJson | OF_THE_WORLD
"""The checks that the planner is told about, in `prompts/texts/contract_Plan.md`."""

Check = Annotated[
    Annotated[ToolSucceeded | PlannersCheck, Field(discriminator="check")], BeforeValidator(own_names)
]

OF_A_RESULT = frozenset(kind.model_fields["check"].default for kind in (ToolSucceeded, OutputMatches, OutputIsJson))
"""The names of the checks that need the result of a task."""


def in_a_line(check: Check) -> str:
    """Return a check in one line, with its kind and its arguments."""
    given = check.model_dump(mode="json", by_alias=True, exclude={"check"}, exclude_none=True).values()
    return " ".join((check.check, *(each if isinstance(each, str) else json.dumps(each) for each in given)))


def _nothing(found: object) -> bool:
    return found is None


class CheckAmended(Contract):
    """A record by R2 (planner) that it replaced one of its own checks, because the check could not pass. This is
    done at most once for each check. R2 → R4b, R7.

    The text of the criterion is not changed. `failed` is the finding of the old check. The record is also one of
    the facts that the user is shown (`contracts.findings`)."""

    fact: Literal["check_amended"] = "check_amended"
    criterion: str
    before: Check
    after: Check
    reason: str
    failed: str = ""


class Criterion(Contract):
    """One statement about a result that must be true. If it has a `check`, the check alone decides, without a
    model.

    `by` says who wrote it. A criterion of the user is never dropped, and its check is never replaced. `amended`:
    set if the check replaced a check that had failed. The new check can refute the criterion but not confirm it,
    because its author wants the criterion to be met."""

    text: str
    mode: Mode = Mode.PLAUSIBLE
    check: Check | None = None
    by: Literal["person", "planner"] = "planner"
    amended: SkipJsonSchema[CheckAmended | None] = Field(default=None, exclude_if=_nothing)

    @property
    def check_decides(self) -> bool:
        """Return whether the check alone can decide that the criterion is met."""
        return self.check is not None and self.amended is None


# Law 0 as a criterion. It is added if facts refute a result although all its criteria are decided.
AGREES_WITH_EVIDENCE = "The result agrees with what the tools did"
# Added if a second way was required although every criterion is decided without it.
TWO_WAYS_AGREE = "Two independent ways agree"


def by_command(command: str) -> Criterion:
    """Return the option `--check COMMAND` of a user as a criterion."""
    return Criterion(
        text=f"`{command}` succeeds",
        mode=Mode.VERIFIABLE,
        check=CommandSucceeds(command=command),
        by="person",
    )


def from_text(value: object) -> object:
    """Convert a plain string to a plausible criterion (the form of v0.8)."""
    return {"text": value} if isinstance(value, str) else own_names(value)


CriterionLike = Annotated[Criterion, BeforeValidator(from_text)]
"""A Criterion. A plain string is accepted too."""
