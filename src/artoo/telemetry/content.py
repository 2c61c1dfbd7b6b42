"""What was said, in the conventions' JSON; used only when its capture is switched on."""

from __future__ import annotations

import orjson

from artoo.contracts.well_formed import well_formed

LONGEST = 64 * 1024
"""Characters of one text; the task log has the rest."""


def instructions(text: str) -> str:
    """`gen_ai.system_instructions`."""
    return _json([_part(text)])


def messages(role: str, text: str) -> str:
    """`gen_ai.input.messages` with one message."""
    return _json([{"role": role, "parts": [_part(text)]}])


def answers(text: str) -> str:
    """`gen_ai.output.messages` with one answer."""
    return _json([{"role": "assistant", "parts": [_part(text)], "finish_reason": "stop"}])


def shortened(text: str) -> str:
    """The text itself, cut where it would not fit a span."""
    return text if len(text) <= LONGEST else f"{text[: LONGEST - 1]}…"


def _part(text: str) -> dict[str, str]:
    return {"type": "text", "content": well_formed(shortened(text))}


def _json(value: object) -> str:
    return orjson.dumps(value).decode()
