"""Commands that go on after their call: what the records say, and what `process` does with them."""

from __future__ import annotations

import asyncio

import pytest
from tool_doubles import MakeToolbox, PlainWorkspace, StillClock, changed, said

from artoo.contracts.execution import CallStatus, ToolCall
from artoo.contracts.plan import MustNot
from artoo.ports.sandbox import Roots
from artoo.ports.tools import Ticket
from artoo.tools.approval.gate import Gate
from artoo.tools.core.default_tools import Shared, builtin_tools
from artoo.tools.core.registry import Registry, SubTaskToolbox
from artoo.workspace.changes.path_class import Places


async def test_a_command_goes_on_after_its_timeout_and_is_waited_for(toolbox: SubTaskToolbox) -> None:
    """The first record has what it printed so far and its process id; waiting gets the rest and the exit code."""
    first = await toolbox.call("shell", {"command": "echo begun; sleep 1.2; echo done; exit 3", "timeout": "0.3"})
    assert (first.status, first.exit_code, first.process, first.output) == (
        CallStatus.RUNNING,
        None,
        "p1",
        "begun\n",
    )
    assert "it goes on as process p1" in (first.reason or "")
    again = await toolbox.call("process", {"id": "p1", "timeout": "0.1"})
    assert (again.status, again.process, again.output) == (CallStatus.RUNNING, "p1", "")
    end = await toolbox.call("process", {"id": "p1", "action": "wait"})
    assert (end.status, end.exit_code, end.process, end.output) == (CallStatus.ERROR, 3, "", "done\n")
    assert end.ran == "echo begun; sleep 1.2; echo done; exit 3"


async def test_a_command_in_the_background_returns_at_once(toolbox: SubTaskToolbox) -> None:
    """It is listed, its output is read on, and stopping it is no failure."""
    call = await toolbox.call("shell", {"command": "echo ready; sleep 60", "background": "true"})
    assert (call.status, call.process, call.output) == (CallStatus.OK, "p1", "ready\n")
    assert "it runs in the background as process p1" in (call.reason or "")
    listed = await toolbox.call("process", {"action": "list"})
    assert listed.output == "p1: runs: echo ready; sleep 60"
    read = await toolbox.call("process", {"id": "p1", "action": "read", "offset": "0"})
    assert (read.output, read.process) == ("ready\n", "p1")
    stopped = await toolbox.call("process", {"id": "p1", "action": "stop"})
    assert (stopped.status, stopped.reason, stopped.process) == (CallStatus.OK, "process p1 was stopped", "")
    assert (await toolbox.call("process", {})).output == "p1: ended: echo ready; sleep 60"


async def test_much_output_is_read_on_from_an_offset(toolbox: SubTaskToolbox) -> None:
    """The record of a wait has beginning and end, and says how the middle is read."""
    await toolbox.call("shell", {"command": "sleep 0.3; seq 1 20000", "timeout": "0.1"})
    call = await toolbox.call("process", {"id": "p1"})
    assert call.truncated
    assert call.output.startswith("1\n2\n")
    assert call.output.endswith("20000\n")
    assert "read them with offset 1940" in call.output
    on = await toolbox.call("process", {"id": "p1", "action": "read", "offset": "1940"})
    shown = "".join(f"{number}\n" for number in range(1, 20_001)).encode()
    assert on.output == shown[1_940:5_940].decode()
    assert "more bytes: read with offset 5940" in (on.reason or "")


@pytest.mark.parametrize(
    ("arguments", "reason"),
    [
        ({"id": "p9"}, "there is no process 'p9' in this task; the processes are: none was started"),
        ({"id": "p1", "action": "kill"}, "'action' must be one of wait, read, write, stop, list, not 'kill'"),
        ({"id": "p1", "timeout": "soon"}, "'timeout' must be a number, not 'soon'"),
    ],
)
async def test_a_wrong_use_of_process_says_what_is_right(
    toolbox: SubTaskToolbox, arguments: dict[str, str], reason: str
) -> None:
    """Ids, actions and numbers are checked."""
    assert reason in said(await toolbox.call("process", arguments))


async def test_what_a_process_changed_between_calls_is_in_the_next_record(
    roots: Roots, make_toolbox: MakeToolbox
) -> None:
    """Its changes are told by the call that ends next."""
    file = roots.project / "out.txt"
    box = make_toolbox(other=PlainWorkspace(roots, reported=(changed(file),)))
    await box.call("shell", {"command": "sleep 0.3", "timeout": "0.1"})
    call = await box.call("process", {"id": "p1"})
    assert (call.changes, call.overlapped) == ((str(file),), False)


async def test_changes_of_calls_of_two_subtasks_at_one_time_are_uncertain(roots: Roots, places: Places) -> None:
    """Both records have them, and both say that the other ran at the same time."""
    file = roots.project / "out.txt"
    tools = builtin_tools(Shared.of(PlainWorkspace(roots, reported=(changed(file),)), Gate(), places))
    registry = Registry(tools, StillClock())

    def made(subtask: str, command: str) -> asyncio.Future[ToolCall]:
        ticket = Ticket(f"{subtask}/1", lambda departure: None)
        return asyncio.ensure_future(
            registry.toolbox(subtask, MustNot()).call("shell", {"command": command}, ticket)
        )

    first, second = await asyncio.gather(made("a", "sleep 0.3"), made("b", "sleep 0.3"))
    for call in (first, second):
        assert (call.changes, call.overlapped) == ((str(file),), True)
    alone = await made("a", "true")
    assert not alone.overlapped
