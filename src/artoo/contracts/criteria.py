"""Criteria of a result and the kinds of checks (file, output, command), with assurance levels and aliases.

The set of checks that code can decide is closed. Reference: SPEC section 2.
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
    """The reliability of a result, strongest first: confirmed by a check or a fact, by two ways that agree, by a
    judge's reading, or by nothing (SPEC section 3). Compare by `strength`, because the words sort differently."""

    CHECKED = "checked"
    AGREED = "agreed"
    JUDGED = "judged"
    UNVERIFIED = "unverified"

    @property
    def strength(self) -> int:
        """Return the strength: 3 for checked down to 0 for unverified."""
        return _STRENGTHS[self]


_STRENGTHS = {one: strength for strength, one in enumerate(reversed(Assurance))}


def weakest(assurances: Iterable[Assurance]) -> Assurance:
    """Return the weakest of these assurances; `unverified` if there are none."""
    return min(assurances, key=lambda one: one.strength, default=Assurance.UNVERIFIED)


class Mode(StrEnum):
    """The weight of a failed criterion in D: fully, or by how consistently it failed (k of N attempts)."""

    VERIFIABLE = "verifiable"
    PLAUSIBLE = "plausible"


class ToolSucceeded(Contract):
    """A check that the last tool call (of `tool`, if given) succeeded, and that there was a call."""

    check: Literal["tool_succeeded"] = "tool_succeeded"
    tool: str | None = None


class OutputMatches(Contract):
    """A check that the output contains a case-sensitive match of `regex`. `^` and `$` match at the ends of a
    line, `\\A` and `\\Z` at the ends of the output, and `.` does not match a line end."""

    check: Literal["output_matches"] = "output_matches"
    regex: str


class OutputIsJson(Contract):
    """A check that the output is one JSON value, and fits `schema` (JSON Schema) if that is given."""

    check: Literal["output_is_json"] = "output_is_json"
    json_schema: dict[str, object] | None = Field(default=None, alias="schema")


class FileExists(Contract):
    """A check that a file or directory exists. Relative paths start at the task's project root."""

    check: Literal["file_exists"] = "file_exists"
    path: str


class FileMatches(Contract):
    """A check that a text file exists and contains a match of `regex`, as in `OutputMatches`."""

    check: Literal["file_matches"] = "file_matches"
    path: str
    regex: str


class CommandSucceeds(Contract):
    """A check that a shell command ends with exit code 0 in the read-only sandbox."""

    check: Literal["command_succeeds"] = "command_succeeds"
    command: str


# Other names that models write for these fields. Each has only one possible meaning; no prompt shows them.
_ALIASES: Mapping[str, str] = {"type": "check", "pattern": "regex", "criterion": "text"}


def own_names(value: object) -> object:
    """Return a model's object with aliases replaced by field names, unless the field is also given itself."""
    if not isinstance(value, dict):
        return value
    given = cast("dict[str, object]", value)
    names = {name: own for name, own in _ALIASES.items() if own not in given}
    return {names.get(name, name): each for name, each in given.items()}


OF_THE_WORLD = FileExists | FileMatches | CommandSucceeds
"""Checks of files and commands. The other checks concern the answer and its tool calls."""

PlannersCheck = OutputMatches | OutputIsJson | OF_THE_WORLD
"""The checks that the planner is told of, in `prompts/texts/contract_Plan.md`."""

Check = Annotated[
    Annotated[ToolSucceeded | PlannersCheck, Field(discriminator="check")], BeforeValidator(own_names)
]

OF_A_RESULT = frozenset(kind.model_fields["check"].default for kind in (ToolSucceeded, OutputMatches, OutputIsJson))
"""The names of the checks that need the result of a task."""


def in_a_line(check: Check) -> str:
    """Return a check as one line: its kind and its arguments."""
    given = check.model_dump(mode="json", by_alias=True, exclude={"check"}, exclude_none=True).values()
    return " ".join((check.check, *(each if isinstance(each, str) else json.dumps(each) for each in given)))


def _nothing(found: object) -> bool:
    return found is None


class CheckAmended(Contract):
    """A record that R2 replaced one of its own checks, once, because it proved impossible. R2 → R4b, R7.

    The criterion's text stays unchanged. `failed` is the finding of the old check. This record is also one of the
    facts that are shown to the user (`contracts.findings`)."""

    fact: Literal["check_amended"] = "check_amended"
    criterion: str
    before: Check
    after: Check
    reason: str
    failed: str = ""


class Criterion(Contract):
    """One assertion about a result. If it has a `check`, only the check decides, without a model.

    `by` is its author: a user's criterion is never dropped and its check never replaced. `amended`: the check
    replaced a failed one, so it can refute but not confirm, because its author wants the criterion to be met."""

    text: str
    mode: Mode = Mode.PLAUSIBLE
    check: Check | None = None
    by: Literal["person", "planner"] = "planner"
    amended: SkipJsonSchema[CheckAmended | None] = Field(default=None, exclude_if=_nothing)

    @property
    def check_decides(self) -> bool:
        """Check whether the check alone can pass the criterion."""
        return self.check is not None and self.amended is None


# Law 0 as a criterion, which is added if facts refute a result although all its criteria are decided.
AGREES_WITH_EVIDENCE = "The result agrees with what the tools did"
# Added if a second way was required although every criterion is decided without it.
TWO_WAYS_AGREE = "Two independent ways agree"


def by_command(command: str) -> Criterion:
    """Return a user's `--check COMMAND` as a criterion."""
    return Criterion(
        text=f"`{command}` succeeds",
        mode=Mode.VERIFIABLE,
        check=CommandSucceeds(command=command),
        by="person",
    )


def from_text(value: object) -> object:
    """Return a plain string as a plausible criterion (the v0.8 form)."""
    return {"text": value} if isinstance(value, str) else own_names(value)


CriterionLike = Annotated[Criterion, BeforeValidator(from_text)]
"""A Criterion, also accepted as a plain string."""
