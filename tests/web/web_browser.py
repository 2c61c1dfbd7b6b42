"""A real browser for the page's tests: headless, with nothing of its own that would go out."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

import pytest
from fetch_browser import chromium
from playwright.async_api import Browser, async_playwright
from playwright.async_api import Page as Tab
from web_server import Page

from artoo.web.entry import Entry

ARGUMENTS = (
    *("--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking"),
    *("--disable-component-update", "--disable-sync"),
)
PATIENCE = 120_000
"""Milliseconds: for a busy machine. What is waited for is a state."""


NEEDS_BROWSER = pytest.mark.skipif(
    chromium() is None, reason="no Chromium here: `make browser` fetches one, or says why not"
)


@dataclass(slots=True)
class Browsing:
    """A browser. `errors` are those of all its pages' scripts."""

    browser: Browser
    errors: list[str] = field(default_factory=list[str])

    async def tab(
        self,
        page: Page,
        home: Path,
        *,
        size: tuple[int, int] = (1280, 900),
        scheme: Literal["light", "dark"] = "light",
        language: str = "en-US",
    ) -> Tab:
        """A window of somebody who has entered."""
        context = await self.browser.new_context(
            viewport={"width": size[0], "height": size[1]}, color_scheme=scheme, locale=language,
            reduced_motion="reduce",
        )  # fmt: skip
        context.set_default_timeout(PATIENCE)
        tab = await context.new_page()
        tab.on("pageerror", lambda error: self.errors.append(str(error)))
        tab.on("dialog", lambda dialog: self.errors.append(f"a script ran: {dialog.message}"))
        await tab.goto(f"{page.address}/enter?token={Entry(home).token()}")
        await tab.wait_for_url(f"{page.address}/")
        return tab


@asynccontextmanager
async def browsing(*arguments: str) -> AsyncGenerator[Browsing]:
    """The browser of this machine; no error of a script may be left."""
    found = chromium()
    assert found is not None
    place, environ = found
    async with async_playwright() as playwright:
        browser = await playwright.chromium.launch(
            executable_path=place, args=[*ARGUMENTS, *arguments], env=dict(environ), timeout=PATIENCE
        )
        try:
            window = Browsing(browser)
            yield window
            assert not window.errors
        finally:
            await browser.close()


async def count_of(tab: Tab) -> int:
    """How many events the page knows."""
    return int(await tab.locator("#timeline").get_attribute("data-count") or 0)


async def known(tab: Tab, count: int) -> None:
    """Returns when the page knows so many events."""
    await tab.locator(f"#timeline[data-count='{count}']").wait_for(state="attached")


async def shown_numbers(tab: Tab) -> list[int]:
    """The numbers of all events that the timeline shows from its beginning to its end, scrolled through."""
    await tab.locator("button[data-view=all]").click()
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


async def reach(tab: Tab, selector: str) -> None:
    """Presses Tab until this has the focus: a person without a mouse gets there, or the test fails."""
    for _ in range(80):
        if await tab.evaluate("what => document.activeElement.matches(what)", selector):
            return
        await tab.keyboard.press("Tab")
    raise AssertionError(f"{selector} cannot be reached with the keyboard")
