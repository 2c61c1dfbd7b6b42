"""The embedded transport, with a stand-in for the loaded model."""

from __future__ import annotations

import asyncio
import tempfile
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

import pytest

from artoo.contracts.errors import ConfigurationError, ModelUnreachable
from artoo.llm import guard
from artoo.llm.embedded.engine import Engine, EngineSettings, LlamaEngine, OnChunk, check_gguf, physical_cores
from artoo.llm.embedded.prefixes import Prefixes
from artoo.llm.embedded.transport import EmbeddedTransport
from artoo.llm.wires import chat

GGUF = b"GGUF" + bytes(60)
TEXT: list[Mapping[str, object]] = [
    {"id": "c1", "choices": [{"delta": {"role": "assistant", "content": None}, "finish_reason": None}]},
    {"id": "c1", "choices": [{"delta": {"content": "Hel"}, "finish_reason": None}]},
    {"id": "c1", "choices": [{"delta": {"content": "lo"}, "finish_reason": None}]},
    {"id": "c1", "choices": [{"delta": {}, "finish_reason": "stop"}]},
    {"id": "c1", "choices": [], "usage": {"prompt_tokens": 9, "prompt_tokens_details": {"cached_tokens": 4}}},
]


class FakeEngine:
    """Plays chunks; with `gate`, sends empty chunks until the gate opens or the caller stops it."""

    def __init__(self, chunks: list[Mapping[str, object]], gate: threading.Event | None = None) -> None:
        self.chunks = chunks
        self.gate = gate
        self.bodies: list[Mapping[str, object]] = []
        self.began = threading.Event()
        self.stopped = threading.Event()
        self.running, self.most, self.played = 0, 0, 0
        self.closed = 0

    def chat(self, body: Mapping[str, object], on_chunk: OnChunk) -> None:
        self.bodies.append(body)
        self.running += 1
        self.most = max(self.most, self.running)
        self.began.set()
        while self.gate is not None and not self.gate.wait(0.005):
            if on_chunk({"choices": []}):
                self.stopped.set()
                self.running -= 1
                return
        for chunk in self.chunks:
            self.played += 1
            if on_chunk(chunk):
                break
        self.running -= 1

    def close(self) -> None:
        self.closed += 1


@pytest.fixture
def model(tmp_path: Path) -> Iterator[Path]:
    path = tmp_path / "tiny.gguf"
    path.write_bytes(GGUF)
    guard.admit(str(path))
    yield path
    guard.retract(str(path))


def loader(engine: Engine, loads: list[Path]) -> Callable[[Path, EngineSettings], Engine]:
    def load(path: Path, settings: EngineSettings) -> Engine:
        loads.append(path)
        return engine

    return load


async def test_pieces_become_one_answer(model: Path) -> None:
    """The streamed pieces reach the caller as one ordinary completion, usage included."""
    transport = EmbeddedTransport(model, load=loader(FakeEngine(TEXT), []))
    reply = await transport.post({"messages": []}, timeout=5)
    assert reply.status == 200
    completion = chat.WIRE.read(reply).completion
    assert completion is not None and (completion.text, completion.finish) == ("Hello", "stop")
    assert completion.usage is not None
    assert (completion.usage.prompt_tokens, completion.usage.cached_tokens) == (9, 4)
    await transport.close()


async def test_an_answer_that_goes_round_in_circles_is_stopped(model: Path) -> None:
    """The same few characters over and over are not waited for until the limit; a long answer is."""
    begun = [{"choices": [{"delta": {"content": "```python\nprint("}}]}]
    same = [{"choices": [{"delta": {"content": "9"}}]}] * 700
    engine = FakeEngine([*begun, *same])
    reply = await EmbeddedTransport(model, load=loader(engine, [])).post({"messages": []}, timeout=5)
    assert engine.played < 400
    seen = chat.WIRE.read(reply).completion
    assert seen is not None and seen.finish == "length" and seen.text.startswith("```python\nprint(999")
    other = FakeEngine([{"choices": [{"delta": {"content": f"print({each})\n"}}]} for each in range(700)])
    await EmbeddedTransport(model, load=loader(other, [])).post({"messages": []}, timeout=5)
    assert other.played == 700


async def test_concurrent_callers_load_once_and_share_the_slots(model: Path) -> None:
    """Eight requests at once load the model once, and never more than `slots` of them run together."""
    loads: list[Path] = []
    gate = threading.Event()
    engine = FakeEngine(TEXT, gate)
    transport = EmbeddedTransport(model, EngineSettings(slots=2), load=loader(engine, loads))
    async with asyncio.TaskGroup() as group:
        calls = [group.create_task(transport.post({}, timeout=30)) for _ in range(8)]
        await asyncio.to_thread(engine.began.wait, 10)
        gate.set()
    assert all(call.result().status == 200 for call in calls)
    assert loads == [model]
    assert engine.most <= 2
    await transport.close()


async def test_cancelling_the_caller_stops_the_generation(model: Path) -> None:
    """A cancelled caller returns at once and the generation is told to stop."""
    engine = FakeEngine(TEXT, threading.Event())
    transport = EmbeddedTransport(model, load=loader(engine, []))
    call = asyncio.ensure_future(transport.post({}, timeout=30))
    await asyncio.to_thread(engine.began.wait, 10)
    call.cancel()
    with pytest.raises(asyncio.CancelledError):
        await call
    assert await asyncio.to_thread(engine.stopped.wait, 10)
    await transport.close()


async def test_a_timeout_is_a_clear_error_and_stops_the_generation(model: Path) -> None:
    """When time is up the caller gets ModelUnreachable with advice, and the generation is told to stop."""
    engine = FakeEngine(TEXT, threading.Event())
    transport = EmbeddedTransport(model, load=loader(engine, []))
    with pytest.raises(ModelUnreachable, match=r"within 0\.01 s"):
        await transport.post({}, timeout=0.01)
    assert await asyncio.to_thread(engine.stopped.wait, 10)
    await transport.close()


async def test_close_stops_frees_and_refuses(model: Path) -> None:
    """Closing stops what runs, frees the model once, may be repeated, and later requests are refused."""
    engine = FakeEngine(TEXT, threading.Event())
    transport = EmbeddedTransport(model, load=loader(engine, []))
    call = asyncio.ensure_future(transport.post({}, timeout=30))
    await asyncio.to_thread(engine.began.wait, 10)
    await transport.close()
    await transport.close()
    with pytest.raises(ModelUnreachable, match="stopped"):
        await call
    with pytest.raises(ModelUnreachable, match="closed"):
        await transport.post({}, timeout=5)
    assert engine.closed == 1


async def test_a_failed_load_is_told_to_all_and_tried_again(model: Path) -> None:
    """Everyone who waited for a load that failed gets its error, and the next request loads anew."""
    attempts: list[int] = []

    def load(path: Path, settings: EngineSettings) -> Engine:
        attempts.append(1)
        if len(attempts) == 1:
            raise ModelUnreachable("no memory")
        return FakeEngine(TEXT)

    transport = EmbeddedTransport(model, load=load)
    results = await asyncio.gather(*(transport.post({}, timeout=5) for _ in range(3)), return_exceptions=True)
    assert isinstance(results[0], ModelUnreachable)
    assert (await transport.post({}, timeout=5)).status == 200
    await transport.close()


@pytest.mark.parametrize("content", [b"", b"GGUF", b"<html>not found</html> and more text"])
def test_what_is_no_gguf_is_refused(tmp_path: Path, content: bytes) -> None:
    """Empty, cut short, or a web page saved as a model: refused by its first bytes, with what to do."""
    path = tmp_path / "m.gguf"
    path.write_bytes(content)
    with pytest.raises(ModelUnreachable, match="artoo model pull"):
        check_gguf(path)


async def test_a_missing_file_is_unreachable(model: Path) -> None:
    """A model file that is not there is ModelUnreachable, for requests and for models()."""
    await asyncio.to_thread(model.unlink)
    transport = EmbeddedTransport(model)
    with pytest.raises(ModelUnreachable, match="cannot be read"):
        await transport.models(timeout=5)
    with pytest.raises(ModelUnreachable, match="cannot be read"):
        await transport.post({}, timeout=5)


async def test_a_process_that_forbids_real_models_loads_none(model: Path) -> None:
    """Under `forbid_real_models` a forgotten double is an error before anything is loaded."""
    loads: list[Path] = []
    transport = EmbeddedTransport(model, load=loader(FakeEngine(TEXT), loads))
    guard.retract(str(model))
    before = guard.forbid(True)
    try:
        with pytest.raises(ConfigurationError, match="forbids"):
            await transport.post({}, timeout=5)
    finally:
        guard.forbid(before)
    assert loads == []


def test_a_damaged_gguf_is_an_error_and_not_a_crash(tmp_path: Path) -> None:
    """llama.cpp itself refuses a file with the right first bytes and nonsense after them; the process lives on."""
    path = tmp_path / "m.gguf"
    path.write_bytes(b"GGUF" + bytes(range(256)) * 40)
    with pytest.raises(ModelUnreachable, match="cannot load"):
        LlamaEngine(path, EngineSettings())


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
        LlamaEngine(path, EngineSettings(prefixes=there / "states"))


def test_a_prefix_that_is_stopped_is_not_kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It is read no further, not saved, and read by the next call; who waits for it may be stopped too."""
    acts: list[str] = []
    monkeypatch.setattr(Prefixes, "_act", lambda _self, _slot, action, _name: acts.append(action))  # pyright: ignore
    body = {"messages": [{"role": "system", "content": "You are R3. " * 30}]}
    reading, called_off = threading.Event(), threading.Event()

    def read(_body: dict[str, object], stopped: Callable[[], bool]) -> None:
        reading.set()
        while not stopped():
            time.sleep(0.01)

    prefixes = Prefixes(tmp_path, -1, 1, read)
    first = threading.Thread(target=prefixes.prepare, args=(body, called_off.is_set))
    first.start()
    assert reading.wait(10)
    prefixes.prepare(body, lambda: True)
    called_off.set()
    first.join(10)
    assert not first.is_alive() and acts == []
    looks = iter([True, False])
    prefixes.prepare(body, lambda: next(looks))
    assert acts == ["save"]


def test_threads_count_physical_cores(tmp_path: Path) -> None:
    """Two hardware threads of one core count once; without a topology the usable CPUs count."""
    for cpu in range(4096):
        place = tmp_path / f"cpu{cpu}" / "topology"
        place.mkdir(parents=True)
        (place / "physical_package_id").write_text("0")
        (place / "core_id").write_text("0")
        if cpu > 256:
            break
    assert physical_cores(tmp_path) == 1
    assert physical_cores(tmp_path / "nothing") >= 1
