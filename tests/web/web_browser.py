"""A real browser for the page's tests: headless, with nothing of its own that would go out."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

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
async def browsing() -> AsyncGenerator[Browsing]:
    """The browser of this machine; no error of a script may be left."""
    found = chromium()
    assert found is not None
    place, environ = found
    async with async_playwright() as playwright:
        browser = await playwright.chromium.launch(
            executable_path=place, args=list(ARGUMENTS), env=dict(environ), timeout=PATIENCE
        )
        try:
            window = Browsing(browser)
            yield window
            assert not window.errors
        finally:
            await browser.close()
