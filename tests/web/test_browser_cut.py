"""A real browser whose connection dies: after a minute's sleep it goes on, with no event lost or shown twice."""

from __future__ import annotations

import asyncio
from pathlib import Path

from playwright.async_api import Route
from web_browser import NEEDS_BROWSER, browsing, count_of, known, shown_numbers
from web_home import hire
from web_relay import relayed
from web_scenes import TASK, Writer, first_round, holds, opening, second_round
from web_server import page_of, site_at

from artoo.tasklog.lock import TaskLock
from artoo.team.office import open_office

pytestmark = NEEDS_BROWSER


async def test_a_laptop_that_slept_for_a_minute(tmp_path: Path) -> None:
    """The connection hangs unclosed, the browser's clock jumps by 60 s; the page says that it is cut off, and opens
    a stream of its own accord that goes on where the dead one was."""
    writer = Writer(tmp_path)
    with TaskLock(tmp_path, TASK):
        writer.say(opening())
        async with (
            browsing() as window,
            page_of(tmp_path, enter=False) as page,
            relayed(page.port) as (relay, port),
        ):
            tab = await window.tab(page, tmp_path)
            await tab.clock.install()
            await tab.goto(f"http://127.0.0.1:{port}/tasks/{TASK}/how")
            writer.say(first_round())
            await known(tab, writer.count)
            seen = await count_of(tab)
            relay.sleep()
            writer.say(second_round())
            await asyncio.wait_for(relay.dead.wait(), 60)  # the server has seen it, and sent it into the dead wire
            await tab.clock.fast_forward(60_000)
            await tab.locator("#offline").wait_for(state="visible")
            assert f"from event {seen}" in await tab.locator("#offline").inner_text()
            assert await count_of(tab) == seen
            writer.say(holds())
            relay.wake()
            await tab.clock.fast_forward(60_000)
            await known(tab, writer.count)
            await tab.locator("#offline").wait_for(state="hidden")
            await tab.locator("#state.done").wait_for()
            assert await shown_numbers(tab) == list(range(writer.count))


async def test_a_request_that_is_never_answered_does_not_hold_back_the_next(tmp_path: Path) -> None:
    """The page asks for its state over a connection that died unheard: it gives up after 15 s, and asks again."""
    writer, asked = Writer(tmp_path), asyncio.Event()

    async def swallow_first(route: Route) -> None:
        if asked.is_set():
            await route.fallback()
        asked.set()

    with TaskLock(tmp_path, TASK):
        writer.say(opening())
        async with browsing() as window, page_of(tmp_path, enter=False) as page:
            tab = await window.tab(page, tmp_path)
            await tab.clock.install()
            await tab.goto(f"{page.address}/tasks/{TASK}/how")
            await known(tab, writer.count)
            await tab.route("**/how?part", swallow_first)
            writer.say([*first_round(), *second_round(), *holds()])
            await asyncio.wait_for(asked.wait(), 60)
            await known(tab, writer.count)
            assert await tab.locator("#state.done").count() == 0
            await tab.clock.fast_forward(15_000)
            await tab.clock.fast_forward(1_000)
            await tab.locator("#state.done").wait_for()


async def test_the_first_page_and_the_team_are_living(tmp_path: Path) -> None:
    """Without a reload: a task that begins is drawn, its subtasks and spending with it, and goes when it has ended;
    what is put on the board elsewhere stands on it, and what somebody types meanwhile stays."""
    async with open_office(site_at(tmp_path).config) as office:
        await hire(office, "ada")
        async with browsing() as window, page_of(tmp_path, enter=False) as page:
            tab = await window.tab(page, tmp_path)
            await tab.locator("#text").fill("half a request")
            assert await tab.locator("a.at-work").count() == 0
            writer = Writer(tmp_path)
            with TaskLock(tmp_path, TASK):
                writer.say([*opening(), *list(first_round())[:5]])
                drawn = tab.locator("a.at-work")
                await drawn.locator(".bar.working").nth(1).wait_for()
                state = "Now: executor · Round 1 · 0 of 2 subtasks · 3 model calls"
                await drawn.filter(has_text=state).wait_for()  # it may be drawn before the last of it is written
                writer.say(list(first_round())[5:])
                await drawn.locator(".bar.failed").wait_for()
                await drawn.get_by_text("9% of the budget").wait_for()
                writer.say([*second_round(), *holds()])
            await drawn.wait_for(state="detached")
            await tab.locator(".history .state.done").wait_for()
            assert await tab.locator("#text").input_value() == "half a request"
            await tab.goto(f"{page.address}/team")
            await tab.locator("#write summary").click()
            await tab.locator("#write textarea").fill("Dear Ada")
            await office.board.add("count the files", "operator", assignee="ada")
            await tab.locator("[data-state=todo]").get_by_text("count the files").wait_for()
            assert await tab.locator("#write textarea").input_value() == "Dear Ada"
