"""The stream under load: the publisher never waits, counts are exact, nothing stays behind."""

from __future__ import annotations

import gc
from pathlib import Path

import pytest
from bus_doubles import called, new_bus, request, subtask

from artoo.bus.spool import SpoolingTap
from artoo.contracts.envelope import Envelope
from artoo.contracts.events import MessagesDropped
from artoo.contracts.roles import Role

BURST = 20_000


async def test_a_burst_with_a_slow_subscriber(tmp_path: Path) -> None:
    """20,000 messages from code that never awaits: the drop count is exact, the spooling tap has every message."""
    bus = new_bus()
    with SpoolingTap(tmp_path, memory_limit=BURST - 5_000) as tap:
        detach = bus.attach(tap)
        slow = bus.subscribe("slow", kinds=frozenset({"ModelCalled"}), capacity=1_000)
        port = bus.port(Role.EXECUTOR, "burst")
        payload = called()
        sent = [port.publish(payload).id for _ in range(BURST)]
        assert slow.dropped == BURST - 1_000
        slow.close()
        detach()
        tap.finish()
        kept: list[str] = []
        dropped = 0
        async for item in tap:
            assert isinstance(item, Envelope)
            if isinstance(item.payload, MessagesDropped):
                dropped += item.payload.count
            else:
                kept.append(item.id)
    assert tap.lost == 0
    assert tap.spilled > 0
    assert dropped == slow.dropped
    assert kept == sent
    assert len([e async for e in slow]) == 1_000


async def run_tasks(count: int) -> int:
    """Scripted tasks one after the other on one bus; returns how many objects the process holds afterwards."""
    bus = new_bus()
    everything = bus.subscribe("display")
    for number in range(count):
        task_id = f"task-{number}"
        user, solver = bus.port(Role.USER, task_id), bus.port(Role.SOLVER, task_id)
        pool = bus.inbox(task_id, frozenset({"SubTask"}))
        display = bus.subscribe("task", task_id=task_id)
        cause = user.publish(request())
        assert await solver.receive() is cause
        bus.port(Role.DISPATCHER, task_id).publish(subtask("s1"), subtask_id="s1")
        await pool.receive()
        executor = bus.port(Role.EXECUTOR, task_id, subtask_id="s1")
        await executor.receive()
        executor.close()
        bus.close_task(task_id)
        assert [e.kind async for e in display] == ["UserRequest", "SubTask"]
        assert [(await everything.receive()).kind for _ in range(2)] == ["UserRequest", "SubTask"]
    assert bus.open_tasks == 0
    gc.collect()
    return len(gc.get_objects())


async def test_closed_tasks_leave_nothing_behind() -> None:
    """Five times as many tasks leave no more objects behind."""
    await run_tasks(20)
    few = await run_tasks(20)
    many = await run_tasks(100)
    assert many - few < 20


@pytest.mark.torture
async def test_five_thousand_tasks_leave_nothing_behind() -> None:
    """The long form of the same claim."""
    await run_tasks(50)
    few = await run_tasks(50)
    many = await run_tasks(5_000)
    assert many - few < 20
