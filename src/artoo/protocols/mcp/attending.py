"""Wait for a task in an MCP call, with progress notifications and their interval, and elicit consent.

Questions are asked if the client supports that.

Up to protocol version 2025-11-25, the server asks during a call. Since version 2026-07-28 this is not allowed. The
call ends with the question instead, and the client repeats the call with the answer and a sealed state.
"""

from __future__ import annotations

import asyncio
import json
from dataclasses import dataclass
from typing import Any

from mcp.server.mcpserver import Context
from mcp.shared.exceptions import MCPError
from mcp_types import ElicitRequest, ElicitRequestFormParams, ElicitResult, InputRequiredResult
from mcp_types.version import MODERN_PROTOCOL_VERSIONS

from artoo.contracts.confirmation import ConfirmationRequest, Consent, Words
from artoo.contracts.recording import AskedBy
from artoo.protocols.consent import question_text
from artoo.protocols.handed import HandedTask, OpenQuestion
from artoo.protocols.reports import shown
from artoo.redaction import Redactor
from artoo.words.question import consent_named, options_of

Call = Context[Any, Any]

CONSENT = "consent"
"""The key of the only request for input, which is the question for approval."""
PROGRESS_SECONDS = 0.25
"""Minimum number of seconds between two progress notifications."""
_LONGEST_NAME = 100


@dataclass(frozen=True, slots=True)
class Asked:
    """The sealed state of a call. It names the task and the question to which the answer belongs."""

    task_id: str
    digest: str

    def seal(self) -> str:
        """Return the state as text, which the SDK encrypts."""
        return json.dumps([self.task_id, self.digest])

    @classmethod
    def of(cls, call: Call) -> Asked | None:
        """Read the state in a call that is repeated. Returns None if the call is not a repeated one."""
        if call.request_state is None:
            return None
        task_id, digest = json.loads(call.request_state)
        return cls(str(task_id), str(digest))


def caller_of(call: Call) -> AskedBy:
    """Return the protocol, the name and the version of the client."""
    params = call.session.client_params
    if params is None:
        return AskedBy(protocol="mcp")
    info = params.client_info
    return AskedBy(protocol="mcp", client=info.name[:_LONGEST_NAME], version=info.version[:_LONGEST_NAME])


def can_ask(call: Call) -> bool:
    """Return whether the client can show forms."""
    capabilities = call.client_capabilities
    elicitation = capabilities.elicitation if capabilities is not None else None
    return elicitation is not None and (elicitation.form is not None or elicitation.url is None)


def is_modern(call: Call) -> bool:
    """Return whether the protocol forbids questions during a call."""
    return call.protocol_version in MODERN_PROTOCOL_VERSIONS


async def attend(task: HandedTask, call: Call, seconds: float, clean: Redactor) -> InputRequiredResult | None:
    """Wait until the task ends or until `seconds` have passed. If the client must answer a question first, return
    the question."""
    loop = asyncio.get_running_loop()
    until, spoken = loop.time() + seconds, 0.0
    while not task.ended:
        told, question = task.told, task.question
        if question is not None and can_ask(call):
            try:
                if is_modern(call):
                    return asking(question.request, task.task_id, clean)
                await _ask(question, call, clean)
            except ValueError as error:
                # If there is no answer, changes stay pending (`apply` can apply them later), and an operation is
                # not done.
                question.unanswered(f"the question is too long for a form: {error}")
            continue
        # A task has many messages in a second, which would be too many for the client.
        if loop.time() - spoken >= PROGRESS_SECONDS:
            spoken = loop.time()
            await call.report_progress(told, None, shown(_progress(task), clean))
        try:
            async with asyncio.timeout_at(until):
                await task.changed(told)
        except TimeoutError:
            return None
    return None


def asking(request: ConfirmationRequest, task_id: str, clean: Redactor) -> InputRequiredResult:
    """Build the response that ends a call with a question. Raises ValueError if the question is too long."""
    message = clean.text(question_text(request))
    params = ElicitRequestFormParams(message=message, requested_schema=form(request))
    return InputRequiredResult(
        input_requests={CONSENT: ElicitRequest(params=params)}, request_state=Asked(task_id, request.digest).seal()
    )


async def ask_now(request: ConfirmationRequest, call: Call, clean: Redactor) -> Consent | Words | None:
    """Ask during the call. An answer that is not clear counts as no. Returns None if the client cannot be asked.

    Raises ValueError if the question is too long.
    """
    message = clean.text(question_text(request))
    try:
        result = await call.session.elicit_form(message, form(request), call.request_id)
    except MCPError:
        # The client cannot show the question, or has disconnected.
        return None
    return said_in(request, result)


def answered(request: ConfirmationRequest, call: Call) -> Consent | Words:
    """Read the answer in a call that is repeated."""
    found = (call.input_responses or {}).get(CONSENT)
    return said_in(request, found) if isinstance(found, ElicitResult) else Consent.NO


def said_in(request: ConfirmationRequest, result: ElicitResult) -> Consent | Words:
    """Read the answer in a form. If the form was declined or closed, this means no, which keeps reviewed changes
    pending."""
    if result.action != "accept" or result.content is None:
        return Consent.NO
    words = result.content.get("words")
    if request.wants != "consent" and isinstance(words, str) and words.strip():
        return Words(text=words.strip())
    return consent_named(request, result.content.get("answer"))


def form(request: ConfirmationRequest) -> dict[str, Any]:
    """Build the JSON schema of the form. It has a choice, and a text field if the request accepts a text."""
    options = options_of(request)
    words = {"type": "string", "title": "Answer" if request.wants == "words" else "Changes to the plan"}
    if not options:
        return {"type": "object", "properties": {"words": words}, "required": ["words"]}
    choice = {
        "type": "string",
        "title": "Answer",
        "description": "; ".join(f"{one.name}: {one.label}" for one in options),
        "enum": [one.name for one in options],
    }
    fields = {"answer": choice} if request.wants == "consent" else {"answer": choice, "words": words}
    return {"type": "object", "properties": fields, "required": ["answer"]}


async def _ask(question: OpenQuestion, call: Call, clean: Redactor) -> None:
    """Ask one question. If the question is answered elsewhere meanwhile, the request to this client is cancelled.

    Raises ValueError if the question is too long.
    """
    asking = asyncio.ensure_future(ask_now(question.request, call, clean))
    try:
        await asyncio.wait({asking, question.said}, return_when=asyncio.FIRST_COMPLETED)
        if question.said.done():
            return
        said = asking.result()
    finally:
        asking.cancel()
        await asyncio.wait({asking})
    if said is None:
        question.unanswered("the client could not ask")
    else:
        question.answer(said)


def _progress(task: HandedTask) -> str:
    of = f"{task.done} of {task.planned}: " if task.planned else ""
    return f"{of}{task.doing or task.request}"
