"""Watchers lose messages rather than slowing the stream, and every loss is counted; taps lose nothing."""

from __future__ import annotations

import asyncio
import logging

import pytest
from bus_doubles import TASK, called, new_bus, request, texts

from artoo.bus.inprocess import InProcessBus
from artoo.bus.queues import WatchQueue
from artoo.bus.watchers import MOST_PENDING
from artoo.contracts.envelope import Envelope
from artoo.contracts.events import MessagesDropped
from artoo.contracts.roles import Role


def reports_of(bus: InProcessBus) -> list[MessagesDropped]:
    """Collects the bus's own reports of dropped messages."""
    reports: list[MessagesDropped] = []

    def tap(envelope: Envelope) -> None:
        if isinstance(envelope.payload, MessagesDropped):
            reports.append(envelope.payload)

    bus.attach(tap)
    return reports


def say(bus: InProcessBus, *words: str, task_id: str = TASK) -> None:
    port = bus.port(Role.USER, task_id)
    for word in words:
        port.publish(request(word))
    port.close()


async def taken(queue: WatchQueue, count: int) -> list[str]:
    return texts([await queue.receive() for _ in range(count)])


async def test_a_watcher_sees_what_it_asked_for() -> None:
    """Everything, some kinds, one task, or some kinds of one task."""
    bus = new_bus()
    everything = bus.subscribe("all")
    kinds = bus.subscribe("kinds", kinds=frozenset({"ModelCalled"}))
    task = bus.subscribe("task", task_id=TASK)
    both = bus.subscribe("both", kinds=frozenset({"ModelCalled"}), task_id=TASK)
    say(bus, "a")
    say(bus, "b", task_id="another")
    bus.port(Role.EXECUTOR, TASK).publish(called("c"))
    bus.port(Role.EXECUTOR, "another").publish(called("d"))
    bus.close()
    assert texts([e async for e in everything]) == list("abcd")
    assert texts([e async for e in kinds]) == ["c", "d"]
    assert texts([e async for e in task]) == ["a", "c"]
    assert texts([e async for e in both]) == ["c"]


@pytest.mark.parametrize("kinds", [None, frozenset({"UserRequest"})])
async def test_a_watcher_that_waits_is_woken_at_once(kinds: frozenset[str] | None) -> None:
    """Each way of reading gets a message that is published while it waits, and the end."""
    bus = new_bus()
    one, iterated = (bus.subscribe(name, kinds=kinds) for name in ("one", "iterated"))

    async def iterate() -> list[Envelope]:
        return [envelope async for envelope in iterated]

    async with asyncio.TaskGroup() as group:
        receiving = group.create_task(one.receive())
        iterating = group.create_task(iterate())
        await asyncio.sleep(0)
        say(bus, "a")
        assert [len(queue.queued) for queue in (one, iterated)] == [1, 1]
        await asyncio.sleep(0)
        bus.close()
    assert texts([receiving.result()]) == texts(iterating.result()) == ["a"]


async def test_a_long_burst_reaches_watchers_before_anybody_reads() -> None:
    """What is pending for watchers of everything is bounded, and the count of drops can be asked at any time."""
    bus = new_bus()
    queue = bus.subscribe("display", capacity=MOST_PENDING)
    say(bus, *("x" for _ in range(MOST_PENDING)))
    assert len(queue.queued) == MOST_PENDING
    say(bus, "lost", "lost")
    assert queue.dropped == 2
    for _ in range(MOST_PENDING):
        await queue.receive()
    say(bus, "kept")
    bus.close()
    assert "kept" in texts([envelope async for envelope in queue])


async def test_a_closed_watcher_can_read_what_is_queued() -> None:
    """Closing stops new messages, not the reading of old ones; iteration then ends."""
    bus = new_bus()
    queue = bus.subscribe("display", kinds=frozenset({"UserRequest"}))
    say(bus, "a", "b")
    queue.close()
    queue.close()
    say(bus, "c")
    assert texts([e async for e in queue]) == ["a", "b"]
    assert queue.closed


async def test_a_burst_is_warned_about_once_and_reported_once(caplog: pytest.LogCaptureFixture) -> None:
    """One warning when it begins; one MessagesDropped with the exact count when half of the queue is free again."""
    bus = new_bus()
    reports = reports_of(bus)
    queue = bus.subscribe("display", kinds=frozenset({"UserRequest"}), capacity=4)
    with caplog.at_level(logging.WARNING):
        say(bus, *"abcdefg")
        assert await taken(queue, 1) == ["a"]
        say(bus, "h", "i")
        assert reports == []
        assert await taken(queue, 3) == ["b", "c", "d"]
        say(bus, "j")
    assert queue.dropped == 4
    assert reports == [MessagesDropped(subscriber="display", count=4)]
    assert [r.message for r in caplog.records if "too slow" in r.message] == [
        "subscriber display is too slow: its 4 places are taken and new messages are dropped for it until it reads"
    ]
    assert await taken(queue, 2) == ["h", "j"]


async def test_a_second_burst_is_counted_by_itself() -> None:
    """The total goes on, the report of each burst has that burst's count."""
    bus = new_bus()
    reports = reports_of(bus)
    queue = bus.subscribe("one place", kinds=frozenset({"UserRequest"}), capacity=1)
    for _ in range(2):
        say(bus, "kept", "lost", "lost")
        assert await taken(queue, 1) == ["kept"]
    queue.close()
    assert queue.dropped == 4
    assert [report.count for report in reports] == [2, 2]


async def test_a_burst_that_never_ends_is_reported_when_the_watcher_leaves() -> None:
    """No count stays untold: closing the subscription, or its task, reports the open burst."""
    bus = new_bus()
    reports = reports_of(bus)
    bus.subscribe("stuck", task_id=TASK, capacity=1)
    say(bus, *"abc")
    assert reports == []
    bus.close_task(TASK)
    assert reports == [MessagesDropped(subscriber="stuck", count=2)]


async def test_two_slow_watchers_do_not_report_each_other_for_ever() -> None:
    """Reports are messages too: watchers without room for them end in finitely many reports."""
    bus = new_bus()
    reports = reports_of(bus)
    queues = [bus.subscribe(name, capacity=2) for name in ("one", "two")]
    for _ in range(50):
        say(bus, "a", "b", "c")
        for queue in queues:
            await queue.receive()
    assert len(reports) <= 100


async def test_taps_come_before_queues_and_see_everything() -> None:
    """A tap has seen a message before any inbox has it."""
    bus = new_bus()
    inbox = bus.inbox(TASK, frozenset({"UserRequest"}))
    order: list[int] = []
    bus.attach(lambda _: order.append(len(inbox.queued)))
    say(bus, "a", "b")
    assert order == [0, 1]


async def test_a_failing_tap_is_detached_and_reported_once(caplog: pytest.LogCaptureFixture) -> None:
    """The publisher, the other taps and the queues never notice."""
    bus = new_bus()
    calls: list[str] = []

    def broken(envelope: Envelope) -> None:
        calls.append(envelope.kind)
        raise RuntimeError("tap is broken")

    bus.attach(broken)
    healthy: list[Envelope] = []
    bus.attach(healthy.append)
    say(bus, "a", "b")
    assert calls == ["UserRequest"]
    assert texts(healthy) == ["a", "b"]
    assert caplog.records[0].message.startswith("a tap failed")
    assert len(caplog.records) == 1


async def test_a_tap_can_be_attached_twice_and_detached_once() -> None:
    """Each attachment is its own; detaching is idempotent."""
    bus = new_bus()
    seen: list[Envelope] = []
    detach = bus.attach(seen.append)
    bus.attach(seen.append)
    say(bus, "a")
    detach()
    detach()
    say(bus, "b")
    assert texts(seen) == ["a", "a", "b"]
