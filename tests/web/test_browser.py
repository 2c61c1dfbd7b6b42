"""The page in a real browser: watched, cut off, answered, read by keyboard, on a telephone, in the dark."""

from __future__ import annotations

import asyncio
import os
from pathlib import Path

import pytest
from fetch_browser import AXE, chromium
from playwright.async_api import Page as Tab
from web_browser import browsing
from web_scenes import TASK, Writer, first_round, holds, opening, second_round, whole
from web_server import page_of

from artoo.contracts.confirmation import ConfirmationRequest, Consent
from artoo.ports.desk import Given
from artoo.runtime.asked_everywhere import AskedEverywhere
from artoo.runtime.desk import TaskDesk
from artoo.tasklog.lock import TaskLock

pytestmark = [
    pytest.mark.unreplayable,
    pytest.mark.skipif(chromium() is None, reason="no Chromium here: `make browser` fetches one, or says why not"),
]

OTHER = "0198f111-0000-7000-8000-00000000000b"
QUESTION = ConfirmationRequest(
    digest="d1", title="network: reach pypi.org:443", details=("$ pip install rich", "reach pypi.org:443"),
    source="read_file README.md",
)  # fmt: skip


async def picture(tab: Tab, name: str, *, full: bool = False) -> None:
    """Kept for the documentation where that is wanted (`make pictures`)."""
    folder = os.environ.get("ARTOO_PICTURES")
    if folder:
        await asyncio.to_thread(Path(folder).mkdir, parents=True, exist_ok=True)
        await tab.screenshot(path=Path(folder) / f"{name}.png", full_page=full)


async def count_of(tab: Tab) -> int:
    """How many events the page knows."""
    return int(await tab.locator("#timeline").get_attribute("data-count") or 0)


async def known(tab: Tab, count: int) -> None:
    """Returns when the page knows so many events."""
    await tab.locator(f"#timeline[data-count='{count}']").wait_for(state="attached")


async def shown_numbers(tab: Tab) -> list[int]:
    """The numbers of all events that the timeline shows from its beginning to its end, scrolled through."""
    await tab.get_by_role("button", name="Everything").click()
    return await tab.evaluate(
        """async () => {
          const box = document.getElementById('timeline'), seen = [];
          for (let top = 0; top <= box.scrollHeight; top += 200) {
            box.scrollTop = top;
            for (let tries = 0; tries < 400; tries += 1) {
              await new Promise((done) => setTimeout(done, 15));
              const drawn = [...box.querySelectorAll('.event:not([hidden])')];
              if (!drawn.some((row) => row.dataset.n === '')) break;
            }
            const rows = box.querySelectorAll('.event:not([hidden])');
            for (const row of rows) seen[row.dataset.place] = Number(row.dataset.n);
          }
          return seen;
        }"""
    )


async def test_a_task_is_watched_from_its_request_to_its_result(tmp_path: Path) -> None:
    """Live; reloaded in the middle; over a restart of the server: no event is lost or shown twice."""
    writer = Writer(tmp_path)
    with TaskLock(tmp_path, TASK):
        writer.say(opening())
        async with browsing() as window:
            async with page_of(tmp_path, enter=False) as page:
                port = page.port
                tab = await window.tab(page, tmp_path)
                await tab.goto(f"{page.address}/tasks/{TASK}")
                await tab.get_by_text("Now: planner.").wait_for()
                writer.say(first_round())
                await known(tab, writer.count)
                await tab.get_by_text("May not be used again").wait_for()
                await tab.reload()
                writer.say(second_round())
                await known(tab, writer.count)
                await tab.locator("svg.loops:visible .node.now").wait_for()
                await picture(tab, "web-live")
            await tab.locator("#offline").wait_for(state="visible")
            writer.say(holds())
            async with page_of(tmp_path, enter=False, port=port):
                await known(tab, writer.count)
                await tab.get_by_text("src/app.py imports the most").first.wait_for()
                assert await shown_numbers(tab) == list(range(writer.count))


class Terminal:
    """A person at a terminal who does not answer, and hears that somebody else did."""

    def __init__(self) -> None:
        self.heard: list[Given] = []

    async def __call__(self, request: ConfirmationRequest) -> Consent:
        await asyncio.Event().wait()
        return Consent.NO

    def answered_elsewhere(self, request: ConfirmationRequest, given: Given) -> None:
        self.heard.append(given)


async def test_a_consent_is_given_in_the_page_while_the_terminal_asks(tmp_path: Path) -> None:
    """The page's yes counts and the terminal is told; a second window that comes late is told too."""
    writer, terminal = Writer(tmp_path), Terminal()
    with TaskLock(tmp_path, TASK):
        writer.say([*opening(), *first_round()])
        async with browsing() as window, page_of(tmp_path, enter=False) as page:
            first = await window.tab(page, tmp_path)
            await first.goto(f"{page.address}/tasks/{TASK}")
            asking = asyncio.ensure_future(AskedEverywhere(terminal, TaskDesk(tmp_path, TASK))(QUESTION))
            await first.get_by_text("reach pypi.org:443").first.wait_for()
            late = await window.tab(page, tmp_path)
            await late.goto(f"{page.address}/tasks/{TASK}")
            await late.evaluate("for (const form of document.forms) form.dataset.kept = '1'")
            await picture(first, "web-question")
            held = late.locator("button[value=no]")
            await held.wait_for()
            await late.route("**/stream*", lambda route: route.abort())
            token = await late.evaluate("document.querySelector('form.question').outerHTML")
            await first.get_by_role("button", name="Yes, once").click()
            assert await asyncio.wait_for(asking, 60) is Consent.ONCE
            assert [(each.said, each.via) for each in terminal.heard] == [(Consent.ONCE, "page")]
            await late.evaluate(
                "html => { document.body.insertAdjacentHTML('beforeend', html); }",
                token.replace('id="question', 'id="late'),
            )
            await late.locator("form[id^=late] button[value=no]").click()
            await late.get_by_text("It was answered elsewhere (page) before: yes").wait_for()


async def test_with_the_keyboard_alone(tmp_path: Path) -> None:
    """From the top to the timeline, into an event, out again, and a quiet run unfolded."""
    Writer(tmp_path).say(whole())
    async with browsing() as window, page_of(tmp_path, enter=False) as page:
        tab = await window.tab(page, tmp_path)
        await tab.goto(f"{page.address}/tasks/{TASK}")
        await tab.locator(".event .kind:not(:empty)").first.wait_for()
        for _ in range(60):
            await tab.keyboard.press("Tab")
            if await tab.evaluate("document.activeElement.id") == "timeline":
                break
        else:
            raise AssertionError("the timeline cannot be reached")
        await tab.keyboard.press("End")
        await tab.keyboard.press("Enter")
        await tab.locator("#detail[open]").wait_for()
        assert "FinalResult" in await tab.locator("#detail-body").inner_text()
        await tab.keyboard.press("Escape")
        await tab.locator("#detail").wait_for(state="hidden")
        assert await tab.evaluate("document.activeElement.id") == "timeline"


@pytest.mark.parametrize(
    ("name", "size", "scheme", "language"),
    [
        ("narrow", (360, 780), "light", "en-US"),
        ("wide", (1600, 1000), "light", "en-US"),
        ("dark", (1280, 900), "dark", "en-US"),
        ("chinese", (1280, 900), "light", "zh-CN"),
    ],
)
async def test_every_page_fits_and_is_accessible(
    tmp_path: Path, name: str, size: tuple[int, int], scheme: str, language: str
) -> None:
    """Nothing is wider than the window, and axe-core's rules find nothing, on every page."""
    Writer(tmp_path).say(whole())
    running = Writer(tmp_path, OTHER)
    running.say([*opening("Sort the invoices of 2025 by customer"), *first_round(), *second_round()])
    with TaskLock(tmp_path, OTHER), TaskDesk(tmp_path, OTHER).laid(QUESTION):
        async with browsing() as window, page_of(tmp_path, enter=False) as page:
            tab = await window.tab(
                page, tmp_path, size=size, scheme="dark" if scheme == "dark" else "light", language=language
            )
            paths = [
                *("/", f"/tasks/{TASK}", f"/tasks/{OTHER}", f"/tasks/{TASK}/difference", f"/tasks/{TASK}/what-if"),
                *(f"/tasks/{TASK}/events/3", "/team", "/memory", "/audit", "/cost", "/nowhere"),
            ]
            for path in paths:
                await tab.goto(page.address + path)
                if path.startswith("/tasks/") and path.count("/") == 2:
                    await tab.locator(".event .kind:not(:empty)").first.wait_for()
                assert await tab.evaluate("document.documentElement.scrollWidth") <= size[0], path
                if path == f"/tasks/{TASK}" and name in ("narrow", "dark"):
                    await picture(tab, f"web-{name}", full=True)
                if AXE.exists():
                    await tab.evaluate(
                        AXE.read_text()
                    )  # as a debugger's text: the page's policy allows no such script
                    found = await tab.evaluate(
                        "async () => (await axe.run()).violations.map((v) => "
                        "[v.id, v.impact, v.nodes.slice(0, 3).map((n) => n.html.slice(0, 160))])"
                    )
                    assert found == [], (path, found)
