"""MCP servers as tools: real ones, and ones that die, hang, flood or lie."""

from __future__ import annotations

import asyncio
import contextlib
import gzip
import json
import logging
import socket
import sys
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager, suppress
from dataclasses import replace
from logging.handlers import BufferingHandler
from pathlib import Path

import pytest
from aiohttp import ClientSession, web
from gate_world import Person
from tool_doubles import StillClock

from artoo.contracts.confirmation import Consent
from artoo.contracts.errors import ConfigurationError, ToolError
from artoo.contracts.execution import CallStatus
from artoo.contracts.plan import MustNot
from artoo.testing.asking import AskPerson
from artoo.tools.approval.gate import Gate
from artoo.tools.core.registry import Registry, SubTaskToolbox
from artoo.tools.mcp.bounded import LARGEST_ANSWER
from artoo.tools.mcp.connection import McpConnection, ask_once
from artoo.tools.mcp.oauth import logging_in, token_file
from artoo.tools.mcp.pipes import read_message
from artoo.tools.mcp.servers import McpServer, Shelter, read_servers, servers_of
from artoo.tools.mcp.tool import McpPool

PROGRAM = Path(__file__).with_name("mcp_server.py")


def server(*arguments: str, name: str = "notes", notes: Path | None = None) -> McpServer:
    env = (("NOTES", str(notes)),) if notes is not None else ()
    return McpServer(name, command=(sys.executable, str(PROGRAM), *arguments), env=env, trust_read_only=True)


@asynccontextmanager
async def connected(made: McpServer, call_seconds: float = 30.0) -> AsyncGenerator[McpConnection]:
    connection = McpConnection(made, call_seconds=call_seconds, connect_seconds=30.0)
    async with asyncio.TaskGroup() as group:
        running = group.create_task(connection.run())
        try:
            yield connection
        finally:
            running.cancel()


@asynccontextmanager
async def toolbox(person: Person, *servers: McpServer) -> AsyncGenerator[SubTaskToolbox]:
    gate = Gate(AskPerson(person))
    async with asyncio.TaskGroup() as group:
        pool = McpPool(group)
        registry = Registry((), StillClock(), gate.origins.observe, gate)
        registry.add(await pool.tools(servers, gate, ()))
        try:
            yield registry.toolbox("s", MustNot())
        finally:
            await pool.close()


async def test_a_servers_tools_are_tools(tmp_path: Path) -> None:
    """Values are read by the schema; what only reads runs unasked; its records carry `mcp:server:tool`."""
    person = Person([Consent.ONCE])
    async with toolbox(person, server(notes=tmp_path / "notes")) as box:
        specs = {spec.name: spec for spec in box.specs}
        assert not specs["notes_total"].writes
        assert specs["notes_note"].writes
        call = await box.call("notes_total", {"a": "2", "b": 3})
        assert (call.status, call.output, call.identity) == (CallStatus.OK, "5", ("mcp:notes:total",))
        assert (await box.call("notes_total", {"a": "two", "b": "3"})).status is CallStatus.REFUSED
        failed = await box.call("notes_fails", {})
        assert (failed.status, failed.reason) == (CallStatus.ERROR, "the tool says that it failed")
        assert person.asked == []
        assert (await box.call("notes_note", {"text": "hello"})).output == "kept"
        assert (await box.call("notes_note", {"text": "other"})).status is CallStatus.REFUSED
    assert (tmp_path / "notes").read_text() == "hello\n"
    assert len(person.asked) == 2
    reason = "notes.note: the server does not say that it only reads"
    assert person.asked[0].details == ("text: hello", reason)  # what is sent stands there once


async def test_a_server_that_dies_is_started_once_more() -> None:
    """The call that was lost is not repeated; the next finds a new server; after a second death there is none."""
    async with connected(server()) as connection:
        with pytest.raises(ToolError, match="notes: it ended"):
            await connection.call("die", {})
        assert (await connection.call("total", {"a": 1, "b": 1})).text == "2"
        with pytest.raises(ToolError, match="it ended"):
            await connection.call("die", {})
        with pytest.raises(ToolError, match="left alone"):
            await connection.call("total", {"a": 1, "b": 1})


async def test_a_server_that_hangs_is_ended() -> None:
    """A call ends at its limit, and the server with it; others are not held up."""
    async with connected(server(), call_seconds=5.0) as connection:
        await connection.tools()
        connection.call_seconds = 0.3
        with pytest.raises(ToolError, match=r"did not answer within 0\.3 s"):
            await connection.call("hang", {})
        connection.call_seconds = 10.0
        assert (await connection.call("total", {"a": 1, "b": 1})).text == "2"


async def test_a_server_that_floods_is_ended() -> None:
    """A message without end costs the server its life, not our memory."""
    async with connected(server("flood")) as connection:
        with pytest.raises(ToolError, match="more than 8388608 bytes"):
            await connection.tools()


def test_half_an_emoji_of_a_server_is_a_question_mark() -> None:
    """The answer arrives: it was dropped as a line of a log, and the call waited for it in vain."""
    message = read_message(rb'{"jsonrpc":"2.0","id":1,"result":{"said":"\ud83d"}}')
    assert '"said":"?"' in message.model_dump_json()
    for line in (b"a line of a log", b'{"level":"\\ud83d"}'):
        with pytest.raises(ValueError):
            read_message(line)


async def test_servers_get_no_keys(monkeypatch: pytest.MonkeyPatch) -> None:
    """The environment of a server holds what its entry says, and nothing of ours that is secret."""
    monkeypatch.setenv("OPENAI_API_KEY", "x")
    made = server()
    async with connected(McpServer("notes", made.command, env=(("OWN_KEY", "y"),))) as connection:
        assert (await connection.call("secrets", {})).text == "OWN_KEY"


async def test_what_is_not_there_offers_nothing(caplog: pytest.LogCaptureFixture) -> None:
    """Servers that cannot start, or end at once, are logged; the others' tools are offered all the same."""
    missing = McpServer("missing", command=("/nonexistent/server",))
    async with toolbox(Person(), missing, server("broken", name="broken"), server()) as box:
        offered = {spec.name.partition("_")[0] for spec in box.specs}
        assert "notes" in offered and offered.isdisjoint({"missing", "broken"})
    assert "the MCP server missing: " in caplog.text
    assert "the MCP server broken: " in caplog.text


async def test_a_server_that_never_speaks_is_given_up() -> None:
    """Connecting is bounded in time."""
    connection = McpConnection(server("silent"), connect_seconds=0.5)
    async with asyncio.TaskGroup() as group:
        running = group.create_task(connection.run())
        with pytest.raises(ToolError, match=r"not ready within 0\.5 s"):
            await connection.tools()
        running.cancel()
    assert not _children()


async def test_nothing_is_left_running() -> None:
    """A server and its children are gone when the connection is closed."""
    async with connected(server()) as connection:
        await connection.tools()
        before = _children()
        assert before
    assert not _children()


def _children() -> list[str]:
    """Command lines of this process's own children that run the test's server."""
    lines: list[str] = []
    for task in Path("/proc/self/task").iterdir():
        for child in (task / "children").read_text().split():
            with suppress(OSError):
                lines.append(Path(f"/proc/{child}/cmdline").read_text(encoding="utf-8").replace("\0", " "))
    return [line for line in lines if str(PROGRAM) in line]


async def test_streamable_http() -> None:
    """A server behind a URL works the same."""
    with socket.create_server(("127.0.0.1", 0)) as probe:
        port = probe.getsockname()[1]
    process = await asyncio.create_subprocess_exec(
        sys.executable,
        str(PROGRAM),
        "http",
        str(port),
        stdout=asyncio.subprocess.DEVNULL,
        stderr=asyncio.subprocess.DEVNULL,
    )
    try:
        await _listening(port)
        async with connected(McpServer("web", url=f"http://127.0.0.1:{port}/mcp")) as connection:
            assert (await connection.call("total", {"a": 4, "b": 5})).text == "9"
    finally:
        process.kill()
        await process.wait()


@pytest.mark.parametrize(
    ("headers", "body"),
    [
        ({"Content-Encoding": "gzip"}, gzip.compress(bytes(64 << 20))),
        ({}, b" " * (LARGEST_ANSWER + 1)),
        ({}, b"{no JSON"),
    ],
    ids=["packed", "plain", "broken"],
)
async def test_an_answer_over_http_is_bounded(
    headers: dict[str, str], body: bytes, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A server that answers with a packed flood, a plain one, or no JSON is no good, and little of it is kept.

    The error of the call says so, and no traceback of the SDK stands on the terminal, where nobody set up logging.
    """
    terminal = BufferingHandler(1_000)
    monkeypatch.setattr(logging.getLogger(), "handlers", [])
    monkeypatch.setattr(logging, "lastResort", terminal)

    async def answer(request: web.Request) -> web.Response:
        await request.read()
        return web.Response(body=body, headers={"Content-Type": "application/json", **headers})

    application = web.Application()
    application.router.add_post("/mcp", answer)
    runner = web.AppRunner(application)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0).start()
    try:
        url = f"http://127.0.0.1:{runner.addresses[0][1]}/mcp"
        async with connected(McpServer("web", url=url)) as connection:
            with pytest.raises(ToolError, match="the MCP server web"):
                await connection.call("total", {"a": 4, "b": 5})
    finally:
        await runner.cleanup()
    assert not [one for one in terminal.buffer if one.levelno >= logging.WARNING]


async def _listening(port: int) -> None:
    while True:
        with contextlib.suppress(OSError):
            _, writer = await asyncio.open_connection("127.0.0.1", port)
            writer.close()
            return
        await asyncio.sleep(0.05)


def test_the_usual_file(tmp_path: Path) -> None:
    """Commands and URLs are read, disabled ones left out; values of variables are not shown."""
    path = tmp_path / "mcp.json"
    entry = {"command": "npx", "args": ["-y", "notes"], "env": {"TOKEN": "s3cret"}}
    web = {"type": "http", "url": "https://x.example/mcp", "headers": {"Authorization": "Bearer s3cret"}}
    off = {"command": "x", "disabled": True}
    path.write_text(json.dumps({"mcpServers": {"notes": entry, "web": web, "off": off}}))
    found = read_servers(path)
    assert [one.shown for one in found] == [
        "notes: npx -y notes TOKEN=…",
        "web: https://x.example/mcp Authorization=…",
    ]
    assert read_servers(tmp_path / "none.json") == ()


@pytest.mark.parametrize(
    ("entry", "command", "env"),
    [
        ({"command": "true", "args": None, "env": {"A": 1}, "url": None}, ("true",), (("A", "1"),)),
        ({"command": "true", "args": [8080, 2.5], "headers": None}, ("true", "8080", "2.5"), ()),
        (
            {"command": "true", "env": {"DEBUG": True, "B": "x"}, "cwd": None},
            ("true",),
            (("DEBUG", "true"), ("B", "x")),
        ),
    ],
)
def test_the_file_of_another_client_is_read(
    tmp_path: Path, entry: object, command: tuple[str, ...], env: tuple[tuple[str, str], ...]
) -> None:
    """Null means that the key is not there, and numbers and booleans stand for their text."""
    path = tmp_path / "mcp.json"
    path.write_text(json.dumps({"mcpServers": {"a": entry}}))
    [server] = read_servers(path)
    assert (server.command, server.env) == (command, env)


@pytest.mark.parametrize(
    "data",
    [
        [],
        {"a b": {"command": "x"}},
        {"a": {"command": "x", "shell": True}},
        {"a": {}},
        {"a": {"command": "x", "url": "https://y/"}},
        {"a": {"url": "file:///etc/passwd"}},
        {"a": {"command": "x", "args": "y"}},
        {"a": {"command": "x", "env": {"A": [1]}}},
        {"a": {"type": "sse", "url": "https://y/"}},
    ],
)
def test_mistakes_are_named(data: object) -> None:
    """Whatever is not understood is refused, with where it stands."""
    with pytest.raises(ConfigurationError, match="FILE"):
        servers_of(data, "FILE")


async def test_tools_of_a_server_can_be_chosen() -> None:
    """`tools` and `excludeTools` are patterns of names."""
    (chosen,) = servers_of(
        {
            "notes": {
                "command": sys.executable,
                "args": [str(PROGRAM)],
                "tools": ["to*", "long"],
                "excludeTools": ["long"],
            }
        },
        "here",
    )
    async with toolbox(Person([]), chosen) as box:
        assert [spec.name for spec in box.specs if spec.name != "read_resource"] == ["notes_total"]


async def test_many_tools_are_found_and_called_by_two(tmp_path: Path) -> None:
    """Above the bound a prompt has two tools; a call has the identity, and the questions, of the tool behind it."""
    person = Person([Consent.ONCE])
    gate = Gate(AskPerson(person))
    async with asyncio.TaskGroup() as group:
        pool = McpPool(group)
        registry = Registry((), StillClock(), gate.origins.observe, gate)
        registry.add(await pool.tools((server("many", "100", notes=tmp_path / "n"),), gate, (), most_tokens=500))
        box = registry.toolbox("s", MustNot())
        try:
            assert [spec.name for spec in box.specs] == ["find_tools", "call_tool", "read_resource"]
            assert "110" in box.specs[0].description or "further tools" in box.specs[0].description
            found = await box.call("find_tools", {"query": "add two numbers"})
            assert found.output.startswith("notes_total: Adds two numbers.") and '"a"' in found.output
            call = await box.call("call_tool", {"tool": "notes_total", "arguments": {"a": 2, "b": 3}})
            assert (call.output, call.identity) == ("5", ("mcp:notes:total",)) and not person.asked
            kept = await box.call("call_tool", {"tool": "notes_note", "arguments": {"text": "hi"}})
            assert kept.output == "kept" and len(person.asked) == 1
            wrong = await box.call("call_tool", {"tool": "notes_total", "arguments": {"a": "x", "b": 3}})
            assert wrong.status is CallStatus.ERROR and "it takes" in (wrong.reason or "")
            none = await box.call("call_tool", {"tool": "notes_nothing"})
            assert "look for it with find_tools" in (none.reason or "")
        finally:
            await pool.close()


async def test_resources_are_listed_and_read() -> None:
    """An address that a server named itself is asked about, as every one that came from data."""
    async with toolbox(Person([Consent.ONCE]), server()) as box:
        listed = await box.call("read_resource", {"server": "notes"})
        assert "notes://today" in listed.output
        read = await box.call("read_resource", {"server": "notes", "uri": "notes://today"})
        assert (read.output, read.identity) == ("buy milk", ("mcp:notes:resources",))


async def test_prompts_are_listed_and_filled_in() -> None:
    (found,) = await ask_once(server(), lambda connection: connection.prompts())
    assert found == ("sum_up", "Asks for a summary.")
    text = await ask_once(server(), lambda connection: connection.prompt("sum_up", {"topic": "bees"}))
    assert text == "Sum up what is known of bees."


async def test_structured_content_is_shown_once_and_images_are_handed_on() -> None:
    async with connected(server()) as connection:
        weather = await connection.call("weather", {"place": "Rome"})
        assert json.loads(weather.text) == {"degrees": 4}
        picture = await connection.call("picture", {})
        assert picture.images == (("image/png", b"\x89PNG fake"),)


class Guarded:
    """A server that speaks MCP to whoever has its token, and an authorization server that gives one."""

    def __init__(self) -> None:
        self.url = ""
        self.registered = 0

    async def serve(self, runner: web.AppRunner) -> None:
        await runner.setup()
        await web.TCPSite(runner, "127.0.0.1", 0).start()
        self.url = f"http://127.0.0.1:{runner.addresses[0][1]}"

    def application(self) -> web.Application:
        made = web.Application()
        made.router.add_post("/mcp", self.speak)
        made.router.add_get("/.well-known/oauth-protected-resource{tail:.*}", self.resource)
        made.router.add_get("/.well-known/oauth-authorization-server", self.issuer)
        made.router.add_post("/register", self.register)
        made.router.add_get("/authorize", self.authorize)
        made.router.add_post("/token", self.token)
        return made

    async def resource(self, _: web.Request) -> web.Response:
        return web.json_response({"resource": f"{self.url}/mcp", "authorization_servers": [self.url]})

    async def issuer(self, _: web.Request) -> web.Response:
        known = {name: f"{self.url}/{name.partition('_')[0]}" for name in ("token_endpoint",)}
        known["authorization_endpoint"] = f"{self.url}/authorize"
        known["registration_endpoint"] = f"{self.url}/register"
        more = {
            "issuer": self.url,
            "response_types_supported": ["code"],
            "code_challenge_methods_supported": ["S256"],
        }
        return web.json_response({**known, **more})

    async def register(self, request: web.Request) -> web.Response:
        self.registered += 1
        return web.json_response({**await request.json(), "client_id": "artoo-1"}, status=201)

    async def authorize(self, request: web.Request) -> web.Response:
        back = f"{request.query['redirect_uri']}?code=good&state={request.query['state']}"
        raise web.HTTPFound(back)

    async def token(self, request: web.Request) -> web.Response:
        form = await request.post()
        assert form["code"] == "good" and form["code_verifier"]
        return web.json_response({"access_token": "sesame", "token_type": "Bearer", "expires_in": 3600})

    async def speak(self, request: web.Request) -> web.Response:
        if request.headers.get("authorization") != "Bearer sesame":
            where = f'Bearer resource_metadata="{self.url}/.well-known/oauth-protected-resource/mcp"'
            return web.Response(status=401, headers={"WWW-Authenticate": where})
        asked = await request.json()
        result: dict[str, object] = {}
        match asked.get("method"):
            case "initialize":
                version = asked["params"]["protocolVersion"]
                info = {"name": "guarded", "version": "1"}
                result = {"protocolVersion": version, "capabilities": {"tools": {}}, "serverInfo": info}
            case "tools/list":
                result = {"tools": [{"name": "open", "inputSchema": {"type": "object", "properties": {}}}]}
            case "notifications/initialized":
                return web.Response(status=202)
            case _:
                problem = {"code": -32601, "message": "no such method"}
                return web.json_response({"jsonrpc": "2.0", "id": asked.get("id"), "error": problem})
        return web.json_response({"jsonrpc": "2.0", "id": asked["id"], "result": result})


async def test_a_login_by_oauth_is_kept_and_used(tmp_path: Path) -> None:
    """Without it the error says what to type; after it, tokens are in a file of the owner's, and are sent."""
    guarded = Guarded()
    runner = web.AppRunner(guarded.application())
    await guarded.serve(runner)
    made = McpServer("vault", url=f"{guarded.url}/mcp", shelter=Shelter(tmp_path / "mcp"))

    async def browser(address: str) -> None:
        async with ClientSession() as session, session.get(address) as response:
            assert "Done" in await response.text()

    async def names(connection: McpConnection) -> list[str]:
        return [tool.name for tool in await connection.tools()]

    try:
        with pytest.raises(ToolError, match="artoo mcp login"):
            await ask_once(made, names)
        async with logging_in(made, browser) as auth:
            assert await ask_once(made, names, auth=auth) == ["open"]
        path = token_file(made)
        assert path is not None and path.stat().st_mode & 0o077 == 0 and "sesame" in path.read_text()
        assert await ask_once(made, names) == ["open"] and guarded.registered == 1
        moved = replace(made, url=f"{guarded.url.replace('127.0.0.1', 'localhost')}/mcp")
        with pytest.raises(ToolError):
            await ask_once(moved, names)
    finally:
        await runner.cleanup()
