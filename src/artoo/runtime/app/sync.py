"""`run_sync`, which runs a request in a program without an event loop."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, TypeVar, overload

from artoo.contracts.errors import ConfigurationError

if TYPE_CHECKING:
    from pathlib import Path

    from artoo.contracts.request import Turn
    from artoo.llm.budget import MeteredModel
    from artoo.ports.confirm import Confirm
    from artoo.runtime.app.run_options import RunOptions
    from artoo.runtime.app.typed_results import Returned
    from artoo.runtime.changes.run_changes import RunResult
    from artoo.runtime.config.model import Config

T = TypeVar("T")


@overload
def run_sync(
    text: str,
    *,
    checks: Sequence[str] = (),
    images: Sequence[Path | bytes] = (),
    history: Sequence[Turn] = (),
    options: RunOptions | None = None,
    config: Config | None = None,
    tools: Sequence[Callable[..., object]] = (),
    confirm: Confirm | None = None,
    model: MeteredModel | None = None,
) -> RunResult: ...


@overload
def run_sync(
    text: str,
    *,
    returns: type[T],
    checks: Sequence[str] = (),
    images: Sequence[Path | bytes] = (),
    history: Sequence[Turn] = (),
    options: RunOptions | None = None,
    config: Config | None = None,
    tools: Sequence[Callable[..., object]] = (),
    confirm: Confirm | None = None,
    model: MeteredModel | None = None,
) -> Returned[T]: ...


def run_sync(
    text: str,
    *,
    returns: type[T] | None = None,
    checks: Sequence[str] = (),
    images: Sequence[Path | bytes] = (),
    history: Sequence[Turn] = (),
    options: RunOptions | None = None,
    config: Config | None = None,
    tools: Sequence[Callable[..., object]] = (),
    confirm: Confirm | None = None,
    model: MeteredModel | None = None,
) -> RunResult | Returned[T]:
    """Run `Artoo.run` on a new Artoo, which is opened and closed for this request.

    Raises ConfigurationError if an event loop is already running, and the errors of opening and running. Ctrl-C
    raises KeyboardInterrupt; the task can then be resumed.
    """
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        pass
    else:
        raise ConfigurationError("run_sync cannot wait where an event loop runs; use `await artoo.run(…)` there")
    from artoo.runtime.app.artoo import Artoo

    async def run() -> RunResult | Returned[T]:
        async with Artoo(config, tools=tools, confirm=confirm, model=model) as artoo:
            if returns is None:
                return await artoo.run(text, checks=checks, images=images, history=history, options=options)
            return await artoo.run(
                text, returns=returns, checks=checks, images=images, history=history, options=options
            )

    return asyncio.run(run())
