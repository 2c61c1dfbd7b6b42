"""Where a running task lays its questions so that they can be answered from another window too."""

from __future__ import annotations

from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import Protocol

from artoo.contracts.confirmation import Choice, ConfirmationRequest, Consent, Words
from artoo.contracts.steering import UserMessage


@dataclass(frozen=True, slots=True)
class Given:
    """An answer that counts, and from where it came (`terminal`, `page`). `first`: it was brought just now."""

    said: Consent | Choice | Words
    via: str
    first: bool = True


class Slip(Protocol):
    """One question on the desk, for the task that asks it."""

    def given(self) -> Given | None:
        """The answer, as soon as there is one."""
        ...

    def answer(self, said: Consent | Choice | Words, via: str) -> Given:
        """Brings an answer. The first one counts, whoever brings it; this returns that one."""
        ...


class Desk(Protocol):
    """One task's place: questions that wait, messages from other windows, and the wish that it stops."""

    def laid(self, request: ConfirmationRequest) -> AbstractContextManager[Slip]:
        """The question is there for others while the block runs."""
        ...

    def stop_wanted(self) -> bool:
        """Whether somebody asked the task to stop."""
        ...

    def take_messages(self) -> tuple[UserMessage, ...]:
        """Remove and return the messages that other windows wrote to the task, oldest first."""
        ...
