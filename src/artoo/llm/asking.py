"""The state of one running question or turn, with its options and its cost so far."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from artoo.contracts.events import Usage
from artoo.llm.budget import Budget, Demand
from artoo.llm.text.live_text import LiveText
from artoo.llm.wires.how import Form
from artoo.ports.model import Tier

NOTHING_USED = Usage()


@dataclass(slots=True)
class Asking:
    """One question or one turn of a conversation. `live` receives the words of the answer as they arrive. Only
    turns are streamed (`streams`).

    `native`: whether the last request offered tools by native function calling.
    """

    contract: str
    meter: Budget
    tier: Tier
    model: str
    started: float
    live: LiveText | None = None
    streams: bool = False
    form: Form = Form.JSON_SCHEMA
    wire: str = ""
    native: bool = False
    repaired: bool = False
    small: bool = False
    requests: int = 0
    billed: int = 0
    money: float | None = None
    usage: Usage = NOTHING_USED

    def settle(self, reserved: Demand, used: Usage | None) -> None:
        """Count one request by its usage. None means that the request was refused or never sent, so that it cost
        nothing."""
        if used is None:
            self.meter.release(reserved)
            return
        cost = self.meter.settle(reserved, used)
        self.billed += 1
        if cost is not None:
            self.money = (self.money or 0.0) + cost
        self.usage = used if self.usage is NOTHING_USED else _sum(self.usage, used)

    def spent(self, now: float) -> dict[str, Any]:
        """Return the cost so far, with the names of the fields of `contracts.events.Spent`."""
        native = self.wire if self.native else "text"
        return {
            "model": self.model,
            "usage": self.usage,
            "duration_ms": round((now - self.started) * 1_000),
            "wire": native if self.streams else self.form.value,
            "requests": self.requests,
            "repaired": self.repaired,
            "billed": self.billed,
            "money": self.money,
            "small": self.small,
        }


def _sum(one: Usage, other: Usage) -> Usage:
    return Usage(
        prompt_tokens=one.prompt_tokens + other.prompt_tokens,
        completion_tokens=one.completion_tokens + other.completion_tokens,
        cached_tokens=one.cached_tokens + other.cached_tokens,
        estimated=one.estimated or other.estimated,
    )
