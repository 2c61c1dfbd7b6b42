"""A real browser on a page that changes all the time: what somebody presses is what happens."""

from __future__ import annotations

from pathlib import Path

import pytest
from playwright.async_api import Page as Tab
from web_browser import NEEDS_BROWSER, Browsing, browsing, known, reach
from web_scenes import TASK, Writer, asked_model, crowd, first_round, opening, second_round
from web_server import Page, page_of, stop_wanted

from artoo.contracts.roles import Role
from artoo.tasklog.lock import TaskLock

pytestmark = NEEDS_BROWSER

DRAWN = "() => new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)))"


async def looked_at(window: Browsing, page: Page, home: Path) -> Tab:
    """The task's page with its timeline drawn, and in the middle of the window."""
    tab = await window.tab(page, home)
    await tab.goto(f"{page.address}/tasks/{TASK}/how")
    await tab.locator(".event .kind", has_text="model call").first.wait_for()
    await tab.locator("#timeline").scroll_into_view_if_needed()
    await tab.evaluate(DRAWN)
    return tab


async def over(tab: Tab, selector: str) -> None:
    """The pointer stands over the last of these that can be seen."""
    spot = await tab.evaluate(
        """(selector) => {
          const box = document.getElementById('timeline').getBoundingClientRect();
          const seen = [...document.querySelectorAll(selector)].map((each) => each.getBoundingClientRect())
            .filter((each) => each.top >= Math.max(0, box.top) && each.bottom <= Math.min(innerHeight, box.bottom));
          const last = seen.reduce((one, other) => (one.top > other.top ? one : other));
          return [last.left + 200, (last.top + last.bottom) / 2];
        }""",
        selector,
    )
    await tab.mouse.move(*spot)


async def test_the_row_that_was_pressed_is_opened_though_events_arrive_meanwhile(tmp_path: Path) -> None:
    """The list follows its end while events come; a pressed row stays under the pointer until it is let go."""
    writer, more = Writer(tmp_path), crowd(2_000)
    with TaskLock(tmp_path, TASK):
        writer.say([next(more) for _ in range(400)])
        async with browsing() as window, page_of(tmp_path, enter=False) as page:
            tab = await looked_at(window, page, tmp_path)
            await over(tab, ".event:not(.fold):not([hidden])")
            pressed = await tab.evaluate("document.querySelector('.event:hover').dataset.n")
            await tab.mouse.down()
            for _ in range(3):
                writer.say([next(more) for _ in range(40)])
                await known(tab, writer.count)
                await tab.evaluate(DRAWN)
            await tab.mouse.up()
            await tab.locator("#detail[open]").wait_for()
            assert f"#{pressed}" in await tab.locator("#detail-head").inner_text()
            await tab.keyboard.press("Escape")
            await tab.locator(f".event[data-n='{writer.count - 1}']").wait_for()  # and it follows again


@pytest.mark.torture
async def test_a_row_belongs_to_one_event(tmp_path: Path) -> None:
    """Scrolled through and back, in both views: no element ever stands for two events, nor moves."""
    writer = Writer(tmp_path)
    writer.say(crowd(1_200))
    async with browsing() as window, page_of(tmp_path, enter=False) as page:
        tab = await looked_at(window, page, tmp_path)
        watched = """async () => {
          const box = document.getElementById('timeline'), said = new Map(), broken = [];
          const tops = [];
          for (let top = box.scrollHeight; top > 0; top -= 150) tops.push(top);
          for (const top of [...tops, ...tops.toReversed()]) {
            box.scrollTop = top;
            await new Promise((done) => setTimeout(done, 12));
            for (const row of box.querySelectorAll('.event:not([hidden])')) {
              const now = `${row.dataset.place} ${row.style.transform}`;
              if (said.has(row) && said.get(row) !== now) broken.push([said.get(row), now]);
              said.set(row, now);
            }
          }
          return [broken.length, said.size, box.querySelectorAll('.event').length];
        }"""
        for view in ("short", "all"):
            await tab.locator(f"button[data-view={view}]").click()
            broken, seen, left = await tab.evaluate(watched)
            assert broken == 0 and seen > 400 and left < 80, view


async def test_a_button_stays_itself_while_the_words_around_it_change(tmp_path: Path) -> None:
    """Reached by keyboard it keeps the focus, and pressed while its region is drawn anew it acts; what was opened
    stays open."""
    writer = Writer(tmp_path)
    with TaskLock(tmp_path, TASK):
        writer.say([*opening(), *list(first_round())[:14]])
        async with browsing() as window, page_of(tmp_path, enter=False) as page:
            tab = await window.tab(page, tmp_path)
            await tab.goto(f"{page.address}/tasks/{TASK}/how")
            stop = tab.get_by_role("button", name="Stop")
            await reach(tab, "form[action$='/stop'] button")
            writer.say([asked_model(Role.EXECUTOR, "ExecutorStep")])
            await tab.locator(".facts").get_by_text("5 model calls").wait_for()
            assert await tab.evaluate("document.activeElement.textContent") == "Stop"
            await stop.hover()
            await tab.mouse.down()
            writer.say([asked_model(Role.EXECUTOR, "ExecutorStep")])
            await tab.locator(".facts").get_by_text("6 model calls").wait_for()
            await tab.mouse.up()
            await stop_wanted(tmp_path, TASK)


async def test_a_drawing_that_changes_does_not_close_what_was_opened(tmp_path: Path) -> None:
    """Criteria that somebody unfolded stay unfolded, and are the same elements, when the next message comes."""
    writer = Writer(tmp_path)
    with TaskLock(tmp_path, TASK):
        writer.say([*opening(), *first_round()])
        async with browsing() as window, page_of(tmp_path, enter=False) as page:
            tab = await window.tab(page, tmp_path)
            await tab.goto(f"{page.address}/tasks/{TASK}/how")
            summary = tab.locator("[id^=criteria-] summary").first
            await summary.click()
            await summary.evaluate("(each) => { each.dataset.mine = '1'; each.parentElement.kept = true; }")
            writer.say(second_round())
            await tab.locator(".part.working").wait_for()
            assert await tab.evaluate("document.querySelector('[id^=criteria-]').open")
            assert await tab.evaluate("document.querySelector('[id^=criteria-]').kept === true")
