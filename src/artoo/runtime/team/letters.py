"""An agent's letters to others while it works: sent once, whatever happens to the process that sends them."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass

from artoo.agents.asking import Asking
from artoo.agents.mailbox import Mailbox
from artoo.contracts.errors import MailRefused


@dataclass(frozen=True, slots=True)
class Letters:
    """Implements `ports.post.Post` for one piece of work.

    `work` names that piece: the same letter sent again for it, after a crash, is one letter. `known` are those who
    can be written to, `seconds` how long a question is waited for.
    """

    name: str
    work: str
    mailbox: Mailbox
    asking: Asking
    known: tuple[str, ...]
    seconds: float

    async def send(self, recipient: str, text: str) -> str:
        """See Post."""
        self._check(recipient)
        mail = await self.mailbox.send(self.name, recipient, text, mail_id=self._key(recipient, text))
        return f"sent to {recipient} (letter {mail.id}); an answer comes as a letter"

    async def ask(self, recipient: str, text: str) -> str:
        """See Post."""
        self._check(recipient)
        reply = await self.asking.ask(self.name, recipient, text, seconds=self.seconds)
        if reply.missed == "cycle":
            circle = " -> ".join((*reply.cycle, reply.cycle[0]))
            return f"no answer is waited for: {circle} would wait for one another for ever; go on without it"
        if reply.missed == "timeout":
            return f"no answer from {recipient} within {self.seconds:g} s; go on without it"
        return f"{recipient} answers: {reply.text}"

    def _check(self, recipient: str) -> None:
        if recipient == self.name:
            raise MailRefused(f"{self.name} cannot write to itself; colleagues: {', '.join(self.known) or 'none'}")

    def _key(self, recipient: str, text: str) -> str:
        digest = hashlib.sha256("\0".join((self.name, self.work, recipient, text)).encode("utf-8", "replace"))
        return f"letter-{digest.hexdigest()[:32]}"
