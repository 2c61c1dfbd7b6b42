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
    """One request to the scripted model. `wire` is the method of requesting structure; `number` counts from 1.

    `wire` is `native` if tools were offered. `user` is all text of the user's side, including results of tools.
    `images` are the data URLs of the shown images."""

    contract: str
    system: str
    user: str
    wire: str
    number: int
    body: Mapping[str, Json]
    images: tuple[str, ...] = ()

    @property
    def messages(self) -> list[dict[str, str]]:
        """Return all messages of the request, to inspect a repair."""
        return cast(list[dict[str, str]], self.body.get("messages", []))


Answering = Callable[[Asked], Scripted]
Entry = Sequence[Scripted] | Answering | Scripted
Script = Mapping[str, Entry] | Answering


class ScriptPlayer:
    """A player of a script that records all requests.

    `script`: for each contract a queue of entries, or one callable for each request (or for all). A single entry
    instead of a list is a queue of one entry. `refuse` names response formats that this server pretends not to
    know (`json_schema`, `forced_tool`, `json_object`), or `native`: it refuses tools. Refused requests use no
    entry.
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
        """Return the next reply, and the usage to report. A request without script gets HTTP 400 and is
        recorded."""
        asked = asked_in(body, len(self.requests) + 1)
        # Refuse before using an entry, so that a client that asks again in another form uses only one entry.
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
            return Reply(status=400, error=missing, code="model_not_found"), {}  # so that no other form is tried
        reply = as_reply(entry)
        # Steps become native calls if tools are offered, so that one script works for both dialects.
        if asked.wire == "native":
            reply = natively(reply, body, asked.number)
        return reply, reply.usage if reply.usage is not None else self._usage(asked, reply)

    def of(self, contract: str) -> list[Asked]:
        """Return the requests for one contract, in order."""
        return [asked for asked in self.requests if asked.contract == contract]

    def check_used_up(self) -> None:
        """Raise ScriptError if there were requests without a script, or if entries are unused."""
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
        """Estimate the tokens. Cached tokens are those of the longest prefix that an earlier prompt shares."""
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
    """Read a chat-completions body.

    The contract is the JSON schema's name, or else the name in the last line `contract: NAME` of the system
    message. If the server accepts no system message, that line is in the first message of the user's side.
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
    """Return the first message of the user's side, because later ones contain text of tools and files."""
    return next((_words(each.get("content")) for each in messages if each.get("role") == "user"), "")


def _words(content: Json) -> str:
    """Return the text of a message, whose content is text or a list of parts with images."""
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
    """Return the length of the common prefix, by binary search."""
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
