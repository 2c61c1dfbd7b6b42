"""A real browser among enemies: words that are scripts, pages of other sites, names that point here."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path

from aiohttp import web
from web_browser import NEEDS_BROWSER, browsing
from web_home import FIND, with_everything
from web_scenes import TASK, Writer, asked_model, first_round, holds, opening, planned, used
from web_server import page_of

from artoo.contracts.changes import ChangeKind, Conflict
from artoo.contracts.confirmation import ConfirmationRequest
from artoo.contracts.roles import Role
from artoo.contracts.settling import ChangeClass, ClassifiedChange, Review
from artoo.runtime.approvals.prompt_store import TaskDesk
from artoo.tasklog.reader import list_tasks

pytestmark = NEEDS_BROWSER

SCRIPT = "</pre></script><script>window.ran=1;alert(1)</script><img src=x onerror='window.ran=1'>{{7*7}}"


async def test_nothing_that_is_said_runs(tmp_path: Path) -> None:
    """File names, a model's answer, tool output, diffs, questions, letters, the board, memory, findings: on no page
    does any of it become an element or a script, nor in the timeline and an opened event."""
    writer = Writer(tmp_path)
    writer.say([*opening(SCRIPT), *planned(1, [SCRIPT]), asked_model(Role.EXECUTOR, "ExecutorStep", SCRIPT)])
    writer.say([*used("1.1", f"echo {SCRIPT}", SCRIPT), *first_round(), *holds()])
    board = await with_everything(tmp_path, SCRIPT)
    change = ClassifiedChange(
        path=f"/home/ada/{SCRIPT}", change_class=ChangeClass.EDIT, kind=ChangeKind.OVERWRITTEN, reason=SCRIPT,
        detail=SCRIPT, diff=("@@ -1 +1 @@", f"-{SCRIPT}", f"+{SCRIPT}"),
    )  # fmt: skip
    conflict = Conflict(path=SCRIPT, reason=SCRIPT)
    review = Review(task_id=TASK, changes=(change,), conflicts=(conflict,), went_out=(SCRIPT,))
    question = ConfirmationRequest(digest="d", title=SCRIPT, details=(SCRIPT,), source=SCRIPT)
    desk = TaskDesk(tmp_path, TASK)
    with desk.laid(question), desk.laid(question.model_copy(update={"review": review})):
        async with browsing() as window, page_of(tmp_path, enter=False) as page:
            tab = await window.tab(page, tmp_path)
            shown = 0
            for path in (
                *("/", f"/tasks/{TASK}", f"/tasks/{TASK}/how", f"/tasks/{TASK}/what-if", "/team"),
                *(f"/team/tasks/{one.id}" for one in board.values()),
                *("/memory", f"/memory?space={FIND.space}&entity={FIND.entity}", "/audit"),
                *(f"/tasks/{TASK}/events/{number}" for number in range(writer.count)),
                *(f"/tasks/{SCRIPT}", f"/memory?pair={SCRIPT}", f"/tasks/{TASK}?said={SCRIPT}&via={SCRIPT}"),
            ):
                await tab.goto(page.address + path)
                assert await tab.evaluate("window.ran === undefined"), path
                assert await tab.locator("img, main script").count() == 0, path
                shown += SCRIPT in await tab.evaluate("document.querySelector('main').textContent")
            assert shown > 15
            await tab.goto(f"{page.address}/tasks/{TASK}/how")
            await tab.locator(".event .text", has_text="window.ran").first.click()
            await tab.locator("#detail[open]").wait_for()
            assert SCRIPT in await tab.locator("#detail-body").inner_text()
            assert await tab.evaluate("window.ran === undefined") and await tab.locator("img").count() == 0


async def test_a_long_line_of_a_diff_shows_its_end_and_poses_as_no_other(tmp_path: Path) -> None:
    """Folded in the window; a further row stands right of every sign, and its blanks are as wide as they are."""
    Writer(tmp_path).say(opening("x"))
    forged = "+# a note" + " " * 500 + "+    raise Bad()"
    change = ClassifiedChange(
        path="/home/ada/notes.txt  + new  b", change_class=ChangeClass.EDIT, kind=ChangeKind.OVERWRITTEN,
        diff=("@@ -1 +1 @@", "-old", forged),
    )  # fmt: skip
    question = ConfirmationRequest(digest="d", title="x", review=Review(task_id=TASK, changes=(change,)))
    with TaskDesk(tmp_path, TASK).laid(question):
        async with browsing() as window, page_of(tmp_path, enter=False) as page:
            tab = await window.tab(page, tmp_path)
            await tab.goto(f"{page.address}/tasks/{TASK}/difference")
            assert await tab.evaluate(
                "(box => box.scrollWidth <= box.clientWidth)(document.querySelector('.diff'))"
            )
            left, last, rows = await tab.evaluate(
                """() => {
                  const text = document.querySelector(".diff .plus").firstChild, range = document.createRange();
                  const box = (at) => {
                    range.setStart(text, at); range.setEnd(text, at + 1);
                    return range.getBoundingClientRect();
                  };
                  const end = box(text.data.indexOf("+    raise")), start = box(0);
                  return [start.left, end.left, Math.round((end.top - start.top) / start.height)];
                }"""
            )
            assert last > left + 10 and rows >= 3
            assert "notes.txt  + new  b" in await tab.locator(".file code").inner_text()


@asynccontextmanager
async def another_site(text: str) -> AsyncGenerator[str]:
    """A page at another port of this machine: a browser calls it the same site, so it sends the cookie along."""

    async def answer(request: web.Request) -> web.Response:
        return web.Response(text=text, content_type="text/html")

    app = web.Application()
    app.router.add_get("/", answer)
    runner = web.AppRunner(app)
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", 0)
    await site.start()
    try:
        yield f"http://127.0.0.1:{runner.addresses[0][1]}/"
    finally:
        await runner.cleanup()


async def test_a_page_of_another_site_can_neither_act_nor_read_nor_frame(tmp_path: Path) -> None:
    """With the cookie in the browser: its form is refused, its requests tell it nothing, its frame stays empty."""
    Writer(tmp_path).say(opening("a request that nobody else may read"))
    before = len(list_tasks(tmp_path))
    async with browsing() as window, page_of(tmp_path, enter=False) as page:
        evil = f"""<!doctype html><iframe src="{page.address}/"></iframe>
          <form method="post" action="{page.address}/tasks"><input name="text" value="do it"></form>"""
        async with another_site(evil) as address:
            tab = await window.tab(page, tmp_path)
            await tab.goto(address)
            (frame,) = [one for one in tab.frames if one is not tab.main_frame]
            assert "nobody else may read" not in await frame.content()
            reads = """async (where) => {
              const said = [];
              for (const mode of ['cors', 'no-cors']) for (const method of ['GET', 'POST']) {
                try {
                  const body = method === 'POST' ? 'text=x' : undefined;
                  const answer = await fetch(where, { mode, method, body, credentials: 'include' });
                  said.push(answer.type + ':' + await answer.text());
                } catch (error) { said.push('refused'); }
              }
              said.push(await new Promise((done) => {
                const source = new EventSource(where + 'events', { withCredentials: true });
                source.onmessage = source.onopen = () => done('heard');
                source.onerror = () => done('refused');
              }));
              return said;
            }"""
            assert await tab.evaluate(reads, f"{page.address}/") in (
                ["refused"] * 5,
                ["refused", "refused", "opaque:", "opaque:", "refused"],
            )
            async with tab.expect_navigation() as going:
                await tab.evaluate("document.forms[0].submit()")
            answer = await (await going.value).text()
            assert "not asked by a page of artoo's own" in answer
    assert len(list_tasks(tmp_path)) == before


async def test_a_name_that_is_bound_to_this_machine_gets_nothing(tmp_path: Path) -> None:
    """DNS rebinding: another site's name that leads to 127.0.0.1 is refused before anything else is looked at."""
    rebound = "--host-resolver-rules=MAP rebound.example 127.0.0.1"
    async with browsing(rebound) as window, page_of(tmp_path, enter=False) as page:
        tab = await window.tab(page, tmp_path)
        for path in ("/", "/team", f"/enter?token={page.token}"):
            answer = await tab.goto(f"http://rebound.example:{page.port}{path}")
            assert answer is not None and answer.status == 421
        assert (await page.get("/"))[0] == 401
        async with page.client.get(f"{page.address}/enter?token={page.token}") as entering:
            assert entering.status == 200  # its token was not used up by that
