"""What a model returns under the contract Plan, and how code completes it into criteria that can be kept."""

from __future__ import annotations

import re
from collections.abc import Container, Sequence
from functools import lru_cache
from typing import Any, Literal

from pydantic import Field, create_model

from artoo.contracts.base import Contract
from artoo.contracts.criteria import Criterion, CriterionLike, FileExists, FileMatches, Mode, ToolSucceeded
from artoo.contracts.plan import PlannedSubTask

_MOST_CRITERIA = 4
_WORD = re.compile(r"[A-Za-z0-9]+|[\u3400-\u9fff]{2}")
"""Words of an intent; two Chinese characters count as one."""
_TOO_SHORT = 3


class SubTaskDraft(Contract):
    """One subtask as drafted."""

    sequence: int = Field(default=1, ge=1, le=99)
    intent: str = Field(min_length=1)
    tool: str | None = None
    context: str = ""
    success_criteria: tuple[CriterionLike, ...] = Field(default=(), max_length=_MOST_CRITERIA)


class PlanDraft(Contract):
    """A whole plan as drafted."""

    subtasks: tuple[SubTaskDraft, ...]
    task_criteria: tuple[CriterionLike, ...] = Field(default=(), max_length=_MOST_CRITERIA)


@lru_cache(maxsize=64)
def plan_schema(tools: tuple[str, ...], most_subtasks: int) -> type[PlanDraft]:
    """PlanDraft whose tools are these: constrained decoding then cannot invent one."""
    tool: Any = Literal[tools] if tools else str  # pyright: ignore[reportInvalidTypeForm]
    of_subtask: dict[str, Any] = {"tool": (tool | None, None)}
    subtask: Any = create_model("SubTaskDraft", __base__=SubTaskDraft, **of_subtask)
    fields: dict[str, Any] = {
        "subtasks": (tuple[subtask, ...], Field(min_length=1, max_length=most_subtasks)),
    }
    return create_model("Plan", __base__=PlanDraft, **fields)


def complete(
    draft: PlanDraft, demanded: Sequence[Criterion], fallback: Criterion, context: str, whole: str | None
) -> tuple[tuple[PlannedSubTask, ...], tuple[Criterion, ...]]:
    """Subtasks and task criteria with what the request demands worked in.

    A single subtask that does the whole carries every task criterion, so that its own loop can correct it and
    R4b need not ask again. In a larger plan, or beside what stands already, a demanded file belongs to the
    subtasks that name it. A subtask that runs a tool and has no criterion left must at least have run it well.
    Where nothing at all follows from the request and the draft, the `fallback` stands: a reader has to judge it.

    `whole` is the request when nothing of it is done yet: a single subtask is then the request itself, in the
    person's words, and the drafted intent is how to go about it. Small models drop details when they restate.
    """
    if len(draft.subtasks) == 1 and whole is not None:
        only = draft.subtasks[0]
        criteria = merged(demanded, draft.task_criteria, only.success_criteria) or (fallback,)
        if whole != only.intent:
            approach = f"Plan: {only.intent}" if _says_what(only) else ""
            only = only.model_copy(update={"intent": whole, "context": f"{only.context}\n{approach}".strip()})
        return (_planned(only, criteria, context),), criteria
    task_criteria = merged(demanded, draft.task_criteria) or (fallback,)
    planned = [
        _planned(each, merged(_naming(each, demanded), each.success_criteria), context) for each in draft.subtasks
    ]
    return tuple(planned), task_criteria


def condensed(
    draft: PlanDraft, looking: Container[str], running: Container[str], *, small_model: bool = False
) -> PlanDraft:
    """The draft, or one subtask for all of it when its steps only look (`looking`) before the last one acts.

    One executor looks and acts in one subtask with less to pass on; a step for each look costs a call and loses
    what was seen. The same holds for steps that say which tool and not what to do. The subtask keeps the last
    tool that runs code (`running`), because a program can look, compute and write at once. A `small_model` also
    plans looks beside or after its only program; what they show would stand in the answer.
    """
    programs = [each for each in draft.subtasks if (each.tool or "") in running]
    looks = [each for each in draft.subtasks if (each.tool or "") in looking]
    if small_model and len(programs) == 1 and len(draft.subtasks) == 1 + len(looks):
        return draft.model_copy(update={"subtasks": (programs[0].model_copy(update={"sequence": 1}),)})
    *before, last = draft.subtasks
    chain = all(each.sequence < last.sequence for each in before)
    only_looks = all((each.tool or "") in looking and not each.success_criteria for each in before)
    tool_list = not all(_says_what(each) for each in draft.subtasks)
    if not before or not (tool_list or (chain and only_looks)):
        return draft
    tool = programs[-1].tool if programs else last.tool
    whole = last.model_copy(update={"sequence": 1, "tool": tool})
    return draft.model_copy(update={"subtasks": (whole,)})


def programmed(
    draft: PlanDraft, writing: Container[str], running: Sequence[str], *, small_model: bool = False
) -> PlanDraft:
    """The draft with a program where its single step would write by hand what has to come from a file.

    `writing`: tools that only write what they are given; `running`: tools that run code, best first. For requests
    that name a file to read: a model that types the content out has not read it. Of a `small_model`'s several steps
    without any program one is left: it looks for the rows with `find_text`, and then types them.
    """
    typed = [each for each in draft.subtasks if (each.tool or "") in writing]
    if not running or not typed or any((each.tool or "") in running for each in draft.subtasks):
        return draft
    if len(draft.subtasks) > 1 and not small_model:
        return draft
    return draft.model_copy(
        update={"subtasks": (typed[-1].model_copy(update={"sequence": 1, "tool": running[0]}),)}
    )


def _says_what(draft: SubTaskDraft) -> bool:
    return len(_WORD.findall(draft.intent)) > _TOO_SHORT


def merged(*groups: Sequence[Criterion]) -> tuple[Criterion, ...]:
    """All criteria once, in order; the first with a text wins, so a demanded one is never softened."""
    by_text: dict[str, Criterion] = {}
    for criterion in (each for group in groups for each in group):
        by_text.setdefault(criterion.text, criterion)
    return tuple(by_text.values())


def _planned(draft: SubTaskDraft, criteria: tuple[Criterion, ...], context: str) -> PlannedSubTask:
    if not criteria and draft.tool is not None:
        criteria = (Criterion(text="the tool succeeded", mode=Mode.VERIFIABLE, check=ToolSucceeded()),)
    return PlannedSubTask(
        sequence=draft.sequence,
        intent=draft.intent,
        context="\n\n".join(part for part in (draft.context, context) if part),
        success_criteria=criteria,
        tool=draft.tool,
    )


def _naming(draft: SubTaskDraft, demanded: Sequence[Criterion]) -> list[Criterion]:
    text = f"{draft.intent} {draft.context}"
    return [
        criterion
        for criterion in demanded
        if isinstance(criterion.check, (FileExists, FileMatches)) and criterion.check.path in text
    ]
