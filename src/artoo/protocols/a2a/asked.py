"""What a message of a foreign agent asks for: words, and nothing else."""

from __future__ import annotations

from a2a.types import Message, Role, SendMessageRequest
from a2a.utils.errors import ContentTypeNotSupportedError, InvalidParamsError

from artoo.agents.board.add_task import LONGEST_TEXT
from artoo.agents.foreign.foreign_tasks import Asked

LONGEST_ID = 200
MODES = ("text/plain",)
_TAKEN = frozenset({"text/plain", "text/*", "*/*", "text"})


def asked_in(params: SendMessageRequest, agent: str) -> Asked:
    """A new piece of work. Raises A2AError: what is wrong, and what would be right."""
    message = params.message
    if params.tenant:
        raise InvalidParamsError("there are no tenants here: every agent has an address of its own")
    if message.role != Role.ROLE_USER:
        raise InvalidParamsError("the role of a message to an agent is ROLE_USER")
    for name, given in (("messageId", message.message_id), ("contextId", message.context_id)):
        if len(given) > LONGEST_ID or not given.isprintable():
            raise InvalidParamsError(f"{name} has at most {LONGEST_ID} printable characters")
    if not message.message_id.strip():
        raise InvalidParamsError("a message has an id: messageId")
    modes = params.configuration.accepted_output_modes
    if modes and _TAKEN.isdisjoint(modes):
        raise ContentTypeNotSupportedError("results are text/plain; acceptedOutputModes must have it")
    return Asked(message.message_id, message.context_id, _text(message), agent)


def _text(message: Message) -> str:
    if not message.parts:
        raise InvalidParamsError("a message has at least one part")
    others = [kind for part in message.parts if (kind := part.WhichOneof("content")) != "text"]
    if others:
        raise ContentTypeNotSupportedError(
            f"a part of the kind {others[0] or 'nothing'!r} cannot be read; send text, and nothing else"
        )
    text = "\n\n".join(part.text for part in message.parts).strip()
    if not text or len(text) > LONGEST_TEXT:
        raise InvalidParamsError(f"the text of a message has 1 to {LONGEST_TEXT:,} characters")
    return text
