"""Send an agent's letters during its work exactly once, with a hint on the reply.

Each letter is sent once, even if the process that sends it crashes.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Awaitable, Callable
from dataclasses import dataclass

from artoo.agents.mail.mailbox import Mailbox
from artoo.agents.mail.request_reply import MailRequests
from artoo.contracts.agents import OPERATOR
from artoo.contracts.errors import MailRefused

_HOW_TO_ANSWER = (
    "\n\nIt is asked at task {task}, which goes on meanwhile; what it hands in waits for you. Your answer:"
    " artoo task review {task} reject ANSWER"
)

_AN_ATTEMPT = re.compile(r"(?P<task>[0-9a-f-]{36})#\d+")
"""The name of an attempt at a board task. Work on letters and on patrol items has names of another form."""

_GO_ON = (
    "who is a person and answers later: go on with what is most careful, and say in the result what was asked and"
    " what you assumed"
)


@dataclass(frozen=True, slots=True)
class Letters:
    """The letters that an agent sends during one assignment. Implements `ports.post.Post`.

    `work` identifies the assignment. If the same letter is sent again after a crash, it is recognised by this name.
    `known`: the agents to which letters can be written. `wait`: number of seconds to wait for the answer of each
    agent that is asked. `standins`: agents that the operator has configured. One of them is asked if the recipient
    does not answer. `asked` records on the board a question to the operator (task id, agent, text).
    """

    name: str
    work: str
    mailbox: Mailbox
    asking: MailRequests
    known: tuple[str, ...]
    wait: float
    standins: tuple[str, ...]
    asked: Callable[[str, str, str], Awaitable[None]]

    @property
    def seconds(self) -> float:
        """Return the maximum duration of a question. Implements `Post.seconds`. It covers the recipient and one
        substitute."""
        return self.wait * (2 if self.standins else 1)

    async def send(self, recipient: str, text: str) -> str:
        """Send a letter. Implements `Post.send`."""
        self._check(recipient)
        mail = await self.mailbox.send(self.name, recipient, text, mail_id=self._key(recipient, text))
        return f"sent to {recipient} (letter {mail.id}); an answer comes as a letter"

    async def ask(self, recipient: str, text: str) -> str:
        """Send a question and wait for the answer. Implements `Post.ask`."""
        self._check(recipient)
        if recipient == OPERATOR:
            return await self._left_with_the_operator(text)
        silent: list[str] = []
        others = [name for name in self.standins if name not in (self.name, recipient)]
        for asked in (recipient, *others[:1]):
            try:
                reply = await self.asking.ask(self.name, asked, text, seconds=self.wait)
            except MailRefused:
                if asked == recipient:
                    raise
                # the substitute cannot be reached either
                continue
            if reply.missed == "cycle":
                circle = " -> ".join((*reply.cycle, reply.cycle[0]))
                return f"no answer is waited for: {circle} would wait for one another for ever; go on without it"
            if reply.missed is None:
                instead = f" (in the place of {recipient}, who does not answer)" if asked != recipient else ""
                return f"{asked}{instead} answers: {reply.text}"
            silent.append(asked)
        return f"no answer from {' or '.join(silent)} within {self.wait:g} s; go on without it"

    async def _left_with_the_operator(self, text: str) -> str:
        """Send a question to the operator without waiting. The letter says how the answer gets to the task."""
        attempt = _AN_ATTEMPT.fullmatch(self.work)
        if attempt:
            await self.asked(attempt["task"], self.name, text)
        how = _HOW_TO_ANSWER.format(task=attempt["task"]) if attempt else ""
        mail = await self.mailbox.send(
            self.name, OPERATOR, f"{text}{how}", mail_id=self._key(OPERATOR, f"ask\0{text}")
        )
        return f"the question is left with the operator (letter {mail.id}), {_GO_ON}"

    def _check(self, recipient: str) -> None:
        if recipient == self.name:
            raise MailRefused(f"{self.name} cannot write to itself; colleagues: {', '.join(self.known) or 'none'}")

    def _key(self, recipient: str, text: str) -> str:
        digest = hashlib.sha256("\0".join((self.name, self.work, recipient, text)).encode("utf-8", "replace"))
        return f"letter-{digest.hexdigest()[:32]}"
