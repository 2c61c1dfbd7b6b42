"""Questions of a running task that want words: an executor's own, and the approval of a plan (SPEC section 3.5).

They reach the user on the same way as Law 1's questions (terminal, web UI, editor, library), as a
ConfirmationRequest whose `wants` is not `consent`.
"""

from __future__ import annotations

import hashlib

from artoo.contracts.confirmation import ConfirmationRequest, Consent, Words
from artoo.contracts.plan import Plan
from artoo.contracts.steering import PlanAnswered, PlanProposed, QuestionAsked
from artoo.words.language import language_of


def question_of(asked: QuestionAsked) -> ConfirmationRequest:
    """Return an executor's question as surfaces show it."""
    return ConfirmationRequest(
        digest=_digest(asked.subtask_id, asked.question),
        title=asked.question,
        language=language_of(asked.question),
        wants="words",
    )


def plan_shown(proposed: PlanProposed) -> ConfirmationRequest:
    """Return a plan as surfaces show it: the subtasks, then the criteria that the result is held to."""
    plan = proposed.plan
    steps = (f"{number}. {each.intent}" for number, each in enumerate(plan.subtasks, 1))
    criteria = (f"✓ {each.text}" for each in plan.task_criteria)
    title = f"Plan ({plan.effort})" if plan.effort else "Plan"
    return ConfirmationRequest(
        digest=_digest("plan", plan.model_dump_json()),
        title=title,
        details=(*steps, *criteria, *_reply(plan)),
        language=language_of("\n".join(each.intent for each in plan.subtasks)),
        wants="plan",
    )


def decision_on(said: Words | Consent) -> PlanAnswered:
    """Return what an answer to a proposed plan means. Words say what must be different; empty ones approve."""
    if isinstance(said, Words):
        remarks = said.text.strip()
        return PlanAnswered(decision="change", remarks=remarks) if remarks else PlanAnswered(decision="approve")
    return PlanAnswered(decision="approve" if said.is_yes else "reject")


def _reply(plan: Plan) -> tuple[str, ...]:
    return tuple(text for text in (plan.reply, plan.question) if text)


def _digest(*parts: str) -> str:
    return hashlib.sha256("\0".join(parts).encode()).hexdigest()
