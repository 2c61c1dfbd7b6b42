"""`ScriptedModel` and its transport, which play a script inside the process."""

from __future__ import annotations

import asyncio
from collections.abc import Collection, Mapping
from types import TracebackType
from typing import TypeVar, cast

import orjson
from pydantic import BaseModel

from artoo.contracts.errors import ModelUnreachable
from artoo.llm.budget import Budget
from artoo.llm.client import EndpointModel
from artoo.llm.retry import RetryPolicy
from artoo.llm.transport import Json, OnEvent, TransportReply
from artoo.ports.clock import Clock
from artoo.ports.model import Answer, Conversation, Known, OnText, Question, Spoken, Tier
from artoo.testing.clock import FakeClock
from artoo.testing.replies import Ending, Reply
from artoo.testing.script import Script, ScriptError, ScriptPlayer
from artoo.testing.turns import chunks, is_streamed

T = TypeVar("T", bound=BaseModel)


class ScriptedTransport:
    """A Transport that has a script in place of a server. Bodies are converted to JSON, so that values that HTTP
    cannot send fail here too."""

    def __init__(self, player: ScriptPlayer, *, owned_by: str = "scripted", name: str = "scripted") -> None:
        self._player = player
        self._owned_by = owned_by
        self._name = name

    @property
    def name(self) -> str:
        """Return the name that was given."""
        return self._name

    async def post(
        self,
        body: Mapping[str, object],
        *,
        timeout: float,
        path: str = "/chat/completions",
        on_event: OnEvent | None = None,
    ) -> TransportReply:
        """Return the next reply of the script. It is a stream if the request asks for one."""
        # The body is converted to JSON and back, so that a value that HTTP cannot send fails here too.
        sent = cast(dict[str, Json], orjson.loads(orjson.dumps(dict(body))))
        reply, usage = self._player.reply_to(sent)
        # In one process, a broken connection and a stall look the same to the client: there is no answer before its
        # timeout.
        if reply.ending is not Ending.WHOLE or reply.delay >= timeout:
            raise ModelUnreachable(f"the script let this call fail ({reply.ending.value})", transient=True)
        if reply.delay:
            await asyncio.sleep(reply.delay)
        headers = {name.lower(): value for name, value in reply.headers.items()}
        whole = reply_body(reply, usage)
        if not is_streamed(reply, sent):
            return TransportReply(reply.status, headers, cast(Json, whole))
        events = tuple(cast("list[dict[str, Json]]", chunks(whole)))
        if on_event is not None:
            for event in events:
                on_event(event)
        return TransportReply(reply.status, headers, None, events=events)

    async def models(self, *, timeout: float) -> TransportReply:
        """Return one model, whose owner is `owned_by`."""
        return TransportReply(200, {}, cast(Json, models_body(self._owned_by)))

    async def close(self) -> None:
        """Return at once, because nothing has to be closed."""


class ScriptedModel:
    """A Model for tests. It is the real client with its parsing, repair and retries, but with a script in place of
    a server.

    Use it in a `with` block. At the end of the block, it raises ScriptError if there are unused entries or requests
    without a script. Outside of the block it does not answer, unless `leftover` permits unused entries. `requests`
    are the requests that the script received. The waits of retries take no time, unless a `clock` is given.
    """

    def __init__(
        self,
        script: Script,
        *,
        refuse: Collection[str] = (),
        owned_by: str = "scripted",
        clock: Clock | None = None,
        retry: RetryPolicy | None = None,
        leftover: bool = False,
    ) -> None:
        self._watched = self._leftover = leftover
        self.player = ScriptPlayer(script, refuse=refuse)
        transport = ScriptedTransport(self.player, owned_by=owned_by)
        self._model = EndpointModel(transport, "scripted", clock or FakeClock(auto_advance=True), retry=retry)

    async def ask(self, question: Question[T], *, meter: Budget | None = None) -> Answer[T]:
        """Implement `artoo.ports.model.Model`. Raises ScriptError outside of a `with` block."""
        self._require_block()
        return await self._model.ask(question, meter=meter)

    async def converse(
        self, conversation: Conversation, on_text: OnText | None = None, *, meter: Budget | None = None
    ) -> Spoken:
        """Implement `artoo.ports.model.Converses`. Raises ScriptError outside of a `with` block."""
        self._require_block()
        return await self._model.converse(conversation, on_text, meter=meter)

    async def known(self, tier: Tier) -> Known:
        """Implement `artoo.llm.budget.MeteredModel`."""
        return await self._model.known()

    async def close(self) -> None:
        """Return at once, because nothing has to be closed."""

    def _require_block(self) -> None:
        if not self._watched:
            raise ScriptError(
                "a ScriptedModel says at the end of its block what script was left: with ScriptedModel(…) as model:"
            )

    def __enter__(self) -> ScriptedModel:
        self._watched = True
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if not self._leftover:
            complain(self.player, error)


def complain(player: ScriptPlayer, error: BaseException | None) -> None:
    """Raise ScriptError at the end of a test. If another error was raised already, only add a note about requests
    without a script to it."""
    if error is None:
        player.check_used_up()
    elif player.unscripted:
        asked = ", ".join(f"{one.contract or '(none)'}: {one.user[:80]!r}" for one in player.unscripted)
        error.add_note(f"the model was asked without script: {asked}")


def reply_body(reply: Reply, usage: Mapping[str, object]) -> dict[str, object]:
    """Return the JSON body of a reply, as a chat-completions server writes it."""
    if reply.status != 200:
        return {"error": {"message": reply.error, "type": "scripted", "code": reply.code or reply.status}}
    message = reply.message if reply.message is not None else {"role": "assistant", "content": reply.text}
    return {
        "id": "chatcmpl-scripted",
        "object": "chat.completion",
        "created": 0,
        "model": "scripted",
        "choices": [{"index": 0, "message": message, "finish_reason": reply.finish}],
        "usage": usage,
    }


def models_body(owned_by: str) -> dict[str, object]:
    """Return the JSON body of the answer to GET /models."""
    return {"object": "list", "data": [{"id": "scripted", "object": "model", "owned_by": owned_by}]}
