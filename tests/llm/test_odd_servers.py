"""Servers that answer as no book has it: what was paid for is read, and what went wrong is said."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from random import Random

import pytest

from artoo.llm import guard
from artoo.llm.client import EndpointModel
from artoo.llm.http import HttpTransport
from artoo.llm.retry import RetryPolicy
from artoo.testing import FakeClock, ScriptedServer

from .asking import STEP, client_of, question


class Raw:
    """A server that answers every request with the same bytes."""

    def __init__(self, answer: bytes) -> None:
        self.answer = answer
        self.requests = 0

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        head = await reader.readuntil(b"\r\n\r\n")
        length = int(head.lower().partition(b"content-length:")[2].partition(b"\r\n")[0] or 0)
        await reader.readexactly(length)
        self.requests += 1
        writer.write(self.answer)
        await writer.drain()
        writer.close()


@asynccontextmanager
async def answering(body: bytes, *, head: bytes = b"") -> AsyncGenerator[tuple[EndpointModel, Raw]]:
    """A client of a server with this body, and what the server has seen."""
    raw = Raw(b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n%b\r\n%b" % (len(body), head, body))
    server = await asyncio.start_server(raw.serve, "127.0.0.1", 0)
    address = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}/v1"
    guard.admit(address)
    policy, clock = RetryPolicy(attempts=2), FakeClock(auto_advance=True)
    model = EndpointModel(HttpTransport(address), "m", clock, retry=policy, random=Random(0))
    try:
        yield model, raw
    finally:
        await model.close()
        server.close()
        await server.wait_closed()
        guard.retract(address)


WHOLE = rb'{"choices":[{"message":{"content":"{\"tool\":\"shell\",\"command\":\"ls%b\"}"}}]%b}'


@pytest.mark.parametrize(
    ("body", "command"),
    [
        (WHOLE % (rb" \\ud83d", b""), "ls ?"),  # in the model's own JSON
        (WHOLE % (rb" \ud83d", b""), "ls ?"),  # in the server's
        (WHOLE % (b" caf\xe9", b""), "ls caf\ufffd"),
        (WHOLE % (b" a\tb", b""), "ls a\tb"),
        (b"\xef\xbb\xbf" + WHOLE % (b"", b""), "ls"),
        (WHOLE % (b"", b',"logprobs":NaN'), "ls"),
    ],
    ids=["half an emoji", "half an emoji of the server's", "no UTF-8", "a bare tab", "a byte order mark", "NaN"],
)
async def test_an_answer_that_is_nearly_json_is_read(body: bytes, command: str) -> None:
    """It was paid for: it is not thrown away, and not asked for again."""
    async with answering(body) as (model, raw):
        answer = await model.ask(question())
        assert (answer.value.command, raw.requests) == (command, 1)


async def test_half_an_emoji_in_a_prompt_is_a_question_mark() -> None:
    """As are bytes of a file's name that are no text: no server could be sent them."""
    async with ScriptedServer({"Step": [STEP]}) as server, client_of(server) as model:
        await model.ask(question(user="x \ud83d caf\udce9"))
    assert server.player.requests[0].user == "x ? caf?"
