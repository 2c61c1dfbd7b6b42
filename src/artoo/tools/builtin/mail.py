"""`send_mail` and `ask_agent`: letters between agents. The gate lets them pass: they stay in this home."""

from __future__ import annotations

from dataclasses import dataclass

from artoo.contracts.errors import MailRefused, ToolError
from artoo.ports.post import Post
from artoo.ports.tools import Parameter, ToolSpec
from artoo.tools.core.tool import Arguments, CountsAsItself, Outcome, argument

_SEND_SECONDS = 30.0
_MARGIN = 15.0


def mail_tools(post: Post) -> tuple[SendMail, AskAgent]:
    """Both tools of one agent, for one piece of work."""
    return SendMail(post), AskAgent(post)


@dataclass(frozen=True, slots=True)
class SendMail(CountsAsItself):
    """Leaves a letter and goes on."""

    post: Post

    @property
    def spec(self) -> ToolSpec:
        """See Tool."""
        return ToolSpec(
            name="send_mail",
            description=f"send a letter to a colleague and go on ({_names(self.post)})",
            parameters=(Parameter("to", "whom"), Parameter("text", "the letter")),
            body="text",
            priority=90,
            reads=False,
        )

    @property
    def wall_seconds(self) -> float:
        """See Tool."""
        return _SEND_SECONDS

    def target(self, arguments: Arguments) -> str:
        """See Tool."""
        return argument(arguments, "to").casefold()

    async def run(self, arguments: Arguments) -> Outcome:
        """See Tool."""
        try:
            return Outcome(output=await self.post.send(self.target(arguments), argument(arguments, "text")))
        except MailRefused as error:
            raise ToolError(str(error)) from error


@dataclass(frozen=True, slots=True)
class AskAgent(CountsAsItself):
    """Asks and waits, at most as long as is configured; without an answer the work goes on."""

    post: Post

    @property
    def spec(self) -> ToolSpec:
        """See Tool."""
        return ToolSpec(
            name="ask_agent",
            description=f"ask a colleague and wait for the answer ({_names(self.post)}; a person answers later)",
            parameters=(Parameter("to", "whom"), Parameter("text", "the question")),
            body="text",
            priority=91,
        )

    @property
    def wall_seconds(self) -> float:
        """See Tool."""
        return self.post.seconds + _MARGIN

    def target(self, arguments: Arguments) -> str:
        """See Tool."""
        return argument(arguments, "to").casefold()

    async def run(self, arguments: Arguments) -> Outcome:
        """See Tool."""
        try:
            return Outcome(output=await self.post.ask(self.target(arguments), argument(arguments, "text")))
        except MailRefused as error:
            raise ToolError(str(error)) from error


def _names(post: Post) -> str:
    return ", ".join(post.known) or "nobody yet"
