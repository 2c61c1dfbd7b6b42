"""Doubles for tests, with a scripted model and server, a predictable clock and ids, and `forbid_real_models`.

    async with ScriptedServer({"Plan": [plan], "ExecutorStep": [step, too_many_requests(1), answer]}) as server:
        ...  # point OPENAI_BASE_URL at server.base_url

A script names contracts (`Plan`, `ExecutorStep`, …) and gives each of them a queue of replies. A reply is a value,
a dict, a raw text, or one of the faults below. Instead of a queue there may be a callable that receives each
request. At the end, unused entries and requests without a script are errors.
"""

from __future__ import annotations

from collections.abc import Generator
from contextlib import contextmanager

from artoo.llm import guard
from artoo.testing.clock import FakeClock
from artoo.testing.ids import SequentialIds
from artoo.testing.replies import (
    Reply,
    cut,
    cut_connection,
    empty,
    fenced,
    native_call,
    null_content,
    prose,
    reasoned,
    refusal,
    server_error,
    slow,
    stall,
    thinking,
    too_many_requests,
    with_body,
    wrong_types,
)
from artoo.testing.script import Asked, Script, ScriptError, ScriptPlayer
from artoo.testing.scripted_model import ScriptedModel, ScriptedTransport
from artoo.testing.server import ScriptedServer

__all__ = [
    "Asked",
    "FakeClock",
    "Reply",
    "Script",
    "ScriptError",
    "ScriptPlayer",
    "ScriptedModel",
    "ScriptedServer",
    "ScriptedTransport",
    "SequentialIds",
    "cut",
    "cut_connection",
    "empty",
    "fenced",
    "forbid_real_models",
    "native_call",
    "null_content",
    "prose",
    "reasoned",
    "refusal",
    "server_error",
    "slow",
    "stall",
    "thinking",
    "too_many_requests",
    "with_body",
    "wrong_types",
]


@contextmanager
def forbid_real_models(*, allow: bool = False) -> Generator[None]:
    """Return a context in which real transports raise ConfigurationError, while scripted ones work. If `allow` is
    true, real transports are permitted again."""
    before = guard.forbid(not allow)
    try:
        yield
    finally:
        guard.forbid(before)
