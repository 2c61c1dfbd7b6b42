"""The executor's side of one conversation with a model: what was said, and how much of the window it fills."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Literal

from artoo.contracts.conversation import Message, Returned, Said, Took, ToolRequest
from artoo.loops.asking import Opening
from artoo.ports.model import Conversation, Spoken, Tier
from artoo.ports.tools import ToolSpec

CONTRACT = "ExecutorStep"

SaidBy = Literal["request", "correction", "user", "control", "notice"]

# Cautious: code has about three, prose more, and a Chinese character is three for less than one token.
_BYTES_A_TOKEN = 3
_PICTURE_BYTES = 4_800


@dataclass(slots=True)
class Talk:
    """Messages that only grow, except when the conversation is compacted.

    `reported` of them are on the stream. `numbers` maps a tool request's id to the number of its call.
    """

    opening: Opening
    messages: list[Message]
    reported: int = 0
    numbers: dict[str, int] = field(default_factory=dict[str, int])
    _measured: int = 0
    _measured_tokens: int = 0

    def say(self, text: str, source: SaidBy = "notice") -> None:
        """Add a message of the user's side."""
        self.messages.append(Said(text=text, source=source))

    def asked_with(self, tools: tuple[ToolSpec, ...], *, max_tokens: int, variant: int, key: str) -> Conversation:
        """Build the conversation that the next turn is asked with."""
        return Conversation(
            contract=CONTRACT,
            tier=Tier.TOOL,
            system=self.opening.system,
            text_system=self.opening.text_system,
            tools=tools,
            messages=tuple(self.messages),
            key=key,
            max_tokens=max_tokens,
            variant=variant,
        )

    def took(self, spoken: Spoken) -> None:
        """Add the model's turn, and remember how many tokens the server counted for everything up to it."""
        self.messages.append(Took(turn=spoken.turn))
        self.reported = len(self.messages)
        usage = spoken.usage
        if not usage.estimated:
            self._measured, self._measured_tokens = self.reported, usage.prompt_tokens + usage.completion_tokens

    def returned(
        self, requests: Iterable[ToolRequest], read: Mapping[str, str], numbers: Mapping[str, int]
    ) -> None:
        """Add what the model reads of each of its requests; `numbers` are those of the calls that were made."""
        self.messages += [Returned(call_id=one.id, name=one.name, text=read[one.id]) for one in requests]
        self.numbers.update(numbers)

    def replace(self, messages: Iterable[Message]) -> None:
        """Resume from a compacted conversation, which is on the stream."""
        self.messages = list(messages)
        self.reported = len(self.messages)
        self._measured = self._measured_tokens = 0

    @property
    def tokens(self) -> int:
        """Return the tokens of the prompt: the server's count, and an estimate for what came since."""
        if self._measured:
            return self._measured_tokens + tokens_of(self.messages[self._measured :])
        return len(self.opening.text_system.encode()) // _BYTES_A_TOKEN + tokens_of(self.messages)


def tokens_of(messages: Iterable[Message]) -> int:
    """Estimate the tokens of these messages."""
    return sum(map(_bytes_of, messages)) // _BYTES_A_TOKEN


def _bytes_of(message: Message) -> int:
    match message:
        case Took(turn=turn):
            return len(turn.model_dump_json().encode())
        case Said() | Returned():
            return len(message.text.encode()) + _PICTURE_BYTES * len(message.images)
