"""Define the mailbox as a tool of the writing agent sees it."""

from __future__ import annotations

from typing import Protocol


class Post(Protocol):
    """One agent's way to the mailbox, for one piece of work."""

    @property
    def known(self) -> tuple[str, ...]:
        """List the agents that can be written to."""
        ...

    @property
    def seconds(self) -> float:
        """Return the seconds that `ask` waits."""
        ...

    async def send(self, recipient: str, text: str) -> str:
        """Send a letter without waiting, and return a sentence about it. The same letter again is still one letter.

        Raises MailRefused.
        """
        ...

    async def ask(self, recipient: str, text: str) -> str:
        """Send a letter, and wait for the answer; return it, or a sentence that says why there is none. Raises
        MailRefused.
        """
        ...
