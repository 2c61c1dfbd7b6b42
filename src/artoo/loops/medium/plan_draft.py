"""What a model returns under the contract Plan, and how code makes a plan of it that can be kept."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from functools import lru_cache, partial
from typing import Annotated, Any, Literal

from pydantic import BeforeValidator, Field, create_model, model_validator
from pydantic.json_schema import SkipJsonSchema

from artoo.contracts.base import Contract
from artoo.contracts.criteria import (
    CheckAmended,
    CommandSucceeds,
    Criterion,
    FileExists,
    FileMatches,
    Mode,
    OutputIsJson,
    OutputMatches,
    ToolSucceeded,
    from_text,
    own_names,
)
from artoo.contracts.plan import Effort, FirstCall, PlannedSubTask
from artoo.ports.tools import Named
from artoo.ports.tools import own_names as tools_by_alias
from artoo.verdicts.checks import cannot_fail

_MOST_CRITERIA = 6
_MOST_FIRST_CALLS = 8


DraftedCheck = Annotated[
    SkipJsonSchema[ToolSucceeded] | OutputMatches | OutputIsJson | FileExists | FileMatches | CommandSucceeds,
    Field(discriminator="check"),
]


class DraftedCriterion(Contract):
    """A criterion as drafted. What code decides about it is read and not asked for."""

    text: str
    check: Annotated[DraftedCheck, BeforeValidator(own_names)] | None = None
    mode: SkipJsonSchema[Mode] = Mode.PLAUSIBLE
    by: SkipJsonSchema[str] = "planner"


Drafted = Annotated[DraftedCriterion, BeforeValidator(from_text)]


class SubTaskDraft(Contract):
    """One subtask as drafted. The only one may leave out its intent: then it is the request."""

    sequence: int = Field(default=1, ge=1, le=99)
    intent: str = ""
    tool: str | None = None
    success_criteria: tuple[Drafted, ...] = Field(default=(), max_length=_MOST_CRITERIA)
    first_calls: tuple[FirstCall, ...] = Field(default=(), max_length=_MOST_FIRST_CALLS)


class Amendment(Contract):
    """Another check for a criterion whose check cannot hold."""

    criterion: str
    check: Annotated[DraftedCheck, BeforeValidator(own_names)]
    reason: str = Field(min_length=1)


class PlanDraft(Contract):
    """A whole plan as drafted: a reply, a question to the person, or subtasks."""

    reply: str = ""
    question: str = ""
    label: str = Field(default="", alias="kind", max_length=200)
    effort: Effort | None = None
    subtasks: tuple[SubTaskDraft, ...] = ()
    task_criteria: tuple[Drafted, ...] = Field(default=(), max_length=_MOST_CRITERIA)
    deadline: str | None = None
    scope: str | None = None
    amend: SkipJsonSchema[tuple[Amendment, ...]] = ()

    @model_validator(mode="after")
    def _one_of_them(self) -> PlanDraft:
        if not (self.reply.strip() or self.question.strip() or self.subtasks):
            raise ValueError("a plan needs subtasks, or a reply that is the whole answer")
        if len(self.subtasks) > 1 and not all(each.intent.strip() for each in self.subtasks):
            raise ValueError("each of several subtasks needs an intent")
        return self


@lru_cache(maxsize=64)
def plan_schema(
    named: tuple[Named, ...], most_subtasks: int, reading: tuple[str, ...] = (), *, amends: bool = False
) -> type[PlanDraft]:
    """Return PlanDraft with these tools alone, so that constrained decoding cannot invent one. Aliases are read.

    `reading`: the tools that only read, which a first call may name. `amends`: a check that failed may be replaced.
    """
    meant = BeforeValidator(partial(_own_name, tools_by_alias(named)))
    tool: Any = Annotated[_one_of(name for name, _ in named) | None, meant]
    reader: Any = Annotated[_one_of(reading), meant]
    call: Any = create_model("FirstCall", __base__=FirstCall, tool=(reader, ...))
    calls = Field(default=(), max_length=_MOST_FIRST_CALLS if reading else 0)
    of_subtask: dict[str, Any] = {"tool": (tool, None), "first_calls": (tuple[call, ...], calls)}
    subtask: Any = create_model("SubTaskDraft", __base__=SubTaskDraft, **of_subtask)
    fields: dict[str, Any] = {"subtasks": (tuple[subtask, ...], Field(default=(), max_length=most_subtasks))}
    if amends:
        fields["amend"] = (tuple[Amendment, ...], Field(default=(), max_length=_MOST_CRITERIA))
    return create_model("Plan", __base__=PlanDraft, **fields)


def _one_of(names: Iterable[str]) -> Any:
    known = tuple(names)
    return Literal[known] if known else type(None)  # pyright: ignore[reportInvalidTypeForm]


def _own_name(own: Mapping[str, str], given: object) -> object:
    return own.get(str(given), given)


def of_person(text: str, checks: Sequence[Criterion]) -> tuple[Criterion, ...]:
    """What a whole is held to of which nobody wrote a criterion: the person's checks, and the request itself."""
    return (*checks, Criterion(text=text, mode=Mode.PLAUSIBLE))


def subtasks_of(
    drafted: Sequence[SubTaskDraft],
    criteria: Sequence[Criterion],
    request: str,
    *,
    fresh: bool = True,
    scope: str | None = None,
    owed: Collection[str] = (),
    shown: Collection[str] = (),
) -> tuple[PlannedSubTask, ...]:
    """Return the drafted subtasks with criteria and context. `fresh`: nothing of the request is done yet.

    A single subtask that does the whole carries every criterion, so that its own loop can correct it and R4b need
    not ask again; one that does the rest carries the criteria that an earlier round left unmet (`owed`, by text).
    A part without criteria is judged with the whole. `shown`: files that the worker is shown whole, so that no
    first call reads them.
    """
    single = len(drafted) == 1
    alone = single and fresh
    shared = criteria if alone else [each for each in criteria if single and each.text in owed]
    return tuple(
        PlannedSubTask(
            sequence=each.sequence,
            intent=each.intent.strip() or request,
            request=request,
            context=f"Only within: {scope}" if scope else "",
            success_criteria=merged(shared, verifiable(each.success_criteria)),
            tool=each.tool,
            part=not alone,
            first_calls=tuple(
                FirstCall(tool=call.tool, arguments=call.arguments)
                for call in each.first_calls
                if call.tool != "read_file" or str(call.arguments.get("path", "")).removeprefix("./") not in shown
            ),
        )
        for each in drafted
    )


def merged(*groups: Iterable[Criterion]) -> tuple[Criterion, ...]:
    """All criteria once, in order; the first with a text wins, so that one that stands is never softened."""
    by_text: dict[str, Criterion] = {}
    for criterion in (each for group in groups for each in group):
        by_text.setdefault(criterion.text, criterion)
    return tuple(by_text.values())


def verifiable(criteria: Iterable[DraftedCriterion]) -> tuple[Criterion, ...]:
    """Drafted criteria as they count: a check decides unless it cannot fail, and none of them is the person's."""
    return tuple(map(_verifiable, criteria))


def _verifiable(drafted: DraftedCriterion) -> Criterion:
    check = None if drafted.check is None or cannot_fail(drafted.check) else drafted.check
    mode = Mode.PLAUSIBLE if check is None else Mode.VERIFIABLE
    return Criterion(text=drafted.text, mode=mode, check=check)


def amended(
    criteria: Sequence[Criterion], wanted: Sequence[Amendment], failed: Mapping[str, str], before: Iterable[str]
) -> tuple[tuple[Criterion, ...], tuple[CheckAmended, ...]]:
    """The criteria with those checks replaced that may be, and what was replaced.

    Only R2's own check, only one that has `failed` (what it found, by text), only if it was not replaced `before`
    (texts), and only by one that can fail.
    """
    open_texts = failed.keys() - set(before)
    made: dict[str, CheckAmended] = {}
    for criterion in criteria:
        text = criterion.text
        new = next((each for each in wanted if each.criterion == text), None)
        if new is None or criterion.check is None or criterion.by == "person" or text not in open_texts:
            continue
        if new.check != criterion.check and not cannot_fail(new.check):
            made[text] = CheckAmended(
                criterion=text, before=criterion.check, after=new.check, reason=new.reason, failed=failed[text]
            )
    changed = {text: {"check": each.after, "amended": each} for text, each in made.items()}
    return tuple(each.model_copy(update=changed.get(each.text)) for each in criteria), tuple(made.values())
