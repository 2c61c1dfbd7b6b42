"""Send requests to the embedded model over its UNIX socket, loading it at the first request.

Reference: SPEC section 9.

    first request ──► model file ready ──► loaded ──► static prefix restored or computed ──► HTTP requests

The model is loaded only once, however many requests wait for it. `close` frees it. Answers are always streamed,
because only a streamed answer can be stopped early: closing the connection stops its generation.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from contextlib import suppress
from pathlib import Path

from artoo.contracts.errors import ArtooError, ModelUnreachable
from artoo.llm import guard
from artoo.llm.embedded.engine import Engine, EngineSettings, LlamaEngine, slots_of
from artoo.llm.embedded.prefixes import Prefixes
from artoo.llm.http import HttpTransport
from artoo.llm.transport import Json, OnEvent, TransportReply

LoadEngine = Callable[[Path, EngineSettings], Engine]

_ADDRESS = "http://localhost"
_SMALLEST: Mapping[str, object] = {"messages": [{"role": "user", "content": "."}], "max_tokens": 1}
_SETTLING_SECONDS = 60.0
_STREAMED = {"stream": True, "stream_options": {"include_usage": True}, "return_progress": True}


class EmbeddedTransport:
    """Sends requests to a model in this process.

    `ready` returns the file of the model, which is downloaded and checked. `weights` is its size in bytes. All
    tiers and subtasks should use the same object, because each object loads its own copy of the model.
    """

    def __init__(
        self,
        name: str,
        settings: EngineSettings,
        ready: Callable[[], Awaitable[Path]],
        *,
        weights: int = 0,
        load: LoadEngine = LlamaEngine,
    ) -> None:
        self._name = name
        self._settings = settings
        self._ready = ready
        self._weights = weights
        self._load = load
        self._lock = asyncio.Lock()
        self._loading: asyncio.Future[Engine] | None = None
        self._http: HttpTransport | None = None
        self._prefixes: Prefixes | None = None
        self._active: set[asyncio.Future[TransportReply]] = set()
        self._settled = True
        self._closed = False

    @property
    def name(self) -> str:
        """Return the model's name or file."""
        return self._name

    async def post(
        self,
        body: Mapping[str, object],
        *,
        timeout: float,
        path: str = "/chat/completions",
        on_event: OnEvent | None = None,
    ) -> TransportReply:
        """Send a request, as Transport describes. If a call is cancelled or times out, the generation of its answer
        stops at the next token.

        Raises ModelUnreachable if the model cannot be downloaded or loaded, or gives no complete answer in time.
        Raises ConfigurationError if this process forbids real models.
        """
        guard.check(self._name)
        engine, http = await self._loaded()
        if self._prefixes is not None:
            await self._prefixes.prepare(body)
        asked = {"cache_prompt": True, **engine.constrained(body), **_STREAMED}
        # A listener is always passed, because the time limit of a streamed request is for its pauses and not for
        # its total time.
        hears: OnEvent = on_event or (lambda event: None)
        call = asyncio.ensure_future(http.post(asked, timeout=timeout, path=path, on_event=hears))
        self._active.add(call)
        self._settled = False
        try:
            answered = await call
            self._settled = not self._active - {call}
            return answered
        except asyncio.CancelledError:
            own = asyncio.current_task()
            if not self._closed or (own is not None and own.cancelling()):
                raise
            raise ModelUnreachable(f"{self._name} was closed before its answer was complete") from None
        finally:
            self._active.discard(call)

    async def models(self, *, timeout: float) -> TransportReply:
        """List the only model, like llama.cpp's server but without loading the model. All slots together have one
        context."""
        meta: Json = {"n_ctx": self._settings.context_tokens // self._settings.slots, "size": self._weights}
        model: Json = {"id": self._name, "object": "model", "owned_by": "llamacpp", "meta": meta}
        return TransportReply(200, {}, {"object": "list", "data": [model]})

    async def close(self) -> None:
        """Stop running requests and free the model. Later requests raise ModelUnreachable. Idempotent."""
        self._closed = True
        loading, self._loading = self._loading, None
        for call in self._active:
            call.cancel()
        if self._http is not None:
            if not self._settled:
                # Freeing the engine waits for a batch that is still being computed, and holds Python's global lock
                # meanwhile. A request waits for the same batch without holding the lock.
                with suppress(ArtooError):
                    await self._http.post(_SMALLEST, timeout=_SETTLING_SECONDS)
            await self._http.close()
        if loading is not None:
            with suppress(ModelUnreachable):
                await asyncio.to_thread((await loading).close)

    async def _loaded(self) -> tuple[Engine, HttpTransport]:
        async with self._lock:
            self._require_open()
            if self._loading is None or (self._loading.done() and self._loading.exception() is not None):
                path = await self._ready()
                self._require_open()
                # This is no asyncio task, because the end of the loop would cancel a task while the thread
                # continues.
                loop = asyncio.get_running_loop()
                self._loading = loop.run_in_executor(None, self._load, path, self._settings)
            # if one caller is cancelled, the model is still loaded for the others
            engine = await asyncio.shield(self._loading)
            # if `close` is called at the same time, it waits until the model is loaded, and frees the engine
            self._require_open()
            if self._http is None:
                self._http = HttpTransport(
                    _ADDRESS, limit=self._settings.slots, socket=engine.socket, name=self._name
                )
                if self._settings.prefixes is not None:
                    self._prefixes = Prefixes(self._settings.prefixes, self._http, slots_of(self._settings))
            return engine, self._http

    def _require_open(self) -> None:
        if self._closed:
            raise ModelUnreachable("the embedded model was closed; make a new connection to use it again")
