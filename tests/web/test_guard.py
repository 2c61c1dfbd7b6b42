"""Nobody comes in without the cookie, from another site, by another name, or twice with one token."""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
from pathlib import Path

import pytest
from starlette.routing import Route
from web_scenes import TASK, Writer, opening, planned, used
from web_server import Page, page_of
from yarl import URL

from artoo.contracts.changes import Conflict
from artoo.contracts.confirmation import ConfirmationRequest
from artoo.contracts.settling import Review
from artoo.runtime.desk import TaskDesk
from artoo.web.app import ROUTES
from artoo.web.entry import Entry
from artoo.web.guard import ENTRANCE, HEADERS

pytestmark = pytest.mark.unreplayable

SCRIPT = "<script>alert(1)</script><img src=x onerror=alert(1)>"


def path_of(route: Route) -> str:
    """An address of this route."""
    return route.path.replace("{task}", TASK).replace("{number:int}", "0").replace("{name}", "page.js")


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


async def test_no_path_leads_out(tmp_path: Path) -> None:
    """Neither in static files nor in the names of tasks, questions or languages."""
    (tmp_path / "secret.txt").write_text("hidden words")
    async with page_of(tmp_path) as page:
        for path in (
            "/static/..%2Fapp.py", "/static/%2e%2e/app.py", "/static/uPlot.LICENSE", "/tasks/..", "/tasks/..%2f..",
            "/tasks/.%00", "/tasks/%2e%2e%2fsecret.txt",
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


def test_the_token_is_on_no_command_line_and_in_no_environment(tmp_path: Path) -> None:
    """A running `artoo web`: neither its own process nor any other shows the token; its log has no request."""
    command = [sys.executable, "-m", "artoo", "web", "--port", "0", "--no-open"]

    environ = {**os.environ, "ARTOO_HOME": str(tmp_path)}
    with subprocess.Popen(
        command, env=environ, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout is not None and process.stderr is not None
        token = process.stdout.readline().rpartition("=")[2].strip()
        assert len(token) > 40
        for place in Path("/proc").glob("[0-9]*"):
            for name in ("cmdline", "environ"):
                try:
                    assert token.encode() not in (place / name).read_bytes()
                except OSError:
                    continue
        again = subprocess.run(command, env=environ, capture_output=True, text=True, check=True, timeout=300)
        assert again.stdout.startswith("artoo: http://127.0.0.1:") and token not in again.stdout
        process.terminate()
        _, said = process.communicate(timeout=300)
    assert token not in said and process.returncode == 0, said
