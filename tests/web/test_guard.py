"""Nobody comes in without the cookie, from another site, by another name, or twice with one token."""

from __future__ import annotations

import asyncio
import os
from pathlib import Path

from starlette.routing import Route
from web_scenes import TASK, Writer, opening, planned, used
from web_server import Page, page_of, site_at
from yarl import URL

from artoo.contracts.changes import Conflict
from artoo.contracts.confirmation import ConfirmationRequest
from artoo.contracts.settling import Review
from artoo.runtime.approvals.prompt_store import TaskDesk
from artoo.web.app import ROUTES, application
from artoo.web.entry import Entry
from artoo.web.guard import ENTRANCE, HEADERS

SCRIPT = "<script>alert(1)</script><img src=x onerror=alert(1)>"


def path_of(route: Route) -> str:
    """An address of this route."""
    named = {
        "{task}": TASK,
        "{number}": "0",
        "{name}": "page.js",
        "{letter}": "x",
        "{proposal}": "x",
        "{digest}": "x",
    }
    path = route.path
    for name, value in named.items():
        path = path.replace(name, value)
    assert "{" not in path, path
    return path


async def raw(page: Page, request: str) -> str:
    """What the server says to these very bytes: a client library would mend them."""
    reader, writer = await asyncio.open_connection("127.0.0.1", page.port)
    writer.write(request.replace("\n", "\r\n").encode())
    answer = await reader.readline()
    writer.close()
    await writer.wait_closed()
    return answer.decode().split()[1]


async def test_every_route_is_refused_without_the_cookie(tmp_path: Path) -> None:
    """The table of routes is walked: with every method, all but the entrance; and each answer has the policy."""
    Writer(tmp_path).say(opening())
    async with page_of(tmp_path, enter=False) as page:
        walked = 0
        assert list(application(site_at(tmp_path), Entry(tmp_path)).routes) == list(ROUTES)  # there are no others
        for route in ROUTES:
            for method in sorted((route.methods or set()) | {"GET", "POST", "PUT", "DELETE"}):
                if route.path == ENTRANCE and method in ("GET", "HEAD"):
                    continue
                headers = {"origin": page.address, "cookie": "artoo_session=" + "x" * 43}
                path = page.address + path_of(route)
                async with page.client.request(method, path, headers=headers) as answer:
                    assert answer.status == 401, (method, route.path)
                    assert all(answer.headers[name] == value for name, value in HEADERS.items())
                walked += 1
        assert walked > 4 * (len(ROUTES) - 1)
        assert (await page.get(ENTRANCE))[0] == 401


async def test_a_token_is_good_once(tmp_path: Path) -> None:
    """It becomes a cookie that scripts cannot read and other sites do not send; then it is worth nothing."""
    async with page_of(tmp_path, enter=False) as page:
        async with page.client.get(f"{page.address}/enter?token={page.token}") as answer:
            cookie = answer.headers["set-cookie"].lower()
            assert answer.status == 200 and "httponly" in cookie and "samesite=strict" in cookie
        page.client.cookie_jar.clear()
        assert (await page.get(f"/enter?token={page.token}"))[0] == 401
    assert not any((tmp_path / "web" / "tokens").iterdir())
    kept = b"".join(
        path.name.encode() + path.read_bytes() for path in (tmp_path / "web").rglob("*") if path.is_file()
    )
    assert page.token.encode() not in kept


async def test_old_tokens_and_strange_ones(tmp_path: Path) -> None:
    """Late, empty, too long, or a path: no."""

    entry = Entry(tmp_path)
    late = entry.token()
    (place,) = (tmp_path / "web" / "tokens").iterdir()
    os.utime(place, (0, 0))
    for token in (late, "", "x" * 10_000, "../../config.yaml", "\x00"):
        assert entry.enter(token) is None and not entry.knows(token)


async def test_another_host_or_origin_is_refused(tmp_path: Path) -> None:
    """DNS rebinding (the Host header) and requests of other sites' pages (the Origin header)."""
    async with page_of(tmp_path) as page:
        own = f"127.0.0.1:{page.port}"
        for host in ("evil.example", f"evil.example:{page.port}", "127.0.0.1.evil.example", "[::1", "0.0.0.0"):
            assert await raw(page, f"GET / HTTP/1.1\nHost: {host}\n\n") == "421", host
        assert await raw(page, f"GET / HTTP/1.1\nHost: {own}\nHost: evil.example\n\n") in ("400", "421")
        for origin in ("", "null", "https://evil.example", f"http://{own}.evil.example", "http://127.0.0.1:1"):
            status, _ = await page.post("/tasks", ("text", "do it"), origin=origin)
            assert status == 403, origin
        assert await raw(page, f"GET / HTTP/1.1\nHost: localhost:{page.port}\n\n") == "401"


async def test_no_change_is_made_for_another_sites_page(tmp_path: Path) -> None:
    """CSRF: every route that changes something, with the cookie, for whatever Origin is not this page's own."""
    Writer(tmp_path).say(opening())
    async with page_of(tmp_path) as page:
        walked = 0
        for route in ROUTES:
            for method in sorted((route.methods or set()) - {"GET", "HEAD"}):
                for origin in (None, "", "null", "https://evil.example", "http://127.0.0.1:1", "http://localhost"):
                    headers = {} if origin is None else {"origin": origin}
                    path = page.address + path_of(route)
                    async with page.client.request(method, path, headers=headers, data=[("text", "x")]) as answer:
                        assert answer.status == 403, (method, route.path, origin)
                    walked += 1
        assert walked >= 6 * 12


async def test_no_answer_can_be_framed_cached_or_run_from_elsewhere(tmp_path: Path) -> None:
    """Clickjacking: every page that answers forbids frames, sniffing, storing, and scripts that are not its own."""
    Writer(tmp_path).say(opening())
    async with page_of(tmp_path) as page:
        for route in ROUTES:
            if "GET" not in (route.methods or ()) or "stream" in route.path or route.path == "/events":
                continue
            async with page.client.get(page.address + path_of(route)) as answer:
                assert all(answer.headers[name] == value for name, value in HEADERS.items()), route.path
                assert answer.headers["cache-control"] in ("no-store", "private, no-cache")
                text = await answer.text()
                assert "<script>" not in text and "javascript:" not in text and " on" + "click=" not in text
        assert "frame-ancestors 'none'" in HEADERS["content-security-policy"]
        assert "unsafe" not in HEADERS["content-security-policy"]


async def test_a_script_of_another_version_is_not_used(tmp_path: Path) -> None:
    """The page's own files are asked for each time, and come again when the browser has others."""
    async with page_of(tmp_path) as page:
        async with page.client.get(f"{page.address}/static/timeline.js") as answer:
            tag = answer.headers["etag"]
            assert "class Timeline" in await answer.text()
        for known, status in ((tag, 304), ('"of another version"', 200)):
            async with page.client.get(
                f"{page.address}/static/timeline.js", headers={"if-none-match": known}
            ) as answer:
                assert answer.status == status and answer.headers["etag"] == tag
                assert (status == 200) == bool(await answer.text())


async def test_no_path_leads_out(tmp_path: Path) -> None:
    """Neither in static files nor in the names of tasks, questions or languages."""
    (tmp_path / "secret.txt").write_text("hidden words")
    async with page_of(tmp_path) as page:
        for path in (
            "/static/..%2Fapp.py", "/static/%2e%2e/app.py", "/static/uPlot.LICENSE", "/tasks/..", "/tasks/..%2f..",
            "/tasks/.%00", "/tasks/%2e%2e%2fsecret.txt", "/tasks/..%2fweb/rows?first=0&count=9",
            "/team/tasks/..%2f..%2fsecret.txt", "/team/tasks/%2e%2e", "/tasks/%2e%2e/events/0",
            "/tasks/..%2fx/stream",
        ):  # fmt: skip
            address = URL(page.address + path, encoded=True)  # as it stands: a client would tidy it
            async with page.client.get(address) as answer:
                assert answer.status in (400, 404) and "hidden words" not in await answer.text(), path
        status, _ = await page.post("/language", ("language", "zh"), ("back", "//evil.example/"))
        assert status == 200


async def test_nothing_that_is_said_becomes_markup(tmp_path: Path) -> None:
    """A request, a plan, a command, its output, a question and the names of a difference: all is text."""
    writer = Writer(tmp_path)
    writer.say([*opening(SCRIPT), *planned(1, [SCRIPT]), *used("1.1", f"echo {SCRIPT}", SCRIPT)])
    review = Review(task_id=TASK, conflicts=(Conflict(path=SCRIPT, reason=SCRIPT),), went_out=(SCRIPT,))
    question = ConfirmationRequest(digest="d", title=SCRIPT, details=(SCRIPT,), source=SCRIPT)
    desk = TaskDesk(tmp_path, TASK)
    async with page_of(tmp_path) as page:
        paths = ["/", f"/tasks/{TASK}", f"/tasks/{TASK}/difference"]
        paths += [f"/tasks/{TASK}/events/{number}" for number in range(writer.count)]
        with desk.laid(question), desk.laid(question.model_copy(update={"review": review})):
            seen = 0
            for path in paths:
                status, text = await page.get(path)
                assert status == 200 and "<script>alert" not in text and "<img" not in text, path
                seen += "&lt;script&gt;alert(1)" in text
            assert seen >= 6
