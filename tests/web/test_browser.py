"""The page in a real browser: watched, cut off, answered, read by keyboard, on a telephone, in the dark."""

from __future__ import annotations

import asyncio
import os
from base64 import b64decode, b64encode
from pathlib import Path

import pytest
from fetch_browser import AXE
from playwright.async_api import Page as Tab
from playwright.async_api import Route
from web_browser import NEEDS_BROWSER, browsing, known, reach, shown_numbers
from web_home import FIND, with_everything
from web_scenes import TASK, Writer, first_round, holds, opening, second_round, stopped_by, whole
from web_server import page_of

from artoo.contracts.changes import ChangeKind
from artoo.contracts.confirmation import ConfirmationRequest, Consent
from artoo.contracts.settling import ChangeClass, ClassCount, ClassifiedChange, Review
from artoo.contracts.solution import StoppedBy
from artoo.runtime.approvals.multi_prompt import AskedEverywhere
from artoo.runtime.approvals.prompt_store import Given, TaskDesk
from artoo.tasklog.lock import TaskLock

pytestmark = NEEDS_BROWSER

OTHER = "0198f111-0000-7000-8000-00000000000b"
QUESTION = ConfirmationRequest(
    digest="d1", title="network: reach pypi.org:443", details=("$ pip install rich", "reach pypi.org:443"),
    source="read_file README.md",
)  # fmt: skip


REVIEW = ConfirmationRequest(
    digest="d2",
    title="Apply the changes of this task?",
    review=Review(
        task_id=TASK,
        counts=(ClassCount(change_class=ChangeClass.EDIT, count=1),),
        changes=(
            ClassifiedChange(
                path="/home/ada/project/importers.md",
                change_class=ChangeClass.EDIT,
                kind=ChangeKind.OVERWRITTEN,
                diff=("@@ -1,2 +1,2 @@", "-src/app.py 14", "+src/app.py 23", " src/views.py 19"),
            ),
        ),
    ),
)
PAIR = f"/memory?space={FIND.space}&entity={FIND.entity}"
PICTURES = {
    ("narrow", f"/tasks/{TASK}"): "web-narrow",
    ("dark", f"/tasks/{TASK}"): "web-dark",
    ("wide", "/"): "web-now",
    ("wide", "/team"): "web-team",
    ("wide", PAIR): "web-memory",
}
"""What is kept as a picture for docs/web.md."""


async def picture(tab: Tab, name: str, *, full: bool = False) -> None:
    """Kept for the documentation where that is wanted (`make pictures`), a third as large as a PNG would be."""
    folder = os.environ.get("ARTOO_PICTURES")
    if folder:
        await asyncio.to_thread(Path(folder).mkdir, parents=True, exist_ok=True)
        shown = b64encode(await tab.screenshot(full_page=full)).decode()
        blank = await tab.context.new_page()
        packed = await blank.evaluate(
            """async (png) => {
              const answer = await fetch(`data:image/png;base64,${png}`);
              const image = await createImageBitmap(await answer.blob());
              const canvas = document.createElement('canvas');
              Object.assign(canvas, { width: image.width, height: image.height });
              canvas.getContext('2d').drawImage(image, 0, 0);
              return canvas.toDataURL('image/webp', 0.74).split(',')[1];
            }""",
            shown,
        )
        await blank.close()
        await asyncio.to_thread((Path(folder) / f"{name}.webp").write_bytes, b64decode(packed))


async def test_a_task_is_watched_from_its_request_to_its_result(tmp_path: Path) -> None:
    """Live; reloaded in the middle; over a restart of the server: no event is lost or shown twice."""
    writer = Writer(tmp_path)
    with TaskLock(tmp_path, TASK):
        writer.say(opening())
        async with browsing() as window:
            async with page_of(tmp_path, enter=False) as page:
                port = page.port
                tab = await window.tab(page, tmp_path)
                await tab.goto(f"{page.address}/tasks/{TASK}/how")
                await tab.get_by_text("Now: planner").wait_for()
                writer.say(first_round())
                await known(tab, writer.count)
                await tab.get_by_text("Must not be used again").wait_for()
                await tab.reload()
                writer.say(second_round())
                await known(tab, writer.count)
                await tab.locator("svg.loops:visible .node.now").wait_for()
                await picture(tab, "web-live")
            await tab.locator("#offline").wait_for(state="visible")
            writer.say(holds())
            async with page_of(tmp_path, enter=False, port=port):
                await known(tab, writer.count)
                await tab.locator("#state.done").wait_for()
                assert await shown_numbers(tab) == list(range(writer.count))


class Terminal:
    """A person at a terminal who answers when told to, and hears that somebody else did."""

    def __init__(self) -> None:
        self.typed: asyncio.Future[Consent] = asyncio.get_running_loop().create_future()
        self.heard: list[Given] = []

    async def __call__(self, request: ConfirmationRequest) -> Consent:
        return await self.typed

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
            await late.get_by_text("It was answered before, in the browser: yes").wait_for()


async def test_a_consent_is_given_in_the_terminal_while_the_page_asks(tmp_path: Path) -> None:
    """The question goes from the page by itself; whoever clicks a moment too late is told whose answer counted."""
    writer, terminal, deaf = Writer(tmp_path), Terminal(), asyncio.Event()

    async def unless_deaf(route: Route) -> None:
        """Decided after the server's answer, because a request may be on its way when the page becomes deaf."""
        response = await route.fetch()
        await (route.abort() if deaf.is_set() else route.fulfill(response=response))

    with TaskLock(tmp_path, TASK):
        writer.say([*opening(), *first_round()])
        async with browsing() as window, page_of(tmp_path, enter=False) as page:
            seeing, late = await window.tab(page, tmp_path), await window.tab(page, tmp_path)
            asking = asyncio.ensure_future(AskedEverywhere(terminal, TaskDesk(tmp_path, TASK))(QUESTION))
            await late.route("**/tasks/*?part", unless_deaf)
            for tab in (seeing, late):
                await tab.goto(f"{page.address}/tasks/{TASK}")
                await tab.locator("form.question button[value=once]").wait_for()
            deaf.set()
            terminal.typed.set_result(Consent.NO)
            assert await asyncio.wait_for(asking, 60) is Consent.NO and terminal.heard == []
            await seeing.locator("form.question").wait_for(state="detached")
            await late.locator("form.question button[value=once]").click()
            await late.get_by_text("It was answered before, in the terminal: no").wait_for()


async def test_with_the_keyboard_alone(tmp_path: Path) -> None:
    """From the top to the timeline, into an event, out again, and a quiet run unfolded."""
    Writer(tmp_path).say(whole())
    async with browsing() as window, page_of(tmp_path, enter=False) as page:
        tab = await window.tab(page, tmp_path)
        await tab.goto(f"{page.address}/tasks/{TASK}/how")
        await tab.locator(".event .kind:not(:empty)").first.wait_for()
        await reach(tab, "#timeline")
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
    home = tmp_path / ("主目录" if name == "chinese" else "home")
    said = "把2025年的发票按客户整理好" if name == "chinese" else "Sort the invoices of 2025 by customer"
    Writer(home).say(whole())
    board = await with_everything(home, said)
    running = Writer(home, OTHER)
    running.say([*opening(said), *first_round(), *second_round()])
    with TaskLock(home, OTHER), TaskDesk(home, OTHER).laid(QUESTION), TaskDesk(home, OTHER).laid(REVIEW):
        async with browsing() as window, page_of(home, enter=False) as page:
            tab = await window.tab(
                page, home, size=size, scheme="dark" if scheme == "dark" else "light", language=language
            )
            for path in (
                *("/", f"/tasks/{TASK}", f"/tasks/{OTHER}", f"/tasks/{TASK}/how", f"/tasks/{TASK}/what-if"),
                *(f"/tasks/{TASK}/events/3", "/team", f"/team/tasks/{board['failed'].id}", "/memory", PAIR),
                *("/audit", "/nowhere"),
            ):
                await tab.goto(page.address + path)
                if path.endswith("/how"):
                    await tab.locator(".event .kind:not(:empty)").first.wait_for()
                assert await tab.evaluate("document.documentElement.scrollWidth") <= size[0], path
                assert await tab.evaluate("document.documentElement.lang") == language[:2]
                assert (said in await tab.locator("main").inner_text()) or path not in ("/", "/team", PAIR), path
                if (name, path) in PICTURES:
                    await picture(tab, PICTURES[name, path], full=True)
                assert await violations(tab) == [], path
            await tab.goto(page.address + "/audit")
            await tab.locator("form[action='/audit/verify'] button").click()
            await tab.locator("#proof").wait_for()
            assert await violations(tab) == []


FAILED, CUT = "0198f333-0000-7000-8000-00000000000d", "0198f444-0000-7000-8000-00000000000e"


@pytest.mark.parametrize(
    ("width", "scheme", "language"),
    [(360, "dark", "zh-CN"), (768, "light", "en-US"), (1280, "dark", "en-US"), (1920, "light", "zh-CN")],
)
async def test_every_state_of_a_task_fits_and_is_accessible(
    tmp_path: Path, width: int, scheme: str, language: str
) -> None:
    """Working, needs you, done, failed, stopped: at four widths, in both schemes and languages; and the answer
    stands above the review."""
    Writer(tmp_path).say(whole())
    Writer(tmp_path, FAILED).say([*opening(), *first_round(), stopped_by(StoppedBy.NO_MODEL)])
    Writer(tmp_path, CUT).say([*opening(), *first_round()])
    Writer(tmp_path, OTHER).say([*opening(), *second_round(), *list(holds())[:4]])
    with TaskLock(tmp_path, OTHER):
        async with browsing() as window, page_of(tmp_path, enter=False) as page:
            tab = await window.tab(
                page, tmp_path, size=(width, 800), scheme="dark" if scheme == "dark" else "light", language=language
            )

            async def fits(task: str, state: str) -> None:
                await tab.goto(f"{page.address}/tasks/{task}")
                await tab.locator(f"#state.{state}").wait_for()
                assert await tab.evaluate("document.documentElement.scrollWidth") <= width, state
                assert await violations(tab) == [], state

            for task, state in ((TASK, "done"), (FAILED, "failed"), (CUT, "stopped"), (OTHER, "working")):
                await fits(task, state)
            with TaskDesk(tmp_path, OTHER).laid(QUESTION), TaskDesk(tmp_path, OTHER).laid(REVIEW):
                await fits(OTHER, "needs")
                places = await tab.evaluate(
                    "['#answer', 'form.changes'].map((one) => document.querySelector(one).offsetTop)"
                )
                assert places == sorted(places)
                bar = tab.locator(".settle")
                await tab.evaluate("scrollTo(0, document.documentElement.scrollHeight)")
                assert await bar.evaluate("(one) => one.getBoundingClientRect().top >= 0")
                assert await tab.locator(".file code").inner_text() == "importers.md"


async def violations(tab: Tab) -> list[list[object]]:
    """What axe-core finds; nothing where it could not be had."""
    if not AXE.exists():
        return []
    await tab.evaluate(AXE.read_text())  # as a debugger's text: the page's policy allows no such script
    return await tab.evaluate(
        "async () => (await axe.run()).violations.map((v) => "
        "[v.id, v.impact, v.nodes.slice(0, 3).map((n) => n.html.slice(0, 160))])"
    )
