"""The embedded transport, with a stand-in server at a UNIX socket in the place of llama.cpp."""

from __future__ import annotations

import asyncio
import json
import sys
import tempfile
import threading
from collections.abc import AsyncIterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from unittest.mock import Mock

import pytest
import pytest_asyncio
from aiohttp import web

from artoo.contracts.errors import ConfigurationError, ModelUnreachable
from artoo.llm import guard
from artoo.llm.embedded.engine import Engine, EngineSettings, LlamaEngine, check_gguf, physical_cores
from artoo.llm.embedded.transport import EmbeddedTransport
from artoo.llm.wires import chat

Chunks = Sequence[Mapping[str, object]]
TEXT: list[Mapping[str, object]] = [
    {"id": "c1", "choices": [{"delta": {"role": "assistant", "content": None}, "finish_reason": None}]},
    {"id": "c1", "choices": [{"delta": {"content": "Hel"}, "finish_reason": None}]},
    {"id": "c1", "choices": [{"delta": {"content": "lo"}, "finish_reason": None}]},
    {"id": "c1", "choices": [{"delta": {}, "finish_reason": "stop"}]},
    {"id": "c1", "choices": [], "usage": {"prompt_tokens": 9, "prompt_tokens_details": {"cached_tokens": 4}}},
]
ENDLESS: list[Mapping[str, object]] = [{"choices": [{"delta": {"content": "9"}}]}] * 5_000


@dataclass
class Server:
    """Plays the same chunks to every request, and counts what runs. It is the loaded engine, too."""

    socket: str
    chunks: Chunks
    asked: list[str] = field(default_factory=list[str])
    running: int = 0
    most: int = 0
    played: int = 0
    began: asyncio.Event = field(default_factory=asyncio.Event)
    broken: asyncio.Event = field(default_factory=asyncio.Event)
    closed: int = 0

    def constrained(self, body: Mapping[str, object]) -> dict[str, object]:
        return dict(body)

    def close(self) -> None:
        self.closed += 1

    async def serve(self, request: web.Request) -> web.StreamResponse:
        self.asked.append(request.path_qs)
        if request.path.startswith("/slots"):
            folder = Path(self.socket).parent / "states"
            (folder / (await request.json())["filename"]).write_text("")
            return web.json_response({})
        self.running += 1
        self.most = max(self.most, self.running)
        answer = web.StreamResponse(headers={"content-type": "text/event-stream"})
        try:
            await answer.prepare(request)
            for chunk in self.chunks:
                self.played += 1
                self.began.set()
                await answer.write(f"data: {json.dumps(chunk)}\n\n".encode())
                await asyncio.sleep(0.0005)
            await answer.write(b"data: [DONE]\n\n")
        except (ConnectionError, asyncio.CancelledError):
            self.broken.set()
        finally:
            self.running -= 1
        return answer


class Playing:
    """Starts stand-in servers, and stops them when the test is over."""

    def __init__(self, place: Path) -> None:
        self.place, self.folder = place, place / "states"
        self.loads: list[Path] = []
        self.runners: list[web.AppRunner] = []
        self.transports: list[EmbeddedTransport] = []
        self.failing = 0

    async def __call__(
        self, chunks: Chunks, settings: EngineSettings | None = None
    ) -> tuple[Server, EmbeddedTransport]:
        self.folder.mkdir(exist_ok=True)
        server = Server(str(self.place / f"{len(self.runners)}.sock"), chunks)
        app = web.Application()
        app.router.add_post("/{rest:.*}", server.serve)
        runner = web.AppRunner(app, handler_cancellation=True, shutdown_timeout=0.1)
        await runner.setup()
        await web.UnixSite(runner, server.socket).start()
        self.runners.append(runner)

        def load(path: Path, settings: EngineSettings) -> Engine:
            self.loads.append(path)
            if len(self.loads) <= self.failing:
                raise ModelUnreachable("no memory")
            return server

        async def ready() -> Path:
            return Path("tiny.gguf")

        transport = EmbeddedTransport("tiny", settings or EngineSettings(16_384, 2), ready, load=load)
        self.transports.append(transport)
        return server, transport


@pytest_asyncio.fixture
async def playing() -> AsyncIterator[Playing]:
    with tempfile.TemporaryDirectory() as place:  # short: the path of a socket may have 107 bytes
        playing = Playing(Path(place))
        guard.admit("tiny")
        yield playing
        guard.retract("tiny")
        for transport in playing.transports:
            await transport.close()
        for runner in playing.runners:
            await runner.cleanup()


async def test_pieces_become_one_answer(playing: Playing) -> None:
    """The streamed pieces reach the caller as one ordinary completion, usage included."""
    _, transport = await playing(TEXT)
    reply = await transport.post({"messages": []}, timeout=5)
    completion = chat.WIRE.read(reply).completion
    assert completion is not None and (completion.text, completion.finish) == ("Hello", "stop")
    assert completion.usage is not None
    assert (completion.usage.prompt_tokens, completion.usage.cached_tokens) == (9, 4)


async def test_concurrent_callers_load_once_and_share_the_slots(playing: Playing) -> None:
    """Eight requests at once load the model once, and never more than `slots` of them run together."""
    server, transport = await playing(TEXT, EngineSettings(16_384, 2))
    replies = await asyncio.gather(*(transport.post({}, timeout=30) for _ in range(8)))
    assert all(reply.status == 200 for reply in replies)
    assert len(playing.loads) == 1
    assert server.most <= 2


async def test_cancelling_the_caller_stops_the_generation(playing: Playing) -> None:
    """A cancelled caller returns at once, and the server sees that nobody listens any more."""
    server, transport = await playing(ENDLESS)
    call = asyncio.ensure_future(transport.post({}, timeout=30))
    await asyncio.wait_for(server.began.wait(), 10)
    call.cancel()
    with pytest.raises(asyncio.CancelledError):
        await call
    await asyncio.wait_for(server.broken.wait(), 10)


async def test_close_stops_frees_and_refuses(playing: Playing) -> None:
    """Closing stops what runs, frees the model once, may be repeated, and later requests are refused."""
    server, transport = await playing(ENDLESS)
    call = asyncio.ensure_future(transport.post({}, timeout=30))
    await asyncio.wait_for(server.began.wait(), 10)
    await transport.close()
    await transport.close()
    with pytest.raises(ModelUnreachable, match="tiny"):
        await call
    with pytest.raises(ModelUnreachable, match="closed"):
        await transport.post({}, timeout=5)
    assert server.closed == 1


@pytest.mark.parametrize("loads", [0, 1])
async def test_what_is_closed_meanwhile_stays_closed(playing: Playing, loads: int) -> None:
    """While the file is fetched, nothing is loaded after it; what is loaded meanwhile is freed and not asked."""
    server, _ = await playing(TEXT)
    begun, go, loop = asyncio.Event(), threading.Event(), asyncio.get_running_loop()

    def wait() -> None:
        loop.call_soon_threadsafe(begun.set)
        go.wait()

    async def ready() -> Path:
        await asyncio.to_thread(go.is_set if loads else wait)
        return Path("tiny.gguf")

    def load(path: Path, settings: EngineSettings) -> Engine:
        wait()
        return server

    transport = EmbeddedTransport("tiny", EngineSettings(16_384, 2), ready, load=load)
    call = asyncio.ensure_future(transport.post({}, timeout=5))
    await begun.wait()
    closing = asyncio.ensure_future(transport.close())
    await asyncio.sleep(0)
    go.set()
    with pytest.raises(ModelUnreachable, match="closed"):
        await call
    await closing
    assert (server.closed, server.asked) == (loads, [])


async def test_a_failed_load_is_told_and_tried_again(playing: Playing) -> None:
    """A caller gets the error of a load that failed, and the next request loads anew."""
    playing.failing = 1
    _, transport = await playing(TEXT)
    with pytest.raises(ModelUnreachable, match="no memory"):
        await transport.post({}, timeout=5)
    assert (await transport.post({}, timeout=5)).status == 200


async def test_a_process_that_forbids_real_models_loads_none(playing: Playing) -> None:
    """Under `forbid_real_models` a forgotten double is an error before anything is loaded."""
    _, transport = await playing(TEXT)
    guard.retract("tiny")
    before = guard.forbid(True)
    try:
        with pytest.raises(ConfigurationError, match="forbids"):
            await transport.post({}, timeout=5)
    finally:
        guard.forbid(before)
    assert playing.loads == []


@pytest.mark.parametrize("content", [b"", b"GGUF", b"<html>not found</html> and more text"])
def test_what_is_no_gguf_is_refused(tmp_path: Path, content: bytes) -> None:
    """Empty, cut short, or a web page saved as a model: refused by its first bytes, with what to do."""
    path = tmp_path / "m.gguf"
    path.write_bytes(content)
    with pytest.raises(ModelUnreachable, match="artoo model pull"):
        check_gguf(path)


def test_a_damaged_gguf_is_an_error_and_not_a_crash(tmp_path: Path) -> None:
    """llama.cpp itself refuses a file with the right first bytes and nonsense after them; the process lives on."""
    path = tmp_path / "m.gguf"
    path.write_bytes(b"GGUF" + bytes(range(256)) * 40)
    with pytest.raises(ModelUnreachable, match="cannot load"):
        LlamaEngine(path, EngineSettings(16_384, 2))


@pytest.mark.parametrize("trouble", ["prefixes", "temporary"])
def test_a_disk_without_room_is_no_traceback(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, trouble: str) -> None:
    """Where prefixes cannot be kept none are, and llama.cpp goes on; that its socket has no room is said."""
    path, there = tmp_path / "m.gguf", tmp_path / "in the way"
    path.write_bytes(b"GGUF" + bytes(range(256)) * 40)
    there.write_text("")
    if trouble == "temporary":
        monkeypatch.setattr(tempfile, "tempdir", str(there))
    said = "cannot load" if trouble == "prefixes" else "cannot be loaded .*in the way"
    with pytest.raises(ModelUnreachable, match=said):
        LlamaEngine(path, EngineSettings(16_384, 2, prefixes=there / "states"))


def test_a_socket_that_no_descriptor_reaches_stays_in_its_directory(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It is deleted when the model is freed."""
    path, bindings = tmp_path / "m.gguf", Mock()
    path.write_bytes(b"GGUF" + bytes(40))
    monkeypatch.setitem(sys.modules, "xllamacpp", bindings)  # its server makes no socket
    engine = LlamaEngine(path, EngineSettings(16_384, 2))
    assert Path(engine.socket).parent.is_dir()
    engine.close()
    assert not Path(engine.socket).parent.exists()


async def test_a_prefix_is_read_once_and_saved(playing: Playing) -> None:
    """The static part of a prompt is read once into a slot and saved; a new process restores it instead."""
    body = {"messages": [{"role": "system", "content": "You are R3. " * 30}]}
    for asked in (["/chat/completions", "/slots/0?action=save"], ["/slots/0?action=restore"]):
        server, transport = await playing(TEXT, EngineSettings(16_384, 2, prefixes=playing.folder))
        await transport.post(body, timeout=5)
        await transport.post(body, timeout=5)
        assert server.asked == [*asked, "/chat/completions", "/chat/completions"]


def test_threads_count_physical_cores(tmp_path: Path) -> None:
    """Two hardware threads of one core count once; without a topology the usable CPUs count."""
    for cpu in range(64):
        place = tmp_path / f"cpu{cpu}" / "topology"
        place.mkdir(parents=True)
        (place / "physical_package_id").write_text("0")
        (place / "core_id").write_text("0")
    assert physical_cores(tmp_path) == 1
    assert physical_cores(tmp_path / "nothing") >= 1
