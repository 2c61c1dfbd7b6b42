"""Role inboxes: nothing is lost in silence, late ports miss nothing, a closed task leaves nothing behind."""

from __future__ import annotations

import asyncio

import pytest
from bus_doubles import TASK, called, new_bus, request, subtask, texts

from artoo.bus.routing import HELD_PER_PORT
from artoo.contracts.errors import InboxOverflow, ProtocolError, StreamClosed
from artoo.contracts.execution import CorrectionSignal, ExecutionResult
from artoo.contracts.failure import FailureClass
from artoo.contracts.roles import Role


async def test_messages_arrive_in_order() -> None:
    """An inbox yields messages in the order in which they were published."""
    bus = new_bus()
    user, solver = bus.port(Role.USER, TASK), bus.port(Role.SOLVER, TASK)
    for number in range(5):
        user.publish(request(str(number)))
    assert texts([await solver.receive() for _ in range(5)]) == list("01234")


async def test_a_waiting_role_is_woken() -> None:
    """A role that waits for its inbox gets the message that is published meanwhile."""
    bus = new_bus()
    user, solver = bus.port(Role.USER, TASK), bus.port(Role.SOLVER, TASK)
    async with asyncio.TaskGroup() as group:
        receiving = group.create_task(solver.receive())
        await asyncio.sleep(0)
        sent = user.publish(request())
    assert receiving.result() is sent


async def test_a_full_inbox_fails_its_role_and_only_its_role() -> None:
    """The publisher never notices; the role's next receive raises, and says what to do; others go on."""
    bus = new_bus()
    user = bus.port(Role.USER, TASK)
    slow, quick = bus.port(Role.SOLVER, TASK, capacity=2), bus.port(Role.PERCEIVER, TASK)
    for number in range(4):
        user.publish(request(str(number)))
    with pytest.raises(InboxOverflow, match=r"solver \(task task-1\).*2 messages.*larger capacity"):
        await slow.receive()
    with pytest.raises(InboxOverflow):
        async for _ in slow:
            pytest.fail("an inbox that lost a message must not go on")
    assert texts([await quick.receive() for _ in range(4)]) == list("0123")


async def test_a_cancelled_reader_loses_nothing() -> None:
    """A message that arrives while its reader is being cancelled is there for the next reader."""
    bus = new_bus()
    user, solver = bus.port(Role.USER, TASK), bus.port(Role.SOLVER, TASK)
    receiving = asyncio.ensure_future(solver.receive())
    await asyncio.sleep(0)
    sent = user.publish(request())
    receiving.cancel()
    with pytest.raises(asyncio.CancelledError):
        await receiving
    assert await solver.receive() is sent


async def test_a_cancelled_reader_is_not_woken_in_place_of_the_next() -> None:
    """A reader that gave up waiting does not swallow the wake-up of the one after it."""
    bus = new_bus()
    user, solver = bus.port(Role.USER, TASK), bus.port(Role.SOLVER, TASK)
    with pytest.raises(TimeoutError):
        async with asyncio.timeout(0):
            await solver.receive()
    async with asyncio.TaskGroup() as group:
        receiving = group.create_task(solver.receive())
        await asyncio.sleep(0)
        user.publish(request("x"))
    assert texts([receiving.result()]) == ["x"]


async def test_an_inbox_has_one_reader() -> None:
    """A second reader that would wait beside the first is refused instead of stealing messages."""
    bus = new_bus()
    solver = bus.port(Role.SOLVER, TASK)
    waiting = asyncio.ensure_future(solver.receive())
    await asyncio.sleep(0)
    with pytest.raises(ProtocolError, match="already has a reader"):
        await solver.receive()
    bus.close_task(TASK)
    with pytest.raises(StreamClosed):
        await waiting


async def test_a_late_subtask_port_gets_what_came_before_it() -> None:
    """Messages addressed to a subtask wait for its ports; other subtasks' messages do not reach them."""
    bus = new_bus()
    dispatcher = bus.port(Role.DISPATCHER, TASK)
    first = dispatcher.publish(subtask("s1"), subtask_id="s1")
    dispatcher.publish(subtask("s2"), subtask_id="s2")
    validator = bus.port(Role.AGENT_VALIDATOR, TASK, subtask_id="s1")
    executor = bus.port(Role.EXECUTOR, TASK, subtask_id="s1")
    assert await executor.receive() is first
    assert await validator.receive() is first
    result = executor.publish(ExecutionResult(subtask_id="s1", attempt=1, status="completed"), cause=first)
    assert await validator.receive() is result
    assert not executor.queued


async def test_a_port_of_the_whole_role_hears_all_subtasks() -> None:
    """Without a subtask id a port hears every subtask, and nothing is held for one that never opens."""
    bus = new_bus()
    executor = bus.port(Role.EXECUTOR, TASK)
    dispatcher = bus.port(Role.DISPATCHER, TASK)
    sent = [dispatcher.publish(subtask(name), subtask_id=name) for name in ("s1", "s2")]
    assert [await executor.receive(), await executor.receive()] == sent
    late = bus.port(Role.EXECUTOR, TASK, subtask_id="s1")
    assert not late.queued


async def test_what_is_held_for_a_late_port_is_bounded_and_says_so() -> None:
    """More messages than can be held make the late port overflow, not lose the rest in silence."""
    bus = new_bus()
    dispatcher = bus.port(Role.DISPATCHER, TASK)
    for _ in range(HELD_PER_PORT + 1):
        dispatcher.publish(subtask("s1"), subtask_id="s1")
    with pytest.raises(InboxOverflow):
        await bus.port(Role.EXECUTOR, TASK, subtask_id="s1", capacity=1_000).receive()


async def test_nothing_is_held_for_a_port_that_was_closed() -> None:
    """A subtask that is over collects no more messages."""
    bus = new_bus()
    validator = bus.port(Role.AGENT_VALIDATOR, TASK, subtask_id="s1")
    bus.port(Role.EXECUTOR, TASK, subtask_id="s1").close()
    correction = CorrectionSignal(
        subtask_id="s1",
        attempt=1,
        what_was_wrong="",
        what_to_do="",
        failed_criterion="",
        failure_class=FailureClass.LOGICAL,
    )
    validator.publish(correction)
    assert not bus.port(Role.EXECUTOR, TASK, subtask_id="s1").queued


async def test_two_ports_of_one_role_both_hear() -> None:
    """Terminal and web page can both be the user; closing one leaves the other."""
    bus = new_bus()
    user = bus.port(Role.USER, TASK)
    one, two = bus.port(Role.SOLVER, TASK), bus.port(Role.SOLVER, TASK)
    user.publish(request("a"))
    one.close()
    one.close()
    user.publish(request("b"))
    assert texts([await two.receive(), await two.receive()]) == ["a", "b"]
    with pytest.raises(StreamClosed):
        await one.receive()


async def test_closing_a_task_ends_its_readers_and_frees_everything() -> None:
    """Ports, kind inboxes and task subscriptions end; the bus keeps nothing of the task."""
    bus = new_bus()
    user, solver = bus.port(Role.USER, TASK), bus.port(Role.SOLVER, TASK)
    pool = bus.inbox(TASK, frozenset({"SubTask"}))
    watching = bus.subscribe("display", task_id=TASK)
    bus.port(Role.DISPATCHER, TASK).publish(subtask("s1"), subtask_id="s1")
    user.publish(request())
    bus.close_task(TASK)
    bus.close_task(TASK)
    assert [e.kind async for e in solver] == []
    assert [e.kind async for e in pool] == []
    assert [e.kind async for e in watching] == ["SubTask", "UserRequest"]
    assert bus.open_tasks == 0
    solver.close()
    pool.close()
    user.publish(request())
    assert bus.open_tasks == 0


async def test_a_port_that_listens_no_more_can_still_speak() -> None:
    """What a role did last reaches the taps even after its task was closed."""
    bus = new_bus()
    solver = bus.port(Role.EXECUTOR, TASK)
    bus.close()
    seen: list[str] = []
    bus.attach(lambda envelope: seen.append(envelope.kind))
    solver.publish(called())
    assert seen == ["ModelCalled"]


async def test_an_inbox_of_kinds_hears_them_all_and_only_them() -> None:
    """Whoever starts executors sees every SubTask of its task, without loss, until it leaves."""
    bus = new_bus()
    pool = bus.inbox(TASK, frozenset({"SubTask", "UserRequest"}), capacity=2)
    other = bus.inbox(TASK, frozenset({"SubTask"}))
    dispatcher = bus.port(Role.DISPATCHER, TASK)
    dispatcher.publish(subtask("s1"), subtask_id="s1")
    bus.port(Role.DISPATCHER, "another").publish(subtask("s9"), subtask_id="s9")
    assert (await pool.receive()).subtask_id == "s1"
    assert not pool.queued
    other.close()
    for name in ("s2", "s3", "s4"):
        dispatcher.publish(subtask(name), subtask_id=name)
    with pytest.raises(InboxOverflow, match="SubTask, UserRequest"):
        await pool.receive()


def test_a_queue_without_room_is_refused() -> None:
    """A capacity below one is a mistake of the caller, said at once."""
    with pytest.raises(ValueError, match="capacity of at least 1"):
        new_bus().port(Role.USER, TASK, capacity=0)
