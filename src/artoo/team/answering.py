"""Answer a letter or a patrol item by a task, with limits on the answer and on earlier letters in the prompt.

Reference: SPEC section 11.

The answer is the summary of the task's result. The operator gets the same text as for a task of their own. The
changes of these tasks are applied without a review. Therefore an agent works on them in its own folder of the
workspace. The approval gate decides about all other operations, and asks no one.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Mapping

from artoo.agents.cognition.store import Session
from artoo.agents.heartbeat.duties import Done, throttled_ending
from artoo.agents.mail.rows import MailClaim
from artoo.agents.patrol.patrol import PatrolRequest
from artoo.contracts.agents import OPERATOR, Mail, Priority
from artoo.contracts.errors import ClaimLost, MailRefused
from artoo.contracts.solution import FinalResult, StoppedBy
from artoo.contracts.text import shortened
from artoo.prompts.segments import Segment
from artoo.runtime.app.run_options import RunOptions
from artoo.runtime.task.agent_context import Behalf
from artoo.team.bench import Bench, Member
from artoo.team.holding import held
from artoo.words.result import result_words
from artoo.words.settling import waiting

logger = logging.getLogger(__name__)

LONGEST_ANSWER = 20_000
EARLIER, LONGEST_EARLIER = 4, 600
"""Maximum number of earlier letters that are shown with a letter, and of characters of each of them."""


async def answer(bench: Bench, member: Member, claim: MailClaim) -> Done:
    """Run the request in a letter, and send the answer. If the letter is an answer itself, it is only stored.

    Raises IdentityRefused, ActivityStoreError.
    """
    try:
        return await (
            _answer(bench, member, claim) if claim.mail.in_reply_to is None else _read(bench, member, claim)
        )
    except asyncio.CancelledError:
        await asyncio.shield(bench.office.mailbox.release(claim))
        raise


async def _answer(bench: Bench, member: Member, claim: MailClaim) -> Done:
    mail = claim.mail
    context = {Segment.MAIL: await _about(bench, mail)}
    try:
        doing = _do(bench, member, mail.text, context, f"mail:{mail.id}")
        result = await held(doing, lambda: bench.office.mailbox.renew(claim), bench.office.clock)
    except ClaimLost:
        return Done(items=1)
    done = _done(result)
    if done.throttled is not None or result.stopped_by is StoppedBy.INTERRUPTED:
        await bench.office.mailbox.release(claim)
        return done
    session = Session(result.task_id, "mail", result.summary, mail=mail.id)
    await bench.minds.remember(member.name, session, mail.text, result)
    try:
        await bench.office.mailbox.answer(claim, _told(result, mail.sender))
    except MailRefused as error:
        await bench.office.mailbox.archive(claim, f"done, but not answered: {error}")
    return done


async def _about(bench: Bench, mail: Mail) -> str:
    """Return the sender, and the earlier letters between the two agents. A letter may refer to these."""
    lines = [f"The request is a letter from {mail.sender}. Your result is the answer."]
    earlier = await bench.office.mailbox.earlier(mail, limit=EARLIER)
    if earlier:
        lines.append("What you two wrote before, oldest first; the request may go on from it:")
        lines += (f"{one.sender}: {shortened(one.text, LONGEST_EARLIER)}" for one in earlier)
    return "\n".join(lines)


async def _read(bench: Bench, member: Member, claim: MailClaim) -> Done:
    """Store an answer that came after the agent had stopped waiting for it, so that the agent remembers it. Archive
    the letter."""
    mail = claim.mail
    await bench.minds.note(
        member.name, Session(mail.id, "mail", f"{mail.sender} answered: {mail.text}", mail=mail.id)
    )
    await bench.office.mailbox.archive(claim, "read")
    return Done(items=1)


async def patrol(bench: Bench, member: Member, request: PatrolRequest) -> Done:
    """Run the request of a patrol item, and send the result to the operator, once."""
    context = {Segment.MAIL: f"The request is an item of your patrol ({request.source})."}
    result = await _do(bench, member, request.text, context, request.key)
    done = _done(result)
    if done.throttled is not None or result.stopped_by is StoppedBy.INTERRUPTED:
        return Done(items=1, llm_calls=done.llm_calls, throttled=done.throttled or "stopped")
    await bench.minds.remember(member.name, Session(result.task_id, "patrol", result.summary), request.text, result)
    try:
        await bench.office.mailbox.send(
            member.name,
            OPERATOR,
            f"Patrol: {request.text}\n\n{_told(result, OPERATOR)}",
            priority=Priority.BACKGROUND,
            mail_id=request.key,
        )
    except MailRefused as error:
        # The work is done. Repeating it would cost as much and give no new information.
        logger.warning(
            "what came of a patrol item of %s (task %s) is not told: %s", member.name, result.task_id, error
        )
    return done


def _told(result: FinalResult, recipient: str) -> str:
    """Return the text of the letter. For the operator, it is a readable text with the pending changes that need
    approval."""
    if recipient != OPERATOR:
        return result.summary[:LONGEST_ANSWER]
    found = result.changes
    lines = [result_words(result.language).plain(result, told=False)[:LONGEST_ANSWER]]
    if found.waits:
        lines.append(waiting(found.reason, found.counts, len(found.conflicts), result.language))
        lines.append(f"artoo diff {result.task_id}")
    return "\n\n".join(filter(None, lines))


async def _do(bench: Bench, member: Member, request: str, context: Mapping[Segment, str], work: str) -> FinalResult:
    desk = await asyncio.to_thread(bench.desk, member.name)
    known = {Segment.CURATED_KNOWLEDGE: await bench.minds.knowledge(member.name, request)}
    behalf = Behalf(
        standing=member.standing({**known, **context}),
        must_not=member.must_not,
        tools=bench.mail_tools(member.name, work),
        tier=member.tier,
    )
    options = RunOptions(project=desk, workspace=bench.workspace, budgets=member.budgets, behalf=behalf)
    result = await bench.artoo.run(request, options=options)
    # If the identity was changed meanwhile, the result must not be sent as an answer of this agent.
    await member.registry.check(member.folder)
    return result


def _done(result: FinalResult) -> Done:
    changes = result.changes
    all_of_it = tuple(one.path for one in changes.changes) if changes.state == "applied" else ()
    made = changes.applied or all_of_it
    return Done(items=1, llm_calls=result.cost.llm_calls, throttled=throttled_ending(result), made=made)
