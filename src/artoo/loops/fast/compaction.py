"""Shorten a conversation that fills too much of the model's window (both shares), by dropped outputs and a summary.

Reference: SPEC section 3.4.

    outputs of older calls → one line each │ older turns → a summary │ outputs of the newest turns → one line each

Each step runs only if the previous one was not enough. A summary costs a model call, so it is made only if it
shortens the conversation enough. The assignment (the request, the criteria and the project guide) and the user's
messages are never changed.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass

from artoo.contracts.base import Contract
from artoo.contracts.conversation import Message, Returned, Said, Took
from artoo.contracts.text import without_middle
from artoo.loops.fast.conversation import tokens_of

# The share of the window that a conversation may fill before it is compacted.
SHARE = 0.7
# The share of the window that a conversation may fill after compaction, so that there is room for more turns.
_TARGET = 0.5
# This many of the newest turns stay complete if possible.
_WHOLE_TURNS = 5
# Number of characters that remain of an output in the newest turns if no other step was enough.
_LAST_OUTPUT = 2_000

# A function that describes a call's result in one line. It returns "" if the result cannot be read again.
LineOf = Callable[[Returned], str]
# A function that asks for a summary of older turns.
Summarise = Callable[[str], Awaitable[str]]


class Summary(Contract):
    """The answer of a model that was asked to summarise older turns."""

    goal: str
    done: tuple[str, ...] = ()
    decisions: tuple[str, ...] = ()
    files_changed: tuple[str, ...] = ()
    open_points: tuple[str, ...] = ()

    def text(self) -> str:
        """Write the summary as text for the conversation."""
        lists = {
            "Done": self.done,
            "Decisions": self.decisions,
            "Files changed": self.files_changed,
            "Open": self.open_points,
        }
        told = ("\n".join((f"{name}:", *(f"- {one}" for one in each))) for name, each in lists.items() if each)
        return "\n".join((f"Goal: {self.goal}", *told))


def is_due(tokens: int, window: int) -> bool:
    """Return whether a conversation of this size must be compacted."""
    return tokens > SHARE * window


@dataclass(slots=True)
class Compaction:
    """One compaction, with the current messages, the number of their tokens, and the number of tokens that is
    allowed."""

    messages: list[Message]
    tokens: int
    target: int
    line_of: LineOf
    summarised: bool = False

    @classmethod
    def of(cls, messages: Sequence[Message], tokens: int, window: int, line_of: LineOf) -> Compaction:
        """Start a compaction. If the server refused the conversation although its estimated size fits the window,
        the allowed size is half of it."""
        target = round(_TARGET * window) if is_due(tokens, window) else tokens // 2
        return cls(list(messages), tokens, target, line_of)

    @property
    def excess(self) -> int:
        """Return how many tokens must still be removed; zero or less if the conversation fits."""
        return self.tokens - self.target

    async def run(self, summarise: Summarise) -> None:
        """Shorten the conversation until it fits, or until nothing more may be shortened."""
        self._leave_outputs_out(1, self._newest(_WHOLE_TURNS))
        if 0 < self.excess < tokens_of(self._older()):
            await self._summarise(summarise)
        self._leave_outputs_out(1, self._newest(1))
        if self.excess > 0:
            await self._summarise(summarise)
        self._cut_newest()

    def _newest(self, turns: int) -> int:
        """Return the index at which the newest turns begin. If there are few turns, return the index after the
        assignment."""
        taken = [index for index, message in enumerate(self.messages) if isinstance(message, Took)]
        return taken[-turns] if len(taken) > turns else 1

    def _older(self) -> list[Message]:
        """Return everything between the assignment and the newest turns."""
        return self.messages[1 : self._newest(_WHOLE_TURNS)]

    def _leave_outputs_out(self, start: int, end: int) -> None:
        for index in range(start, end):
            message = self.messages[index]
            if self.excess <= 0:
                return
            if isinstance(message, Returned) and (line := self.line_of(message)):
                self._put(index, message.model_copy(update={"text": line, "images": ()}))

    async def _summarise(self, summarise: Summarise) -> None:
        older = self._older()
        if not any(isinstance(message, Took) for message in older):
            return
        kept = [
            message for message in older if isinstance(message, Said) and message.source in ("user", "correction")
        ]
        summary = Said(text=await summarise("\n\n".join(map(_transcribed, older))))
        self.tokens -= tokens_of(older) - tokens_of([*kept, summary])
        self.messages[1 : 1 + len(older)] = [*kept, summary]
        self.summarised = True

    def _cut_newest(self) -> None:
        for index in range(self._newest(1), len(self.messages)):
            message = self.messages[index]
            if isinstance(message, Returned) and self.excess > 0:
                self._put(index, message.model_copy(update={"text": without_middle(message.text, _LAST_OUTPUT)}))

    def _put(self, index: int, message: Message) -> None:
        before = self.messages[index]
        if tokens_of([message]) < tokens_of([before]):
            self.tokens -= tokens_of([before]) - tokens_of([message])
            self.messages[index] = message


def _transcribed(message: Message) -> str:
    match message:
        case Said(text=text):
            return f"To you: {text}"
        case Took(turn=turn):
            calls = (f"{call.name} {call.arguments}" for call in turn.calls)
            return "\n".join(("You:", *filter(None, (turn.text, *calls))))
        case Returned(text=text):
            return text
