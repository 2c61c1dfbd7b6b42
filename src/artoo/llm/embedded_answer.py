"""Puts the pieces of a streamed completion together into the one body that a server sends when it does not stream.

The embedded model always streams, because only a stream can be stopped in the middle.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import cast

from artoo.llm.runaway import TAIL, runs_away
from artoo.llm.transport import Json, TransportReply

HEADERS: Mapping[str, str] = {"content-type": "application/json"}
_LOOKED_AFTER = 32
"""Pieces between two looks at whether the answer goes round in circles."""


class StreamedAnswer:
    """Collects chunks (`add`) and gives the whole reply (`reply`). One answer each; not safe between threads."""

    def __init__(self) -> None:
        self._text: list[str] = []
        self._reasoning: list[str] = []
        self._tool_calls: dict[int, dict[str, Json]] = {}
        self._last: dict[str, Json] = {}
        self._finish_reason: Json = None
        self._error: dict[str, Json] | None = None

    def add(self, chunk: Mapping[str, object]) -> None:
        """Takes one chunk: a `chat.completion.chunk`, or an `error` object in its place."""
        piece = cast("dict[str, Json]", dict(chunk))
        error = piece.get("error")
        if isinstance(error, dict):
            self._error = error
            return
        for key in ("id", "created", "model", "system_fingerprint", "usage", "timings"):
            if key in piece:
                self._last[key] = piece[key]
        choices = piece.get("choices")
        if isinstance(choices, list) and choices and isinstance(choices[0], dict):
            self._add_choice(choices[0])

    def ran_away(self) -> bool:
        """Whether it goes round in circles, looked at now and then; then it has been cut off."""
        said = self._text or self._reasoning
        if not said or len(said) % _LOOKED_AFTER or not runs_away("".join(said[-TAIL:])):
            return False
        self._finish_reason = "length"
        return True

    def _add_choice(self, choice: dict[str, Json]) -> None:
        self._finish_reason = choice.get("finish_reason") or self._finish_reason
        delta = choice.get("delta")
        if not isinstance(delta, dict):
            return
        content, reasoning, calls = delta.get("content"), delta.get("reasoning_content"), delta.get("tool_calls")
        if isinstance(content, str):
            self._text.append(content)
        if isinstance(reasoning, str):
            self._reasoning.append(reasoning)
        for call in calls if isinstance(calls, list) else []:
            if isinstance(call, dict):
                self._add_tool_call(call)

    def _add_tool_call(self, call: dict[str, Json]) -> None:
        index = call.get("index")
        number = index if isinstance(index, int) else 0
        known = self._tool_calls.setdefault(number, {"type": "function", "function": {"name": "", "arguments": ""}})
        if "id" in call:
            known["id"] = call["id"]
        whole, piece = known["function"], call.get("function")
        if isinstance(whole, dict) and isinstance(piece, dict):
            for key in ("name", "arguments"):
                whole[key] = str(whole[key]) + str(piece.get(key) or "")

    def reply(self) -> TransportReply:
        """The reply as an HTTP server would have sent it: 200, or the error's own status (500 when it has none)."""
        if self._error is not None:
            code = self._error.get("code")
            return TransportReply(code if isinstance(code, int) else 500, HEADERS, {"error": self._error})
        message: dict[str, Json] = {"role": "assistant", "content": "".join(self._text)}
        if self._reasoning:
            message["reasoning_content"] = "".join(self._reasoning)
        if self._tool_calls:
            message["tool_calls"] = [self._tool_calls[number] for number in sorted(self._tool_calls)]
        choice: Json = {"index": 0, "finish_reason": self._finish_reason, "message": message}
        return TransportReply(200, HEADERS, {**self._last, "object": "chat.completion", "choices": [choice]})
