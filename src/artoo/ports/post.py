"""The interface by which an agent's tools send letters."""

from __future__ import annotations

from typing import Protocol


class Post(Protocol):
    """One agent's access to the mailbox during one task."""

    @property
    def known(self) -> tuple[str, ...]:
        """List the agents to which letters can be sent."""
        ...

    @property
    def seconds(self) -> float:
        """Return the number of seconds for which `ask` waits."""
        ...

    async def send(self, recipient: str, text: str) -> str:
        """Send a letter without waiting for an answer, and return a sentence about it for the model. Sending the
        same letter again has no effect.

        Raises MailRefused.
        """
        ...

    async def ask(self, recipient: str, text: str) -> str:
        """Send a letter and wait for the answer. Return the answer, or a sentence that says why there is no answer.
        Raises MailRefused."""
        ...
