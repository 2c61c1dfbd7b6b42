"""Many tabs of the page in one browser, which opens six connections to a server for all of them together."""

from __future__ import annotations

from pathlib import Path

import pytest
from playwright.async_api import Page as Tab
from web_browser import NEEDS_BROWSER, browsing, known
from web_scenes import TASK, Writer, first_round, opening
from web_server import page_of, stop_wanted

from artoo.tasklog.lock import TaskLock

pytestmark = NEEDS_BROWSER

COUNTING = """
  window.streams = new Set();
  window.EventSource = class extends EventSource {
    constructor(address) { super(address); window.streams.add(this); }
    close() { super.close(); window.streams.delete(this); }
  };
  Object.defineProperty(Document.prototype, 'hidden', { get: () => window.away === true });
  window.leave = (away) => { window.away = away; document.dispatchEvent(new Event('visibilitychange')); };
"""
"""Which streams a tab has open, and a switch for whether it is seen: a headless browser shows all of its tabs."""


async def streams(tab: Tab, count: int) -> None:
    """Returns when the tab has so many streams open."""
    await tab.wait_for_function("count => window.streams.size === count", arg=count)


@pytest.mark.torture
async def test_nine_tabs_that_are_seen_all_load_hear_and_act(tmp_path: Path) -> None:
    """Each learns what is new, and *Stop* that is pressed in one is sent at once."""
    writer = Writer(tmp_path)
    with TaskLock(tmp_path, TASK):
        writer.say(opening())
        async with browsing() as window, page_of(tmp_path, enter=False) as page:
            first = await window.tab(page, tmp_path)
            tabs = [first, *[await first.context.new_page() for _ in range(8)]]
            for tab in tabs:
                await tab.goto(f"{page.address}/tasks/{TASK}/how")
            writer.say(first_round())
            for tab in tabs:
                await known(tab, writer.count)
            await tabs[-1].locator("#stop button").click()
            await stop_wanted(tmp_path, TASK)


async def test_a_tab_that_nobody_sees_has_no_stream_and_goes_on_when_it_is_seen(tmp_path: Path) -> None:
    """What was said meanwhile is there then, once, and the page never says that it lost the connection."""
    writer = Writer(tmp_path)
    with TaskLock(tmp_path, TASK):
        writer.say(opening())
        async with browsing() as window, page_of(tmp_path, enter=False) as page:
            tab = await window.tab(page, tmp_path)
            await tab.add_init_script(COUNTING)
            await tab.goto(f"{page.address}/tasks/{TASK}/how")
            await streams(tab, 1)
            await tab.evaluate("window.leave(true)")
            await streams(tab, 0)
            writer.say(first_round())
            await tab.evaluate("window.leave(false)")
            await known(tab, writer.count)
            await streams(tab, 1)
            assert await tab.locator("#offline").is_hidden()
