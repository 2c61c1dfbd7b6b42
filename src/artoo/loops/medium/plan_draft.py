"""The schema of the model's plan, its limits on criteria and first calls, and reasons to refuse it.

Code turns the draft into a plan.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache, partial
from typing import Annotated, Any, Literal

from pydantic import BeforeValidator, Field, create_model, model_validator
from pydantic.json_schema import SkipJsonSchema

from artoo.contracts.base import Contract
from artoo.contracts.criteria import (
    CheckAmended,
    Criterion,
    Mode,
    PlannersCheck,
    ToolSucceeded,
    from_text,
    own_names,
)
from artoo.contracts.plan import Effort, FirstCall, MustNot, PlannedSubTask
from artoo.loops.medium.advice import mentions
from artoo.ports.tools import Named
from artoo.ports.tools import own_names as tools_by_alias
from artoo.verdicts.checks import cannot_fail

_MOST_CRITERIA = 6
_MOST_FIRST_CALLS = 8


DraftedCheck = Annotated[SkipJsonSchema[ToolSucceeded] | PlannersCheck, Field(discriminator="check")]


class DraftedCriterion(Contract):
    """A criterion in a draft. Fields that code decides are accepted, but the schema for the model does not contain
    them."""

    text: str
    check: Annotated[DraftedCheck, BeforeValidator(own_names)] | None = None
    mode: SkipJsonSchema[Mode] = Mode.PLAUSIBLE
    by: SkipJsonSchema[str] = "planner"


Drafted = Annotated[DraftedCriterion, BeforeValidator(from_text)]


class SubTaskDraft(Contract):
    """One subtask in a draft. A single subtask may omit its intent, which is then the request itself."""

    sequence: int = Field(default=1, ge=1, le=99)
    intent: str = ""
    tool: str | None = None
    success_criteria: tuple[Drafted, ...] = Field(default=(), max_length=_MOST_CRITERIA)
    first_calls: tuple[FirstCall, ...] = Field(default=(), max_length=_MOST_FIRST_CALLS)


class Amendment(Contract):
    """A new check for a criterion whose old check cannot pass."""

    criterion: str
    check: Annotated[DraftedCheck, BeforeValidator(own_names)]
    reason: str = Field(min_length=1)


class PlanDraft(Contract):
    """A complete plan in a draft: a reply, a question to the user, or subtasks."""

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
    """Return PlanDraft limited to the tools in `named`, so that constrained decoding cannot invent a tool. Aliases
    of tools are accepted.

    `reading`: the read-only tools, which alone may be named in a first call. `amends`: true if the draft may
    replace failed checks.
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
    """Return the criteria of a task whose plan has none: the user's checks, and the request itself."""
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
    """Return the drafted subtasks with criteria and context. `fresh`: true if no part of the request is done yet.

    A single subtask that does the whole task gets every criterion. Its own validator can then correct it, and the
    meta-validator need not ask a model again. If the single subtask only finishes what earlier rounds began, it
    gets the criteria that they left unmet (`owed`, by text). A subtask without criteria is judged only as a part of
    the whole answer. `shown`: files that the executor is shown completely, so that a first call need not read them.
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
    """Merge lists of criteria in order. If two criteria have the same text, the first is used, so that a standing
    criterion is never weakened."""
    by_text: dict[str, Criterion] = {}
    for criterion in (each for group in groups for each in group):
        by_text.setdefault(criterion.text, criterion)
    return tuple(by_text.values())


def verifiable(criteria: Iterable[DraftedCriterion]) -> tuple[Criterion, ...]:
    """Convert drafted criteria to criteria. A check that cannot fail is dropped. No drafted check counts as written
    by the user."""
    return tuple(map(_verifiable, criteria))


def _verifiable(drafted: DraftedCriterion) -> Criterion:
    check = None if drafted.check is None or cannot_fail(drafted.check) else drafted.check
    mode = Mode.PLAUSIBLE if check is None else Mode.VERIFIABLE
    return Criterion(text=drafted.text, mode=mode, check=check)


def amended(
    criteria: Sequence[Criterion], wanted: Sequence[Amendment], failed: Mapping[str, str], before: Iterable[str]
) -> tuple[tuple[Criterion, ...], tuple[CheckAmended, ...]]:
    """Replace the checks that may be replaced. Return all criteria, and the replacements that were made.

    A check is replaced only if all of these hold: the planner wrote it, it has `failed` (findings by criterion
    text), it was not replaced `before` (criterion texts), and the new check can fail.
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


_WORD = re.compile(r"\w+")
# Two plans with the same tools count as the same plan from this Jaccard similarity of their words on.
NEARLY_SAME = 0.9


@dataclass(frozen=True, slots=True)
class Fingerprint:
    """A form of a plan that can be compared with later plans: its tools in order, the order of its parts, and all
    words of its intents.
    """

    tools: tuple[str | None, ...]
    order: tuple[int, ...]
    words: frozenset[str]

    def similarity(self, other: Fingerprint) -> float:
        """Return the Jaccard similarity of the words of both plans, in [0, 1]."""
        both = self.words | other.words
        return len(self.words & other.words) / len(both) if both else 1.0

    def is_nearly(self, other: Fingerprint) -> bool:
        """Return whether both plans are the same except for a few words. A plan with another tool counts as
        different, although the tool's name is only one word of a long intent. A plan with another order of the
        parts also counts as different, because the order may have been the only mistake.
        """
        return (self.tools, self.order) == (other.tools, other.order) and self.similarity(other) >= NEARLY_SAME


def objections(
    subtasks: Sequence[PlannedSubTask], forbidden: MustNot, tried: Collection[Fingerprint] = ()
) -> list[str]:
    """Return all objections to a plan; an empty list if it may run. `tried`: earlier plans that this plan must
    differ from.

    Unknown tools and too many subtasks are not tested here, because the schema does not allow them. A plan without
    criteria is no objection, because the request itself becomes its criterion.
    """
    found = list[str]()
    for number, subtask in enumerate(subtasks, 1):
        if subtask.tool in forbidden.tools:
            found.append(f"subtask {number} uses {subtask.tool}, which must not be used")
        for identity, target in forbidden.targets:
            used = target and subtask.tool in (identity, identity.partition(":")[0])
            if used and (target in mentions(subtask.intent) or _mentions(subtask.intent, target)):
                found.append(f"subtask {number} uses {target!r} with {identity}, which failed before")
    if tried and any(map(fingerprint(subtasks).is_nearly, tried)):
        found.append("the plan is nearly the same as one that failed; use another kind of tool or another method")
    return found


def fingerprint(subtasks: Sequence[PlannedSubTask]) -> Fingerprint:
    """Compute the fingerprint of a drafted plan."""
    words = (word for each in subtasks for word in _WORD.findall(each.intent.casefold()))
    groups = sorted({each.sequence for each in subtasks})
    order = tuple(groups.index(each.sequence) for each in subtasks)
    return Fingerprint(tuple(each.tool for each in subtasks), order, frozenset(words))


def _mentions(text: str, target: str) -> bool:
    """Return whether a text mentions exactly this name. For example, `data.txt` does not mention `a.txt`."""
    pattern = rf"(?<![\w./-]){re.escape(target)}(?![\w/-]|\.\w)"
    return re.search(pattern, text) is not None
