"""Answer a task's approval questions by policies first, then by the user, and refuse without a user.

Reference: Law 1.
"""

from __future__ import annotations

import asyncio
import hashlib
import logging
import os
from dataclasses import dataclass, field

from artoo.contracts.changes import printable_path
from artoo.contracts.confirmation import (
    NOBODY,
    PERSON,
    POLICY,
    Choice,
    ConfirmationAnswer,
    ConfirmationRequest,
    Consent,
    Words,
)
from artoo.contracts.plan import Plan
from artoo.contracts.settling import ApplyMode, ChangeClass, ClassifiedChange, is_gits
from artoo.contracts.steering import PlanAnswered, PlanProposed, QuestionAsked
from artoo.ports.confirm import Confirm, answer_of, consent_of
from artoo.ports.sandbox import Roots
from artoo.runtime.approvals.multi_prompt import AskedEverywhere
from artoo.tools.approval.policy import Policies
from artoo.words.language import language_of

logger = logging.getLogger(__name__)


@dataclass(slots=True)
class Answers:
    """Answers the questions of one task. The user is asked one question at a time.

    `mode`: decides which changes of the task may be applied without approval. `through`: the name of the program
    through which the user is asked. An answer from another window is recorded without it. `roots`: the project, the
    output folder and the home, which `--apply all` needs.
    """

    policies: Policies = field(default_factory=Policies)
    confirm: Confirm | None = None
    mode: ApplyMode = ApplyMode.NEW
    through: str = ""
    roots: Roots | None = None
    _turn: asyncio.Lock = field(default_factory=asyncio.Lock)

    async def answer(self, request: ConfirmationRequest) -> ConfirmationAnswer:
        """Return the answer to a question, and who gave it."""
        # If `confirm` fails, or is cancelled by other code than the task, the answer is no.
        lines = self._permitting(request)
        if lines:
            permitted = f"{POLICY}{'; '.join(lines)}"
            logger.info("%s permits %s", permitted, request.title)
            return ConfirmationAnswer(digest=request.digest, consent=Consent.ONCE, by=permitted)
        nobody = ConfirmationAnswer(digest=request.digest, consent=Consent.NO, by=NOBODY)
        if self.confirm is None:
            return nobody
        async with self._turn:
            try:
                said = await self.confirm(request)
            except TimeoutError as error:
                logger.info("nobody has answered %s: %s", request.title, error)
                return nobody
            except asyncio.CancelledError:
                asker = asyncio.current_task()
                if asker is None or asker.cancelling():
                    raise
                logger.info("nobody has answered %s: the dialogue was cancelled", request.title)
                return nobody
            except Exception:
                # The caller's own code has failed, so no one has given consent.
                logger.exception("the confirmation dialogue failed; the answer is no")
                return nobody
        elsewhere = isinstance(self.confirm, AskedEverywhere) and self.confirm.was_elsewhere
        return answer_of(request, said, PERSON).model_copy(update={"through": "" if elsewhere else self.through})

    async def words(self, request: ConfirmationRequest) -> Words | Consent:
        """Ask the user a question whose answer is a text. Returns NO if no one can be asked or no one answered."""
        # A policy cannot give a text, so policies are not asked here.
        if self.confirm is None:
            return Consent.NO
        async with self._turn:
            try:
                said = consent_of(await self.confirm(request))
            except TimeoutError:
                return Consent.NO
            except Exception:
                # The caller's own code has failed, so there is no answer.
                logger.exception("the dialogue failed; nothing was answered")
                return Consent.NO
        return Consent.NO if isinstance(said, Choice) else said

    def _permitting(self, request: ConfirmationRequest) -> tuple[str, ...]:
        """Return the policy lines that together permit a request. Return nothing if they do not permit all of
        it."""
        # Policies permit a whole change set or nothing of it, because choosing a part is left to the user. They
        # never permit the changes of an unfinished task, or changes with conflicts.
        review = request.review
        if review is None:
            return self.policies.covering(request.acts)
        if review.unfinished or review.conflicts or self.mode is ApplyMode.ASK or not request.acts:
            return ()
        trusted = {one.path for one in review.changes if self._is_trusted(one)}
        flood = self.mode in (ApplyMode.EDITS, ApplyMode.LIVE, ApplyMode.ALL)
        rest = [act for act in request.acts if act.target not in trusted and not (flood and act.verb == "flood")]
        by_mode = f"--apply {self.mode}"
        if not rest:
            return (by_mode,)
        lines = self.policies.covering(rest)
        return (by_mode, *lines) if lines and len(rest) < len(request.acts) else lines

    def _is_trusted(self, change: ClassifiedChange) -> bool:
        """Return whether the mode alone approves a change which needs approval otherwise."""
        if self.mode in (ApplyMode.EDITS, ApplyMode.LIVE):
            return change.change_class is ChangeClass.EDIT
        if self.mode is not ApplyMode.ALL or self.roots is None:
            return False
        # The mode does not approve two kinds of files, which need approval by name. These are files that start
        # programs in a repository, and start-up files of a home directory that is inside the project.
        by_name = is_gits(change.path) or self.roots.home.is_relative_to(self.roots.project)
        if change.change_class is ChangeClass.PERSISTENCE and by_name:
            return False
        inside = (printable_path(os.fsencode(root)) for root in (self.roots.project, self.roots.workspace))
        return any(change.path.startswith(f"{root}/") for root in inside)


def question_of(asked: QuestionAsked) -> ConfirmationRequest:
    """Return an executor's question in the form that the user interfaces show."""
    return ConfirmationRequest(
        digest=_digest(asked.subtask_id, asked.question),
        title=asked.question,
        language=language_of(asked.question),
        wants="words",
    )


def plan_shown(proposed: PlanProposed) -> ConfirmationRequest:
    """Return a plan in the form that the user interfaces show. It lists the subtasks, then the criteria for the
    result."""
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
    """Return the decision that an answer to a proposed plan contains. A text asks for changes, and an empty text
    approves the plan."""
    if isinstance(said, Words):
        remarks = said.text.strip()
        return PlanAnswered(decision="change", remarks=remarks) if remarks else PlanAnswered(decision="approve")
    return PlanAnswered(decision="approve" if said.is_yes else "reject")


def _reply(plan: Plan) -> tuple[str, ...]:
    return tuple(text for text in (plan.reply, plan.question) if text)


def _digest(*parts: str) -> str:
    return hashlib.sha256("\0".join(parts).encode()).hexdigest()
