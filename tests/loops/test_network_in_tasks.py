"""The network by consent in whole tasks: asked on the stream, logged with its bytes, the same when replayed."""

from __future__ import annotations

import asyncio
from dataclasses import replace

import pytest
from scenario import World, matches, plan, python, subtask

from artoo.contracts.confirmation import ConfirmationAnswer, ConfirmationRequest, Consent
from artoo.contracts.events import NetworkUsed
from artoo.contracts.execution import CallEffects, CallStatus, ToolStarted
from artoo.runtime.replay.replay import replay
from artoo.tasklog.layout import tasks_directory
from artoo.tasklog.reader import TaskLogReader
from overlay_here import overlay_backend

GET = """# artoo hosts: 127.0.0.1:{port}
import urllib.request
print(urllib.request.urlopen("http://127.0.0.1:{port}/").read())"""


@pytest.fixture(autouse=True)
async def _with_networks(world: World) -> None:
    await overlay_backend(world.home)


async def _answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    await reader.readuntil(b"\r\n\r\n")
    writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello")
    writer.close()


async def _no(request: ConfirmationRequest) -> Consent:
    return Consent.NO


@pytest.mark.parametrize("allowed", [True, False])
async def test_a_command_reaches_what_was_allowed(world: World, allowed: bool) -> None:
    """A policy line is named in the answer; what passed is on the stream; after a no nothing is run."""
    async with await asyncio.start_server(_answer, "127.0.0.1", 0) as server:
        port = server.sockets[0].getsockname()[1]
        script = {
            "Plan": plan(subtask("fetch the greeting", matches("hello"), tool="python")),
            "ExecutorStep": python(GET.format(port=port)),
        }
        lines = (f"network 127.0.0.1:{port}",) if allowed else ()
        options = replace(world.options(), allow=lines)
        ended = await world.play("Fetch the greeting from the server", script, options=options, confirm=_no)
    question, answer = ended.all(ConfirmationRequest)[0], ended.all(ConfirmationAnswer)[0]
    assert [act.target for act in question.acts] == [f"127.0.0.1:{port}"]
    if not allowed:
        assert (ended.calls[0].status, ended.all(NetworkUsed)) == (CallStatus.REFUSED, [])
        assert f"network 127.0.0.1:{port}" in ended.result.withheld
        assert ended.result.summary.startswith("[LAW1]")
        return
    assert ended.directive == "accept"
    assert answer.by == f"policy: network 127.0.0.1:{port}"
    (used,) = ended.all(NetworkUsed)
    started = ended.one(ToolStarted)
    assert (used.act, used.host, used.port, used.refused) == (started.act, "127.0.0.1", port, None)
    assert used.bytes_out > 0 and used.bytes_in > 0
    assert started.effects is CallEffects.OUTSIDE
    (line,) = ended.result.changes.went_out
    assert line.startswith(f"127.0.0.1:{port}: {used.bytes_out} B sent")
    (directory,) = tasks_directory(world.home).iterdir()
    assert (await replay(TaskLogReader(directory))).difference is None
