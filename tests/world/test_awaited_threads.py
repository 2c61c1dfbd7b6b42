"""Work in a thread is nobody's loss: its end is awaited, and what nobody takes is undone."""

from __future__ import annotations

import asyncio
import threading

from artoo.world.threads import or_undone, to_its_end


def test_what_a_thread_makes_is_undone_when_its_event_loop_ends() -> None:
    """`asyncio.run` cancels every task when its own has ended: what is made just then belongs to nobody."""
    begun, go_on = threading.Event(), threading.Event()
    made: list[str] = []

    def make() -> str:
        begun.set()
        assert go_on.wait(10)
        made.append("a layer")
        return "a layer"

    async def main() -> None:
        loop = asyncio.get_running_loop()
        waiting = asyncio.create_task(or_undone(make, made.remove))
        await asyncio.to_thread(begun.wait, 10)
        assert not waiting.done()
        loop.call_later(0.05, go_on.set)  # after the loop has begun to end

    asyncio.run(main())
    assert begun.is_set() and made == []


async def test_who_is_cancelled_is_told_and_waits() -> None:
    """The work hears of it, ends as it will, and only then the cancellation goes on."""
    begun = threading.Event()
    ended: list[bool] = []

    def work(gone: threading.Event) -> None:
        begun.set()
        ended.append(gone.wait(10))

    waiting = asyncio.create_task(to_its_end(work))
    await asyncio.to_thread(begun.wait, 10)
    waiting.cancel()
    await asyncio.wait({waiting})
    assert waiting.cancelled() and ended == [True]
