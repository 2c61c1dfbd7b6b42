"""JSON-RPC 2.0 as lines on a wire, in bounds: every line that is no message is answered with an error.

The libraries' own transports read a line however long it is, drop what they cannot read without a word, and run a
request twice that comes twice.
"""

from __future__ import annotations

import json
import logging
from collections import OrderedDict
from dataclasses import dataclass, field
from typing import cast

from pydantic_core import from_json

from artoo.contracts.well_formed import well_formed_json
from artoo.protocols.standard_streams import LONGEST_LINE, TOO_LONG, Wire

logger = logging.getLogger(__name__)

PARSE_ERROR, INVALID_REQUEST = -32_700, -32_600
MOST_IDS = 10_000
"""Ids of requests that are remembered: one that comes again within so many is refused."""

Message = dict[str, object]


@dataclass(slots=True)
class JsonLines:
    """Messages in, messages out."""

    wire: Wire
    _seen: OrderedDict[str | int, None] = field(default_factory=OrderedDict[str | int, None])

    async def receive(self) -> Message | None:
        """The next message; None at the end. Raises ConnectionError when an error can be told to nobody."""
        while (line := await self.wire.line()) is not None:
            if line == TOO_LONG:
                await self._refuse(None, INVALID_REQUEST, f"the message is longer than {LONGEST_LINE} bytes")
                continue
            try:
                raw = read_json(line)
            except ValueError as error:
                await self._refuse(None, PARSE_ERROR, f"this is no JSON: {error}")
                continue
            message = cast(Message, raw) if isinstance(raw, dict) else Message()
            if "method" not in message and "error" in message and message.get("id") is None:
                logger.warning("the client could not read something: %s", str(message["error"])[:500])
                continue  # to answer would be to begin a quarrel
            why = self._refusal(message)
            if why is None:
                return message
            await self._refuse(message.get("id"), INVALID_REQUEST, why)
        return None

    async def send(self, message: Message) -> None:
        """Raises ConnectionError when nobody reads any more."""
        await self.wire.send(json.dumps(message, ensure_ascii=True, separators=(",", ":")).encode())

    def _refusal(self, message: Message) -> str | None:
        """Why it is no message that may be handled; None: it is one."""
        method, has_id, request_id = message.get("method"), "id" in message, message.get("id")
        if message.get("jsonrpc") != "2.0":
            return "this is no JSON-RPC 2.0 message"
        if has_id and not (isinstance(request_id, str) or type(request_id) is int):
            return "the id is neither a text nor a whole number"
        if "method" not in message:
            answers = has_id and ("result" in message) != ("error" in message)
            return None if answers else "this is neither a request nor an answer"
        if not isinstance(method, str) or not isinstance(message.get("params"), dict | None):
            return "the method is no text, or its parameters are no object"
        return self._again(cast("str | int", request_id)) if has_id else None

    def _again(self, request_id: str | int) -> str | None:
        if request_id in self._seen:
            return "a request with this id has come before"
        self._seen[request_id] = None
        if len(self._seen) > MOST_IDS:
            self._seen.popitem(last=False)
        return None

    async def _refuse(self, request_id: object, code: int, why: str) -> None:
        known = request_id if isinstance(request_id, str) or type(request_id) is int else None
        await self.send({"jsonrpc": "2.0", "id": known, "error": {"code": code, "message": why}})


def read_json(line: bytes) -> object:
    """Well-formed (`well_formed_json`), so that the request is answered under its id.

    Raises ValueError for what is no JSON.
    """
    try:
        return from_json(line)
    except ValueError as error:
        try:
            return well_formed_json(line)
        except ValueError:
            raise error from None
