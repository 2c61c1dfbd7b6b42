"""The script of a model by contract, its player, and the record of its requests."""

from __future__ import annotations

import re
from collections import deque
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import cast

from pydantic import BaseModel

from artoo.llm.prompt import estimated_tokens
from artoo.llm.transport import Json
from artoo.testing.replies import Reply, Scripted, as_reply
from artoo.testing.turns import natively

_CONTRACT_LINE = re.compile(r"^contract: *(\w+)", re.MULTILINE)
_REMEMBERED_PROMPTS = 32


class ScriptError(AssertionError):
    """Raised at the end of a test for a request without a script, or for unused entries of a script."""


@dataclass(frozen=True, slots=True)
class Asked:
    """One request that the scripted model received. `wire` is the method by which the request asks for structure,
    and `number` counts the requests from 1.

    `wire` is `native` if tools were offered. `user` is the whole text of the user's side, which includes the
    results of tools. `images` contains the data URLs of the images that are shown."""

    contract: str
    system: str
    user: str
    wire: str
    number: int
    body: Mapping[str, Json]
    images: tuple[str, ...] = ()

    @property
    def messages(self) -> list[dict[str, str]]:
        """Return all messages of the request, so that a test can inspect a repair."""
        return cast(list[dict[str, str]], self.body.get("messages", []))


Answering = Callable[[Asked], Scripted]
Entry = Sequence[Scripted] | Answering | Scripted
Script = Mapping[str, Entry] | Answering


class ScriptPlayer:
    """Plays a script and records all requests.

    `script` gives a queue of entries for each contract, or a callable for each request of this contract. It may
    also be one callable for all requests. A single entry in place of a list is a queue with one entry. `refuse`
    names the response formats that this server pretends not to know (`json_schema`, `forced_tool`, `json_object`).
    If it contains `native`, the server refuses tools. A refused request uses no entry.
    """

    def __init__(self, script: Script, *, refuse: Collection[str] = ()) -> None:
        self._everything: Answering | None = None
        self._callables: dict[str, Answering] = {}
        self._queues: dict[str, deque[Scripted]] = {}
        if isinstance(script, Mapping):
            for name, entry in cast(Mapping[str, Entry], script).items():
                self._add(name, entry)
        else:
            self._everything = script
        self._refuse = frozenset(refuse)
        self._prompts: deque[str] = deque(maxlen=_REMEMBERED_PROMPTS)
        self.requests: list[Asked] = []
        self.refused: list[Asked] = []
        self.unscripted: list[Asked] = []

    def reply_to(self, body: Mapping[str, Json]) -> tuple[Reply, Mapping[str, object]]:
        """Return the next reply, and the usage that is reported with it. A request without a script gets HTTP 400,
        and this is recorded."""
        asked = asked_in(body, len(self.requests) + 1)
        # The request is refused before an entry is used. So a client that asks again in another form uses only one
        # entry.
        if asked.wire in self._refuse:
            self.refused.append(asked)
            names = {"native": "tools", "forced_tool": "tool_choice"}
            what = names.get(asked.wire, f"response_format {asked.wire}")
            return Reply(status=400, error=f"{what} is not supported"), {}
        self.requests.append(asked)
        entry = self._entry(asked)
        if entry is None:
            self.unscripted.append(asked)
            missing = f"the script has nothing (more) for {_shown(asked)}"
            # This error prevents that another form is tried.
            return Reply(status=400, error=missing, code="model_not_found"), {}
        reply = as_reply(entry)
        # If tools are offered, steps become native calls, so that one script works for both dialects.
        if asked.wire == "native":
            reply = natively(reply, body, asked.number)
        return reply, reply.usage if reply.usage is not None else self._usage(asked, reply)

    def of(self, contract: str) -> list[Asked]:
        """Return the requests for one contract, in order."""
        return [asked for asked in self.requests if asked.contract == contract]

    def check_used_up(self) -> None:
        """Raise ScriptError if there were requests without a script, or if entries were not used."""
        complaints = [f"asked without script: {_shown(asked)}" for asked in self.unscripted]
        complaints += [
            f"unused script: {len(queue)} for {name or 'requests without a contract'}, next {_short(queue[0])}"
            for name, queue in self._queues.items()
            if queue
        ]
        if complaints:
            raise ScriptError("\n".join(complaints))

    def _add(self, name: str, entry: Entry) -> None:
        if isinstance(entry, (Reply, BaseModel, Mapping, str)):
            self._queues[name] = deque([cast(Scripted, entry)])
        elif isinstance(entry, Sequence):
            self._queues[name] = deque(cast(Sequence[Scripted], entry))
        else:
            self._callables[name] = entry

    def _entry(self, asked: Asked) -> Scripted | None:
        answering = self._everything or self._callables.get(asked.contract)
        if answering is not None:
            return answering(asked)
        queue = self._queues.get(asked.contract)
        return queue.popleft() if queue else None

    def _usage(self, asked: Asked, reply: Reply) -> Mapping[str, object]:
        """Estimate the number of tokens. The cached tokens are those of the longest beginning that an earlier
        prompt has in common with this one."""
        prompt = asked.system + "\0" + asked.user
        shared = max((_shared(prompt, earlier) for earlier in self._prompts), default=0)
        self._prompts.append(prompt)
        tokens, answered = estimated_tokens(prompt), estimated_tokens(reply.text or "")
        return {
            "prompt_tokens": tokens,
            "completion_tokens": answered,
            "total_tokens": tokens + answered,
            "prompt_tokens_details": {"cached_tokens": min(tokens, estimated_tokens(prompt[:shared]))},
        }


def asked_in(body: Mapping[str, Json], number: int) -> Asked:
    """Read the body of a chat-completions request.

    The contract is the name of the JSON schema. If there is none, it is the name in the last line `contract: NAME`
    of the system message. If the server accepts no system message, that line is in the first message of the user's
    side.
    """
    messages = cast(list[dict[str, Json]], body.get("messages") or [])
    system = "\n".join(_words(m.get("content")) for m in messages if m.get("role") == "system")
    user = "\n".join(_words(m.get("content")) for m in messages if m.get("role") in ("user", "tool"))
    form = cast(dict[str, Json], body.get("response_format") or {})
    chosen = body.get("tool_choice")
    forced = cast(dict[str, Json], chosen.get("function") or {}) if isinstance(chosen, dict) else {}
    named = cast(dict[str, Json], form.get("json_schema") or {}).get("name") or forced.get("name")
    lines = _CONTRACT_LINE.findall(system or _first_words(messages))
    contract = named if isinstance(named, str) else (lines[-1] if lines else "")
    offered = "forced_tool" if forced else "native" if body.get("tools") else "prompted"
    wire = str(form.get("type") or offered)
    return Asked(contract, system, user, wire, number, body, tuple(_pictures(messages)))


def _first_words(messages: Sequence[Mapping[str, Json]]) -> str:
    """Return only the first message of the user's side, because later ones contain text of tools and files."""
    return next((_words(each.get("content")) for each in messages if each.get("role") == "user"), "")


def _words(content: Json) -> str:
    """Return the text of a message. Its content is a text, or a list of parts that may include images."""
    if isinstance(content, list):
        return "\n".join(str(part.get("text") or "") for part in content if isinstance(part, dict))
    return str(content or "")


def _pictures(messages: Sequence[Mapping[str, Json]]) -> Iterator[str]:
    for message in messages:
        content = message.get("content")
        for part in content if isinstance(content, list) else ():
            shown = part.get("image_url") if isinstance(part, dict) else None
            if isinstance(shown, dict):
                yield str(shown.get("url"))


def _shared(one: str, other: str) -> int:
    """Return the length of the common beginning, which is found by binary search."""
    low, high = 0, min(len(one), len(other))
    while low < high:
        middle = (low + high + 1) // 2
        low, high = (middle, high) if one.startswith(other[:middle]) else (low, middle - 1)
    return low


def _shown(asked: Asked) -> str:
    return f"request {asked.number}, contract {asked.contract or '(none)'}: {_short(asked.user)}"


def _short(value: object) -> str:
    text = repr(value)
    return text if len(text) <= 200 else text[:200] + "…"
