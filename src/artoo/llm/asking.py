"""One question or turn under way: how it is asked, and what it has cost so far."""

from __future__ import annotations

from dataclasses import dataclass

from artoo.contracts.errors import Spent
from artoo.contracts.events import Usage
from artoo.llm.budget import Meter
from artoo.llm.completion import Completion
from artoo.llm.live_text import LiveText
from artoo.llm.wires.how import Form
from artoo.ports.model import Tier

NOTHING_USED = Usage()


@dataclass(slots=True)
class Asking:
    """One question or turn. `live`: hears its words as they come; only turns are streamed (`streams`).

    `native`: the last request offered tools. `completion`: what the last reply holds, read once for the account and
    for the answer.
    """

    contract: str
    meter: Meter
    tier: Tier
    model: str
    live: LiveText | None = None
    streams: bool = False
    form: Form = Form.JSON_SCHEMA
    wire: str = ""
    native: bool = False
    requests: int = 0
    usage: Usage = NOTHING_USED
    completion: Completion | None = None

    def add(self, usage: Usage) -> None:
        """Add what one request used."""
        if self.requests == 1:
            self.usage = usage
            return
        self.usage = Usage(
            prompt_tokens=self.usage.prompt_tokens + usage.prompt_tokens,
            completion_tokens=self.usage.completion_tokens + usage.completion_tokens,
            cached_tokens=self.usage.cached_tokens + usage.cached_tokens,
            estimated=self.usage.estimated or usage.estimated,
        )

    def spent(self) -> Spent:
        """What the question has cost, for its error."""
        usage = self.usage
        return Spent(
            requests=self.requests,
            prompt_tokens=usage.prompt_tokens,
            completion_tokens=usage.completion_tokens,
            cached_tokens=usage.cached_tokens,
            model=self.model,
            wire=self.form.value,
        )
