"""`run_sync`, which runs a request in a program without an event loop."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, TypeVar, Unpack, overload

from artoo.contracts.errors import ConfigurationError
from artoo.runtime.app.run_options import CallOptions

if TYPE_CHECKING:
    from artoo.llm.budget import MeteredModel
    from artoo.ports.confirm import Confirm
    from artoo.runtime.app.typed_results import Returned
    from artoo.runtime.changes.run_changes import RunResult
    from artoo.runtime.config.model import Config

T = TypeVar("T")


class SyncOptions(CallOptions, total=False):
    """The options of one call of `run_sync`: those of `Artoo.run`, and of the new `Artoo`."""

    config: Config | None
    tools: Sequence[Callable[..., object]]
    confirm: Confirm | None
    model: MeteredModel | None


@overload
def run_sync(text: str, **call: Unpack[SyncOptions]) -> RunResult: ...


@overload
def run_sync(text: str, *, returns: type[T], **call: Unpack[SyncOptions]) -> Returned[T]: ...


def run_sync(text: str, *, returns: type[T] | None = None, **call: Unpack[SyncOptions]) -> RunResult | Returned[T]:
    """Run `Artoo.run` on a new Artoo, which is opened and closed for this request.

    Raises ConfigurationError if an event loop is already running. Also raises the errors of opening and running.
    Ctrl-C raises KeyboardInterrupt, and the task can then be resumed.
    """
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        pass
    else:
        raise ConfigurationError("run_sync cannot wait where an event loop runs; use `await artoo.run(…)` there")
    from artoo.runtime.app.artoo import Artoo

    config, tools = call.pop("config", None), call.pop("tools", ())
    confirm, model = call.pop("confirm", None), call.pop("model", None)

    async def run() -> RunResult | Returned[T]:
        async with Artoo(config, tools=tools, confirm=confirm, model=model) as artoo:
            if returns is None:
                return await artoo.run(text, **call)
            return await artoo.run(text, returns=returns, **call)

    return asyncio.run(run())
