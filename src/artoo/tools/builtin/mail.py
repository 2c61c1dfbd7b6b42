"""The tools `send_mail` and `ask_agent` for letters between agents.

They need no approval, because letters stay on this machine.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass

from artoo.contracts.errors import MailRefused, ToolError
from artoo.ports.post import Post
from artoo.ports.tools import Parameter, ToolSpec
from artoo.tools.core.tool import Arguments, CountsAsItself, Outcome, argument

_SEND_SECONDS = 30.0
_MARGIN = 15.0


@dataclass(frozen=True, slots=True)
class Letter(CountsAsItself):
    """A tool that passes a letter to `post`, and returns the text that `post` returns."""

    spec: ToolSpec
    wall_seconds: float
    post: Callable[[str, str], Awaitable[str]]

    def target(self, arguments: Arguments) -> str:
        return argument(arguments, "to").casefold()

    async def run(self, arguments: Arguments) -> Outcome:
        """Send the letter. Raises ToolError if it is refused."""
        try:
            return Outcome(output=await self.post(self.target(arguments), argument(arguments, "text")))
        except MailRefused as error:
            raise ToolError(str(error)) from error


def mail_tools(post: Post) -> tuple[Letter, Letter]:
    """Return both tools for the work of one agent on one assignment."""
    # the tool ends the wait itself, when the time limit of the answer is reached
    names = ", ".join(post.known) or "nobody yet"
    send = ToolSpec(
        name="send_mail",
        description=f"send a letter to a colleague and go on ({names})",
        parameters=(Parameter("to", "whom"), Parameter("text", "the letter")),
        body="text",
        priority=90,
        reads=False,
    )
    ask = ToolSpec(
        name="ask_agent",
        description=f"ask a colleague and wait for the answer ({names}; a person answers later)",
        parameters=(Parameter("to", "whom"), Parameter("text", "the question")),
        body="text",
        priority=91,
    )
    return Letter(send, _SEND_SECONDS, post.send), Letter(ask, post.seconds + _MARGIN, post.ask)
