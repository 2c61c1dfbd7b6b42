"""Show the gate's questions as permission requests of the editor; the answers are in `words/question.py`."""

from __future__ import annotations

import asyncio

from acp.exceptions import RequestError
from acp.helpers import update_agent_message_text
from acp.schema import AllowedOutcome, PermissionOption, PermissionOptionKind, RequestPermissionResponse

from artoo.contracts.confirmation import Consent
from artoo.protocols.acp.telling import Teller
from artoo.protocols.consent import question_text
from artoo.protocols.handed import HandedTask, OpenQuestion
from artoo.words.question import consent_named, options_of


def _kind(consent: Consent) -> PermissionOptionKind:
    """Return how an editor may show an answer to a question. No answer is remembered after the end of its task."""
    if consent is Consent.TASK:
        return "allow_always"
    return "allow_once" if consent.is_yes else "reject_once"


async def attend(task: HandedTask, teller: Teller) -> None:
    """Send every question of a task to the editor, until the task has ended."""
    while not task.ended:
        told, question = task.told, task.question
        if question is None:
            await task.changed(told)
        else:
            await put(question, task.task_id, teller)


async def put(question: OpenQuestion, task_id: str, teller: Teller) -> None:
    """Send one question. Pass its answer on, unless the question was closed meanwhile."""
    request = question.request
    try:
        text = question_text(request)
    except ValueError as error:
        # A question is never shortened. If it is too long, the changes stay pending or the operation is not done.
        question.unanswered(f"the question is too long for an editor: {error}")
        return
    # An editor has no form for a text, so the next prompt of the session is the answer.
    if request.wants == "words":
        await teller.say(update_agent_message_text(teller.clean.text(text)))
        await asyncio.wait({question.said})
        return
    call = await teller.ask(task_id, request, text)
    options = [
        PermissionOption(option_id=one.name, name=one.label, kind=_kind(one.consent)) for one in options_of(request)
    ]
    asking = asyncio.ensure_future(teller.client.request_permission(teller.session_id, call, options))
    try:
        await asyncio.wait({asking, question.said}, return_when=asyncio.FIRST_COMPLETED)
        if not question.said.done():
            _answer(question, asking.result())
    except (ConnectionError, RequestError, ValueError) as error:
        question.unanswered(f"the editor gave no answer: {error}")
    finally:
        asking.cancel()
        await asyncio.wait({asking})
    await teller.asked(task_id, request, agreed=_agreed(question))


def _answer(question: OpenQuestion, response: RequestPermissionResponse) -> None:
    outcome = response.outcome
    if isinstance(outcome, AllowedOutcome):
        question.answer(consent_named(question.request, outcome.option_id))
    else:
        # the user closed the question without an answer
        question.answer(Consent.NO)


def _agreed(question: OpenQuestion) -> bool:
    said = question.said
    if not said.done() or said.cancelled() or said.exception() is not None:
        return False
    return isinstance(answer := said.result(), Consent) and answer.is_yes
