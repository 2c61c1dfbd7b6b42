"""Writing to another agent, as a tool of the agent that writes sees it."""

from __future__ import annotations

from typing import Protocol


class Post(Protocol):
    """One agent's way to the mailbox, for one piece of work."""

    @property
    def known(self) -> tuple[str, ...]:
        """Whom one can write to."""
        ...

    @property
    def seconds(self) -> float:
        """How long `ask` waits."""
        ...

    async def send(self, recipient: str, text: str) -> str:
        """Sends and does not wait; what to say about it. The same letter again is still one letter.

        Raises MailRefused.
        """
        ...

    async def ask(self, recipient: str, text: str) -> str:
        """Sends and waits; the answer, or that there is none and why. Raises MailRefused."""
        ...
