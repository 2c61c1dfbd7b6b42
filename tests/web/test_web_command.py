"""`artoo web` and `artoo serve --web` as their own processes: where the token is not, and who serves a home."""

from __future__ import annotations

import asyncio
import contextlib
import os
import re
import sys
from asyncio.subprocess import PIPE, Process
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path

import aiohttp
import pytest
from web_home import config_of, hire
from web_server import PATIENCE, Page, hidden

from artoo.cli.commands.web_command import open_page
from artoo.team.office import open_office
from artoo.testing import Asked, with_body
from artoo.testing.replies import Scripted
from artoo.testing.server import ScriptedServer
from artoo.web.serving import bound

SNOOP = "env; cat /proc/[0-9]*/environ /proc/[0-9]*/cmdline 2>/dev/null | tr '\\0' '\\n'; echo looked"


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A user's home with an empty project, where commands stand."""
    monkeypatch.setenv("HOME", str(tmp_path))
    (tmp_path / "project").mkdir()
    monkeypatch.chdir(tmp_path / "project")
    return tmp_path.resolve()


def script(asked: Asked) -> Scripted:
    """Every task is one command, which looks around and makes a file."""
    made = {"text": "made.txt exists", "mode": "verifiable", "check": {"check": "file_exists", "path": "made.txt"}}
    match asked.contract:
        case "Plan":
            return {"subtasks": [{"intent": "look around", "tool": "shell", "success_criteria": [made]}]}
        case "ExecutorStep":
            return with_body({"tool": "shell", "is_final": True}, f"{SNOOP}; echo made > made.txt")
        case _:
            return {"next_moves": []}


@asynccontextmanager
async def running(place: Path, *words: str, **environ: str) -> AsyncGenerator[Process]:
    """`artoo …`; asked to end when the block does, if it has not ended."""
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "artoo", *words), stdin=asyncio.subprocess.DEVNULL, stdout=PIPE, stderr=PIPE,
        env={**os.environ, "ARTOO_HOME": str(place / "home"), "ARTOO_MEMORY__ENABLED": "false", **environ},
    )  # fmt: skip
    try:
        yield process
    finally:
        with contextlib.suppress(ProcessLookupError):
            process.terminate()
        await asyncio.wait_for(process.communicate(), PATIENCE)


async def address_in(stream: asyncio.StreamReader | None) -> str:
    """The page's address, as soon as it is said."""
    assert stream is not None
    said = ""
    async with asyncio.timeout(PATIENCE):
        while line := (await stream.readline()).decode():
            said += line
            if found := re.search(r"http://127\.0\.0\.1:\d+/enter\?token=\S+", line):
                return found[0]
    raise AssertionError(f"it said no address: {said}")


@asynccontextmanager
async def entered(address: str) -> AsyncGenerator[Page]:
    """The page, by somebody who has used the address."""
    start, _, token = address.partition("/enter?token=")
    async with aiohttp.ClientSession(cookie_jar=aiohttp.CookieJar(unsafe=True)) as client:
        async with client.get(address) as answer:
            assert answer.status == 200
        yield Page(start, token, client, int(start.rpartition(":")[2]))


async def there(path: Path) -> None:
    """Returns when another process has made this file."""
    async with asyncio.timeout(PATIENCE):
        while not path.exists():  # noqa: ASYNC110, ASYNC240 (a file)
            await asyncio.sleep(0.05)


def shown_by_processes() -> bytes:
    """Command lines and environments of all processes that may be looked at."""
    found = b""
    for process in (one for one in os.listdir("/proc") if one.isdecimal()):  # noqa: PTH208 (it may be gone again)
        for name in ("cmdline", "environ"):
            with contextlib.suppress(OSError):
                found += Path("/proc", process, name).read_bytes()
    return found


async def test_the_token_is_nowhere_but_in_the_address(place: Path) -> None:
    """No process shows it, the opened browser's included, nor does a tool find it; no log and no message has it."""
    opened, browser, seen = place / "opened", place / "browser", place / "seen"
    browser.write_text(
        f'#!/bin/sh\nprintf "%s\\n" "$@" > {opened}.part; mv {opened}.part {opened}\n'
        f"for tenth in $(seq 300); do test -e {seen} && exit; sleep 0.1; done\n"
    )
    browser.chmod(0o755)
    async with ScriptedServer(script) as model:
        environ = {"OPENAI_BASE_URL": model.base_url, "OPENAI_MODEL": "scripted", "BROWSER": f"{browser} %s"}
        async with running(place, "web", "--port", "0", **environ) as process:
            address = await address_in(process.stdout)
            token = address.rpartition("=")[2].encode()
            assert len(token) > 40
            await there(opened)
            assert opened.read_text() == f"{(place / 'home' / 'web' / 'open.html').as_uri()}\n"
            assert (place / "home" / "web" / "open.html").stat().st_mode & 0o077 == 0
            assert token not in await asyncio.to_thread(shown_by_processes)
            seen.touch()
            async with entered(address) as page:
                task = await page.begin("look", place / "project")
                await page.until(f"/tasks/{task}", 'class="state done"')
            process.terminate()
            out, err = await asyncio.wait_for(process.communicate(), PATIENCE)
            assert process.returncode == 0 and token not in out + err, err
    logs = [path for path in (place / "home").rglob("*") if path.is_file() and path.name != "open.html"]
    assert any(b"looked" in path.read_bytes() for path in logs)
    assert [path for path in logs if token in path.read_bytes()] == []


async def test_the_page_answers_beside_a_browser_that_stays(place: Path) -> None:
    """A browser of the terminal (w3m, lynx) ends when its reader leaves it; until then it asks this very page. When
    the page is closed it is not waited for."""
    opened, browser, left = place / "opened", place / "browser", place / "left"
    browser.write_text(
        f"#!/bin/sh\ntouch {opened}\nwhile ! test -e {left}; do sleep 0.1; done\ntouch {left}.seen\n"
    )
    browser.chmod(0o755)
    async with running(place, "web", "--port", "0", BROWSER=f"{browser} %s") as process:
        try:
            address = await address_in(process.stdout)
            await there(opened)
            async with asyncio.timeout(PATIENCE), entered(address):
                pass
            process.terminate()
            async with asyncio.timeout(PATIENCE):
                while process.returncode is None:  # noqa: ASYNC110 (`wait` waits for its pipes, which the browser has too)
                    await asyncio.sleep(0.05)
            assert process.returncode == 0
        finally:
            left.touch()


async def test_a_page_whose_store_says_nothing_is_closed_at_once(place: Path) -> None:
    """A look at a store that hangs is not waited for."""
    asked, hangs = asyncio.Event(), asyncio.Event()

    async def silent(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        asked.set()
        await hangs.wait()
        writer.close()

    async with await asyncio.start_server(silent, "127.0.0.1", 0) as server:
        port = server.sockets[0].getsockname()[1]
        store = f"postgresql://somebody@127.0.0.1:{port}/artoo?connect_timeout=3600&sslmode=disable"
        async with (
            running(place, "web", "--port", "0", "--no-open", ARTOO_STORE=store) as process,
            entered(await address_in(process.stdout)) as page,
            asyncio.timeout(PATIENCE),
        ):
            status, _ = await page.get("/")
            assert status == 200
            await asked.wait()
            process.terminate()
            assert await process.wait() == 0
        hangs.set()


def column(name: str, title: str) -> str:
    """How a column of the board begins that holds one task."""
    return f'data-state="{name}" id="column-{name}"><h3>{title} <span class="faint">1</span>'


async def test_the_page_beside_the_team(place: Path) -> None:
    """`serve --web`: what is put on the board in the page is done and approved there; a task is begun there; who
    types `artoo web` meanwhile is told where the page is; when the team stops, so does the page."""
    async with open_office(config_of(place / "home")) as office:
        await hire(office, "ada")
    async with ScriptedServer(script) as model:
        environ = {"OPENAI_BASE_URL": model.base_url, "OPENAI_MODEL": "scripted"}
        async with (
            running(place, "serve", "--web", "--port", "0", **environ) as process,
            entered(await address_in(process.stderr)) as page,
        ):
            await page.until("/team", f"The team is running (process {process.pid}).")
            await page.post("/team/tasks", ("text", "look around"), ("to", "ada"))
            text = await page.until("/team", column("needs", "needs you"))
            (board_task,) = set(re.findall(r"/team/tasks/([0-9a-f-]{36})", text))
            _, text = await page.get(f"/team/tasks/{board_task}")
            run = re.search(r'href="/tasks/([0-9a-f-]{36})"', text)
            assert run is not None and "made.txt exists" in text
            assert (await page.get(f"/tasks/{run[1]}"))[0] == 200
            fields = (("submission", hidden(text, "submission")), ("digest", hidden(text, "digest")))
            await page.post(f"/team/tasks/{board_task}/review", *fields, ("verdict", "approve"))
            await page.until("/team", column("done", "done"))
            assert (place / "project" / "made.txt").exists()
            (place / "other").mkdir()
            await page.begin("look", place / "other")
            await there(place / "other" / "made.txt")
            async with running(place, "web", "--no-open", **environ) as second:
                again = await address_in(second.stdout)
                assert again.startswith(f"{page.address}/") and await second.wait() == 0
            async with entered(again):
                pass
            process.terminate()
            _, err = await asyncio.wait_for(process.communicate(), PATIENCE)
            assert process.returncode == 0 and b"the team has stopped" in err, err
            with pytest.raises(aiohttp.ClientError):
                await page.get("/")


async def test_one_page_a_home(place: Path) -> None:
    """`serve --web` beside a running `artoo web` says so and does not begin; the same command again says where it
    is; a port that another program has taken is named.
    """
    async with open_office(config_of(place / "home")) as office:
        await hire(office, "ada")
    async with running(place, "web", "--port", "0", "--no-open") as process:
        port = re.search(r":(\d+)/", await address_in(process.stdout))
        assert port is not None
        async with running(place, "serve", "--web", "--port", "0") as second:
            _, err = await asyncio.wait_for(second.communicate(), PATIENCE)
            said = f"artoo web serves this home already, at port {port[1]}"
            assert second.returncode not in (0, None) and said in err.decode(), err
        async with running(place, "web", "--port", port[1], "--no-open") as second:
            again = await address_in(second.stdout)
            assert f":{port[1]}/" in again and await second.wait() == 0
    with bound(0) as taken:
        number = str(taken.getsockname()[1])
        async with running(place, "web", "--port", number, "--no-open") as third:
            _, err = await asyncio.wait_for(third.communicate(), PATIENCE)
            assert third.returncode not in (0, None) and f"port {number} cannot be used" in err.decode(), err


def test_no_program_of_the_project_is_opened_as_the_browser(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """PATH may lead into the project, where a task may have written one; the next one on PATH is taken."""
    for place in ("project/bin", "other", "home/web"):
        (tmp_path / place).mkdir(parents=True)
    for place in ("project/bin", "other"):
        browser = tmp_path / place / "www-browser"
        browser.write_text(f'#!/bin/sh\necho "$1" >> {tmp_path}/opened-{Path(place).name}\n')
        browser.chmod(0o755)
    for name in ("BROWSER", "DISPLAY", "WAYLAND_DISPLAY"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("TERM", "dumb")  # without one no browser of a terminal is looked for
    monkeypatch.chdir(tmp_path / "project")
    monkeypatch.setenv("PATH", f"{tmp_path}/project/bin:{tmp_path}/other:{os.environ['PATH']}")
    open_page("http://127.0.0.1:1/", tmp_path / "home")
    assert not (tmp_path / "opened-bin").exists()
    assert (tmp_path / "opened-other").read_text().strip() == (tmp_path / "home/web/open.html").as_uri()
