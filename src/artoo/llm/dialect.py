"""How a server wants to be asked: found out by trying, then remembered (SPEC section 9).

A request has optional features. A server that refuses a request is asked again with one feature after the other
left out, until it answers: the last one left out was refused. No words of a refusal are interpreted. Names that a
refusal gives in its fields, or that stand in its text as in the request, only decide what is tried first.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import Collection, Mapping
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from pathlib import Path
from typing import cast

import orjson

from artoo.disk.whole import write_whole
from artoo.llm.completion import error_code, error_of, status_of
from artoo.llm.streamed import objects
from artoo.llm.transport import Json, TransportReply
from artoo.llm.wires.how import Form
from artoo.ports.clock import Clock

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
"""The optional features of requests, in the order in which they are left out, and their names in requests.

`adaptive`: thoughts whose length the model decides; else a number of tokens is given. `thoughts`: those of earlier
turns are sent back. `long_answer`: limits above `SHORT_ANSWER`. Without `max_tokens` the limit is called
`max_completion_tokens`, without `limit` there is none. Without `tools` the text dialect is used.
"""

SHORT_ANSWER = 4_096
"""Tokens of an answer that every server allows, as far as we know."""

_DEPENDS_ON_VALUE = frozenset({"json_schema", "forced_tool", "json_object", "long_answer", "tools"})
"""Features that a server may accept in one request and refuse in another."""

_CHAINS = (("json_schema", "forced_tool", "json_object"), ("adaptive", "reasoning"), ("max_tokens", "limit"))
"""Each of these takes the place of the one before it in the same request."""

_MAY_OBJECT = frozenset({400, 404, 405, 406, 415, 422, 501})
_FINAL_CODES = frozenset({"model_not_found", "invalid_api_key", "content_filter", "content_policy_violation"})
_NAME = re.compile(r"[A-Za-z_]+")


@dataclass(frozen=True, slots=True)
class Dialect:
    """What one server accepts for one model. `wire` None: not found out. `without`: features that it refuses."""

    wire: str | None = None
    without: frozenset[str] = frozenset()

    @property
    def form(self) -> Form:
        """The strongest form of structure that it accepts."""
        for form in (Form.JSON_SCHEMA, Form.FORCED_TOOL, Form.JSON_OBJECT):
            if form.value not in self.without:
                return form
        return Form.PROMPTED

    def giving_up(self, *features: str) -> Dialect:
        """Return the dialect without these features too."""
        return replace(self, without=self.without | set(features))


def may_object(reply: TransportReply) -> bool:
    """True if a refusal may be about how we asked, as far as its status and code say."""
    return status_of(reply) in _MAY_OBJECT and error_code(reply) not in _FINAL_CODES


def refused_with(last: str, left_out: frozenset[str]) -> frozenset[str]:
    """The features that are known to be refused when a request without `left_out` is answered.

    That is the one that was left out last, and those that it stands in for.
    """
    chain = next((chain for chain in _CHAINS if last in chain), (last,))
    return left_out & frozenset(chain[: chain.index(last) + 1])


def suspects(reply: TransportReply, used: Collection[str], proven: frozenset[str]) -> list[str]:
    """The features of a refused request in the order in which they are left out: named ones first.

    `used`: those of the request. `proven`: those that this server accepted before.
    """
    wanted = set(used)
    possible = [name for name in FEATURES if name in wanted and (name not in proven or name in _DEPENDS_ON_VALUE)]
    fields, text = _named(reply.body), frozenset(_NAME.findall(error_of(reply)))

    def rank(feature: str) -> int:
        names = FEATURES[feature]
        if any(name in fields for name in names):
            return 0
        return 1 if any(name in text for name in names) else 2

    return sorted(possible, key=rank)


def _named(body: Json) -> frozenset[str]:
    """Names in the fields of an error that say which part of a request it is about: OpenAI's `param`, and the `loc`
    of the validators of many Python servers."""
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
    """Dialects in one small JSON file under artoo's home; entries expire after a week, for servers get better.

    The file is a cache, whose loss costs a refused request: unreadable, it counts as empty; unwritable, the run
    goes on without it.
    """

    def __init__(self, path: Path, clock: Clock) -> None:
        self._path = path
        self._clock = clock
        self._entries: dict[str, object] | None = None

    def load(self, key: str) -> Dialect | None:
        """What was found out about `key` (base URL and model), if it is not too old."""
        if self._entries is None:
            self._entries = _read(self._path)
        return _dialect(self._entries.get(key), self._clock.now())

    async def save(self, key: str, dialect: Dialect) -> None:
        """Keep it. Other processes' entries in the file stay."""
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
        known = frozenset(name for name in without if name in FEATURES)
        return Dialect(wire if isinstance(wire, str) else None, known)
    except (KeyError, TypeError, ValueError):
        return None


def _read(path: Path) -> dict[str, object]:
    try:
        found = orjson.loads(path.read_bytes())
    except (OSError, orjson.JSONDecodeError):
        return {}
    return cast(dict[str, object], found) if isinstance(found, dict) else {}


def _merge(path: Path, key: str, entry: dict[str, object]) -> dict[str, object]:
    entries = _read(path)
    entries.pop(key, None)
    entries[key] = entry
    for oldest in list(entries)[: max(0, len(entries) - _MOST_KEPT)]:
        del entries[oldest]
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        write_whole(path, orjson.dumps(entries), sync=False)
    except OSError:
        return entries  # a cache that cannot be written costs one refused request in the next run
    return entries
