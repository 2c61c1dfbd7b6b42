"""The optional features that a server accepts, found by trying, and stored for some days.

Reference: SPEC section 9.

If a server refuses a request, the request is repeated. Each time one more feature is left out, until the server
answers. The feature that was left out last was the refused one. The words of a refusal are not interpreted. If the
refusal contains the name of a feature, in a field or in its text, this only decides which feature is left out
first.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import Collection, Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from functools import partial
from pathlib import Path
from typing import cast

import orjson

from artoo.disk.whole import write_whole
from artoo.llm.completion import error_code, error_of, status_of
from artoo.llm.streamed import objects
from artoo.llm.transport import Json, TransportReply
from artoo.llm.wires.how import Form
from artoo.ports.clock import Clock

# The optional features of requests, in the order in which they are left out, and their names in requests.
#
# `adaptive`: the model decides how long it thinks. Without it, a number of tokens is given. `thoughts`: the
# thoughts of earlier turns are sent back. `long_answer`: the limit may be above `wires.how.SHORT_ANSWER`. Without
# `max_tokens`, the name of the limit is `max_completion_tokens`. Without `limit`, no limit is sent. Without `tools`
# the text dialect is used.
FEATURES: Mapping[str, tuple[str, ...]] = {
    "temperature": ("temperature",),
    "seed": ("seed",),
    "stop": ("stop", "stop_sequences"),
    "cache": ("cache_prompt", "prompt_cache_key", "cache_control"),
    "stream_options": ("stream_options",),
    "adaptive": ("thinking",),
    "reasoning": ("reasoning_effort", "reasoning", "thinking"),
    "thoughts": ("reasoning_content", "reasoning", "reasoning_details", "include", "signature"),
    "json_schema": ("response_format", "json_schema", "text", "output_config"),
    "forced_tool": ("tool_choice",),
    "json_object": ("response_format", "json_object", "text"),
    "system": ("system", "instructions"),
    "long_answer": ("max_tokens", "max_completion_tokens", "max_output_tokens"),
    "max_tokens": ("max_tokens",),
    "limit": ("max_completion_tokens", "max_output_tokens"),
    "tools": ("tools",),
    "stream": ("stream",),
}

# Features that a server may accept with one value and refuse with another value.
_DEPENDS_ON_VALUE = frozenset({"json_schema", "forced_tool", "json_object", "long_answer", "tools"})

# Groups of features that replace each other. A feature is used if those before it in its group are refused.
_CHAINS = (("json_schema", "forced_tool", "json_object"), ("adaptive", "reasoning"), ("max_tokens", "limit"))

_MAY_OBJECT = frozenset({400, 404, 405, 406, 415, 422, 501})
_FINAL_CODES = frozenset({"model_not_found", "invalid_api_key", "content_filter", "content_policy_violation"})
_NAME = re.compile(r"[A-Za-z_]+")


@dataclass(frozen=True, slots=True)
class Dialect:
    """The features that one server accepts and refuses for one model. If `wire` is None, the wire is not known yet.
    `without`: the features that the server refuses."""

    wire: str | None = None
    without: frozenset[str] = frozenset()

    @property
    def form(self) -> Form:
        """Return the strongest form of structured output that the server accepts."""
        for form in (Form.JSON_SCHEMA, Form.FORCED_TOOL, Form.JSON_OBJECT):
            if form.value not in self.without:
                return form
        return Form.PROMPTED

    def giving_up(self, *features: str) -> Dialect:
        """Return the dialect without these features too."""
        return replace(self, without=self.without | set(features))


def may_object(reply: TransportReply) -> bool:
    """Return whether a refusal may be about the form of the request. Its status and its code decide this."""
    return status_of(reply) in _MAY_OBJECT and error_code(reply) not in _FINAL_CODES


def refused_with(last: str, left_out: frozenset[str]) -> frozenset[str]:
    """Return the features that the server refuses, because it has answered a request without `left_out`.

    These are the feature that was left out last, and the features that this one had replaced.
    """
    chain = next((chain for chain in _CHAINS if last in chain), (last,))
    return left_out & frozenset(chain[: chain.index(last) + 1])


def suspects(reply: TransportReply, used: Collection[str], proven: frozenset[str]) -> list[str]:
    """Return the features of a refused request in the order in which they are left out. Those that the refusal
    names come first.

    `used`: the features of the request. `proven`: the features that this server has accepted before.
    """
    wanted = set(used)
    possible = [name for name in FEATURES if name in wanted and (name not in proven or name in _DEPENDS_ON_VALUE)]
    return sorted(possible, key=partial(_rank, _named(reply.body), frozenset(_NAME.findall(error_of(reply)))))


def names_any(reply: TransportReply, used: Collection[str]) -> bool:
    """Return whether a refusal names one of these features in its fields or its text."""
    rank = partial(_rank, _named(reply.body), frozenset(_NAME.findall(error_of(reply))))
    return any(rank(feature) < 2 for feature in used)


def _rank(fields: Collection[str], text: Collection[str], feature: str) -> int:
    names = FEATURES[feature]
    return 0 if any(name in fields for name in names) else 1 if any(name in text for name in names) else 2


def _named(body: Json) -> frozenset[str]:
    """Return the names in those fields of an error that refer to a part of the request. These are `param` (OpenAI),
    and `loc` of the validators of many Python servers.
    """
    if not isinstance(body, dict):
        return frozenset()
    error = body.get("error")
    holder = error if isinstance(error, dict) else body
    said: list[Json] = [holder.get("param")]
    for problem in (*objects(holder.get("detail")), *objects(body.get("detail"))):
        where = problem.get("loc")
        said += where if isinstance(where, list) else []
    return frozenset(name for part in said if isinstance(part, str) for name in _NAME.findall(part))


_MOST_KEPT = 256
_OLDEST = timedelta(days=7)


class DialectMemory:
    """Dialects in one small JSON file under artoo's home. An entry expires after a week, because servers improve.

    The file is only a cache, whose loss costs one refused request. A file that cannot be read counts as empty. If
    it cannot be written, the run continues without it.
    """

    def __init__(self, path: Path, clock: Clock) -> None:
        self._path = path
        self._clock = clock
        self._entries: dict[str, object] | None = None

    def load(self, key: str) -> Dialect | None:
        """Return the stored dialect for `key` (base URL and model). Return None if there is none or it is too
        old."""
        if self._entries is None:
            self._entries = _read(self._path)
        return _dialect(self._entries.get(key), self._clock.now())

    async def save(self, key: str, dialect: Dialect) -> None:
        """Store a dialect. Entries that other processes wrote to the file are kept."""
        at = self._clock.now().isoformat()
        entry: dict[str, object] = {"wire": dialect.wire, "without": sorted(dialect.without), "at": at}
        self._entries = await asyncio.to_thread(_merge, self._path, key, entry)


def _dialect(entry: object, now: datetime) -> Dialect | None:
    if not isinstance(entry, dict):
        return None
    fields = cast(dict[str, object], entry)
    try:
        if now - datetime.fromisoformat(str(fields["at"])) > _OLDEST:
            return None
        wire, without = fields["wire"], cast("list[str]", fields["without"])
        return Dialect(wire if isinstance(wire, str) else None, frozenset(without) & FEATURES.keys())
    except (KeyError, TypeError, ValueError):
        return None


def _read(path: Path) -> dict[str, object]:
    with suppress(OSError, orjson.JSONDecodeError):
        found = orjson.loads(path.read_bytes())
        return cast(dict[str, object], found) if isinstance(found, dict) else {}
    return {}


def _merge(path: Path, key: str, entry: dict[str, object]) -> dict[str, object]:
    others = {name: value for name, value in _read(path).items() if name != key}
    entries = dict([*others.items(), (key, entry)][-_MOST_KEPT:])
    with suppress(OSError):  # if the cache cannot be written, this only costs one refused request in the next run
        path.parent.mkdir(parents=True, exist_ok=True)
        write_whole(path, orjson.dumps(entries), sync=False)
    return entries
