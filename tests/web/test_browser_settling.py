"""A person without a mouse, in a real browser: asks for something, watches, chooses, discards, puts back."""

from __future__ import annotations

from pathlib import Path

from web_browser import NEEDS_BROWSER, browsing, reach
from web_changes import script
from web_server import page_of

from artoo.testing import ScriptedModel

pytestmark = NEEDS_BROWSER


async def test_from_the_request_to_the_undo_by_keyboard_alone(tmp_path: Path, project: Path) -> None:
    """The whole runtime works; every step is reached with Tab and done with Enter or the space bar."""
    home = tmp_path / "artoo"
    with ScriptedModel(script()) as model:
        async with browsing() as window, page_of(home, model=model, enter=False, project=project) as page:
            tab = await window.tab(page, home)
            await reach(tab, "#text")
            await tab.keyboard.type("tidy up")
            await reach(tab, "form.ask button.main")
            await tab.keyboard.press("Enter")
            await tab.wait_for_url("**/tasks/*")
            where = tab.url.partition("?")[0]
            await tab.locator("form.changes").wait_for()
            assert "+new" in await tab.locator("main").inner_text()
            await reach(tab, f"input[name=path][value='{project / 'a.txt'}']")
            await tab.keyboard.press("Space")
            await tab.keyboard.press("Shift+Tab")  # back to the buttons, which stand above the paths
            while not await tab.evaluate("document.activeElement.matches('button[value=chosen]')"):
                await tab.keyboard.press("Shift+Tab")
            await tab.keyboard.press("Enter")
            await tab.locator("button[formaction$='/discard']").wait_for()
            assert (project / "a.txt").read_text() == "new\n" and (project / "gone.txt").exists()
            await tab.goto(where)
            await reach(tab, "button[formaction$='/discard']")
            await tab.keyboard.press("Enter")
            await tab.get_by_text("The changes were discarded.").wait_for()
            await reach(tab, "form[action$='/undo'] button")
            await tab.keyboard.press("Enter")
            await tab.get_by_role("heading", name="Undone").wait_for()
            assert (project / "a.txt").read_text() == "old\n" and (project / "gone.txt").exists()
