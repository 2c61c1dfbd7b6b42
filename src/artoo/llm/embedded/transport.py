"""The embedded model: a `Transport` whose server is llama.cpp inside this process (SPEC section 9).

The model is loaded by the first request, once however many wait for it, and freed by `close`. Nothing here blocks
the event loop: loading and generating run in threads of their own.
"""

from __future__ import annotations

import asyncio
import atexit
import threading
from collections.abc import Callable, Mapping
from concurrent.futures import Future
from pathlib import Path

from artoo.contracts.errors import ModelUnreachable
from artoo.llm import guard
from artoo.llm.embedded.answer import HEADERS, StreamedAnswer
from artoo.llm.embedded.engine import Engine, EngineSettings, LlamaEngine, check_gguf, close_all
from artoo.llm.embedded.worker import Stop, run_in_thread, stop_all
from artoo.llm.transport import Json, OnEvent, TransportReply

LoadEngine = Callable[[Path, EngineSettings], Engine]
CheckFile = Callable[[Path], None]


class EmbeddedTransport:
    """Requests to a model in this process.

    `check` is run in the loading thread before the file is given to llama.cpp; `ModelStore.check_file` verifies
    hashes there. Share one object between all tiers and subtasks: each object loads its own copy of the model.
    """

    def __init__(
        self,
        path: Path,
        settings: EngineSettings | None = None,
        *,
        check: CheckFile = check_gguf,
        load: LoadEngine = LlamaEngine,
    ) -> None:
        self._path = path
        self._settings = settings or EngineSettings()
        self._check = check
        self._load = load
        self._lock = threading.Lock()
        self._engine: Future[Engine] | None = None
        self._active: set[Stop] = set()
        self._closed = False
        self._places: tuple[asyncio.AbstractEventLoop, asyncio.Semaphore] | None = None

    @property
    def name(self) -> str:
        """The model file."""
        return str(self._path)

    async def post(
        self,
        body: Mapping[str, object],
        *,
        timeout: float,
        path: str = "/chat/completions",
        on_event: OnEvent | None = None,
    ) -> TransportReply:
        """One chat completion, which comes whole: nothing is heard of it before.

        `timeout` (seconds) counts from when the model is loaded and a slot is free, so that a call does not pay
        for those before it; cancel the call to bound the whole. A call that is cancelled or times out stops its
        generation at the next token, or within one batch while the prompt is read.
        Raises ModelUnreachable: no usable model file, or no complete answer in time; ConfigurationError: this
        process forbids real models.
        """
        guard.check(self.name)
        engine = await self._loaded()
        async with self._free_slot():
            future, stop = run_in_thread(lambda stop: _complete(engine, body, stop), name="artoo-model-call")
            self._active.add(stop)
            try:
                async with asyncio.timeout(timeout):
                    return await asyncio.wrap_future(future)
            except TimeoutError as error:
                raise ModelUnreachable(
                    f"the embedded model {self._path.name} gave no complete answer within {timeout:g} s; "
                    "allow more time, lower max_tokens, or use a smaller model or a model server"
                ) from error
            finally:
                stop.set()
                self._active.discard(stop)

    async def models(self, *, timeout: float) -> TransportReply:
        """The one model that is served, without loading it. Raises ModelUnreachable when its file is unusable."""
        future, _ = run_in_thread(lambda _stop: check_gguf(self._path), name="artoo-model-look")
        try:
            async with asyncio.timeout(timeout):
                await asyncio.wrap_future(future)
        except TimeoutError as error:
            raise ModelUnreachable(
                f"the disk that holds {self._path} did not answer within {timeout:g} s; check it"
            ) from error
        return served(self._path.name, self._settings, self._path.stat().st_size)

    async def close(self) -> None:
        """Stops what is running and frees the model. Requests afterwards raise ModelUnreachable. Idempotent."""
        with self._lock:
            self._closed = True
            loading, self._engine = self._engine, None
        for stop in tuple(self._active):
            stop.set()
        if loading is None:
            return
        future, _ = run_in_thread(lambda _stop: _free(loading), name="artoo-model-free")
        await asyncio.wrap_future(future)

    async def _loaded(self) -> Engine:
        with self._lock:
            if self._closed:
                raise ModelUnreachable("the embedded model was closed; make a new connection to use it again")
            failed = self._engine is not None and self._engine.done() and self._engine.exception() is not None
            if self._engine is None or failed:
                self._engine, _ = run_in_thread(lambda _stop: self._check_and_load(), name="artoo-model-load")
            loading = self._engine
        # No shield: a running concurrent future cannot be cancelled, so a cancelled caller leaves the load alone.
        return await asyncio.wrap_future(loading)

    def _check_and_load(self) -> Engine:
        self._check(self._path)
        return self._load(self._path, self._settings)

    def _free_slot(self) -> asyncio.Semaphore:
        loop = asyncio.get_running_loop()
        if self._places is None or self._places[0] is not loop:
            self._places = (loop, asyncio.Semaphore(self._settings.slots))
        return self._places[1]


def served(name: str, settings: EngineSettings, size: int) -> TransportReply:
    """One model as llama.cpp's server lists it. `size`: of its weights, in bytes. Slots share the context."""
    meta: Json = {"n_ctx": settings.context_tokens // settings.slots, "size": size}
    model: Json = {"id": name, "object": "model", "owned_by": "llamacpp", "meta": meta}
    return TransportReply(200, HEADERS, {"object": "list", "data": [model]})


def _complete(engine: Engine, body: Mapping[str, object], stop: Stop) -> TransportReply:
    answer = StreamedAnswer()

    def take(chunk: Mapping[str, object]) -> bool:
        answer.add(chunk)
        return bool(stop) or answer.ran_away()

    engine.chat(
        {
            "cache_prompt": True,
            **body,
            "stream": True,
            "stream_options": {"include_usage": True},
            "return_progress": True,
        },
        take,
    )
    if stop:
        raise ModelUnreachable("the call to the embedded model was stopped before its answer was complete")
    return answer.reply()


def _free(loading: Future[Engine]) -> None:
    if loading.exception() is None:
        loading.result().close()


def _at_exit() -> None:
    stop_all()
    close_all()


atexit.register(_at_exit)
