"""Collects a streamed completion of the embedded model, and stops one that goes round in circles.

The embedded model always streams, because only a stream can be stopped in the middle.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import cast

from artoo.llm.runaway import TAIL, runs_away
from artoo.llm.streamed import DONE, Event, objects
from artoo.llm.transport import TransportReply
from artoo.llm.wires import chat

HEADERS: Mapping[str, str] = {"content-type": "application/json"}
_LOOKED_AFTER = 32
"""Pieces between two looks at whether the answer goes round in circles."""
_CUT: Event = {"choices": [{"index": 0, "delta": {}, "finish_reason": "length"}]}


class StreamedAnswer:
    """Collects chunks (`add`) and gives the whole reply (`reply`). One answer each; not safe between threads."""

    def __init__(self) -> None:
        self._events: list[Event] = []
        self._said: list[str] = []

    def add(self, chunk: Mapping[str, object]) -> None:
        """Take one chunk: a `chat.completion.chunk`, or an `error` object in its place."""
        event = cast(Event, dict(chunk))
        self._events.append(event)
        for choice in objects(event.get("choices")):
            delta = choice.get("delta")
            said = (delta.get("content") or delta.get("reasoning_content")) if isinstance(delta, dict) else None
            if isinstance(said, str):
                self._said.append(said)

    def ran_away(self) -> bool:
        """True if it goes round in circles, looked at now and then; then it has been cut off."""
        said = self._said
        if not said or len(said) % _LOOKED_AFTER or not runs_away("".join(said[-TAIL:])):
            return False
        self._events.append(_CUT)
        return True

    def reply(self) -> TransportReply:
        """The reply as an HTTP server would have sent it: 200, or the error's own status (500 when it has none)."""
        events = (*self._events, DONE)
        error = next((event["error"] for event in events if isinstance(event.get("error"), dict)), None)
        if isinstance(error, dict):
            code = error.get("code")
            return TransportReply(code if isinstance(code, int) else 500, HEADERS, {"error": error})
        return TransportReply(200, HEADERS, chat.WIRE.gathered(events))
