"""A burst of messages, a slow watcher, and consumers that may lose nothing, together as in a real run."""

from __future__ import annotations

import asyncio
from contextlib import AsyncExitStack
from pathlib import Path

import pytest
from lossless import LosslessConsumer, TaskLogConsumer

from artoo.bus.inprocess import InProcessBus
from artoo.contracts.events import MessagesDropped, ModelCalled
from artoo.contracts.roles import Role
from artoo.testing import FakeClock, SequentialIds

BURST = 100_000
PLACES = 1_000
CONSUMERS: tuple[LosslessConsumer, ...] = (TaskLogConsumer(),)


@pytest.mark.torture
async def test_a_burst_is_kept_whole_and_holds_nobody_up(tmp_path: Path) -> None:
    """100,000 messages at once, six times what a spool holds in memory: the publisher never waits, a slow
    watcher's losses are counted exactly and reported, and every lossless consumer has every message in order."""
    bus = InProcessBus(FakeClock(), SequentialIds())
    reports: list[MessagesDropped] = []
    bus.attach(lambda said: reports.append(said.payload) if isinstance(said.payload, MessagesDropped) else None)
    turns = 0

    async def count_turns() -> None:
        nonlocal turns
        while True:
            turns += 1
            await asyncio.sleep(0)

    async with AsyncExitStack() as stack:
        for consumer in CONSUMERS:
            await stack.enter_async_context(consumer.attached(bus, tmp_path))
        turning = asyncio.create_task(count_turns())
        await asyncio.sleep(0)
        slow = bus.subscribe("slow", task_id="burst", capacity=PLACES)
        port = bus.port(Role.EXECUTOR, "burst")
        payload = ModelCalled(role=Role.EXECUTOR, contract="X", tier="tool", model="m", system="s", user="u")
        before = turns
        sent = [port.publish(payload).id for _ in range(BURST)]
        assert turns == before, "the publisher let somebody else run"
        turning.cancel()
        assert slow.dropped == BURST - PLACES
        seen = [(await slow.receive()).id for _ in range(PLACES)]
        sent.append(port.publish(payload).id)  # there is room again: the burst is over, and reported
        slow.close()
    assert seen == sent[:PLACES]
    assert slow.dropped == BURST - PLACES
    for consumer in CONSUMERS:
        kept, published = consumer.kept(tmp_path, "burst"), set(sent)
        assert [one for one in kept if one in published] == sent
        assert len(kept) == len(sent) + len(reports) == len(sent) + 1
    assert [report.count for report in reports] == [BURST - PLACES]
    assert not list((tmp_path / "spool").glob("*"))
