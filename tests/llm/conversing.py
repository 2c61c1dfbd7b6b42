"""A conversation for tests, with the tools of an executor."""

from __future__ import annotations

from dataclasses import replace

from artoo.contracts.conversation import Message, Returned, Said, Took
from artoo.ports.model import Conversation, Spoken, Tier
from artoo.ports.tools import INTEGER, Parameter, ToolSpec

SHELL = ToolSpec(
    "shell",
    "Run a command.",
    (Parameter("command", "the command"), Parameter("timeout", "seconds", required=False, schema=INTEGER)),
    1,
    body="command",
    languages=("bash", "sh"),
    writes=True,
)
WRITE = ToolSpec(
    "write_file",
    "Write a file.",
    (Parameter("path", "where"), Parameter("content", "the text")),
    2,
    body="content",
    whole_lines=True,
    writes=True,
)
READ = ToolSpec("read_file", "Read a file.", (Parameter("path", "which"),), 3)
DELIVER = ToolSpec("deliver", "Hand over.", (Parameter("call", "which", required=False, schema=INTEGER),), 4)
CANNOT = ToolSpec("cannot", "Give up.", (Parameter("reason", "why"),), 5)
TOOLS = (SHELL, WRITE, READ, DELIVER, CANNOT)


def conversation(*messages: Message, text: str = "List the files.") -> Conversation:
    """One that begins with this request."""
    return Conversation(
        contract="ExecutorStep",
        tier=Tier.TOOL,
        system="You are R3.\ncontract: ExecutorStep",
        text_system="You are R3 and write steps.\ncontract: ExecutorStep",
        tools=TOOLS,
        messages=(Said(text=text, source="request"), *messages),
        key="task-1",
        max_tokens=1_000,
    )


def answered(before: Conversation, spoken: Spoken, *results: str) -> Conversation:
    """The conversation after a turn, with what its calls returned."""
    returned = tuple(
        Returned(call_id=call.id, name=call.name, text=text)
        for call, text in zip(spoken.turn.calls, results, strict=True)
    )
    return replace(before, messages=(*before.messages, Took(turn=spoken.turn), *returned))
