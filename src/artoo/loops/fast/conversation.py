"""The messages of an executor's conversation, and the estimate of their tokens."""

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

# A cautious estimate. Code has about three bytes per token, and prose has more. A Chinese character has three bytes
# and is less than one token.
_BYTES_A_TOKEN = 3
_PICTURE_BYTES = 4_800


@dataclass(slots=True)
class Talk:
    """Messages of a conversation. Messages are only appended, except by compaction.

    The first `reported` messages have been published already. `numbers` maps a tool request's id to the number of
    its call.
    """

    opening: Opening
    messages: list[Message]
    reported: int = 0
    numbers: dict[str, int] = field(default_factory=dict[str, int])
    _measured: int = 0
    _measured_tokens: int = 0

    def say(self, text: str, source: SaidBy = "notice") -> None:
        """Append a message in the user's role."""
        self.messages.append(Said(text=text, source=source))

    def asked_with(self, tools: tuple[ToolSpec, ...], *, max_tokens: int, variant: int, key: str) -> Conversation:
        """Build the conversation that is sent to the model for the next turn."""
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
        """Append the model's turn, and store the server's token count for everything up to it."""
        self.messages.append(Took(turn=spoken.turn))
        self.reported = len(self.messages)
        usage = spoken.usage
        if not usage.estimated:
            self._measured, self._measured_tokens = self.reported, usage.prompt_tokens + usage.completion_tokens

    def returned(
        self, requests: Iterable[ToolRequest], read: Mapping[str, str], numbers: Mapping[str, int]
    ) -> None:
        """Append the results of the calls that the model requested. `numbers` holds the numbers of the calls that
        were actually made."""
        self.messages += [Returned(call_id=one.id, name=one.name, text=read[one.id]) for one in requests]
        self.numbers.update(numbers)

    def replace(self, messages: Iterable[Message]) -> None:
        """Replace the messages with those of a compacted conversation, which has been published already."""
        self.messages = list(messages)
        self.reported = len(self.messages)
        self._measured = self._measured_tokens = 0

    @property
    def tokens(self) -> int:
        """Return the number of tokens of the prompt: the server's last count, plus an estimate for the messages
        since then."""
        if self._measured:
            return self._measured_tokens + tokens_of(self.messages[self._measured :])
        return len(self.opening.text_system.encode()) // _BYTES_A_TOKEN + tokens_of(self.messages)


def tokens_of(messages: Iterable[Message]) -> int:
    """Estimate the number of tokens of these messages."""
    return sum(map(_bytes_of, messages)) // _BYTES_A_TOKEN


def _bytes_of(message: Message) -> int:
    match message:
        case Took(turn=turn):
            return len(turn.model_dump_json().encode())
        case Said() | Returned():
            return len(message.text.encode()) + _PICTURE_BYTES * len(message.images)
