"""A chat-completions server that answers every stage after a fixed time. 127.0.0.1 only.

    python mock_server.py LATENCY_MS

Prints its port, and ends when its standard input does. The stage is the contract: the JSON schema's name, else the
`contract: NAME` line of the system message. `GET /stats` returns and resets what was counted.

It waits with select(2), whose timeout is in microseconds: epoll's is in whole milliseconds, rounded up, so that
every answer would be late by up to one.
"""

from __future__ import annotations

import asyncio
import re
import selectors
import sys
from collections.abc import Iterator

import job
import orjson
from aiohttp import web

_CONTRACT = re.compile(r"^contract: *(\w+)", re.MULTILINE)
_PARTS = re.compile(r"\[\[parts:(\d+)\]\]")
_PART = re.compile(r"Look up (part \d+)")
_FACT = re.compile(rf"^{re.escape(job.FACT[:-1])}.*$", re.MULTILINE)
_REPORT = {"verdicts": [{"number": 1, "quote": "The capital of France is Paris", "verdict": "pass"}]}


class Mock:
    """Counts requests, their bytes, and the seconds for which it held them, and answers."""

    def __init__(self, latency: float) -> None:
        self._latency = latency
        self._calls = self._bytes = self._at_once = self._most_at_once = 0
        self._held = 0.0

    async def chat(self, request: web.Request) -> web.Response:
        """POST /v1/chat/completions. The latency begins when the whole body is here; our work is inside it."""
        self._at_once += 1
        self._most_at_once = max(self._most_at_once, self._at_once)
        raw = await request.read()
        here = asyncio.get_running_loop().time()
        due = here + self._latency
        self._calls += 1
        self._bytes += len(raw)
        message = _answer(orjson.loads(raw))
        await asyncio.sleep(max(0.0, due - asyncio.get_running_loop().time()))
        self._at_once -= 1
        self._held += asyncio.get_running_loop().time() - here
        tokens = len(raw) // 4
        body = {
            "id": "chatcmpl-0",
            "object": "chat.completion",
            "created": 0,
            "model": job.MODEL,
            "choices": [{"index": 0, "message": message, "finish_reason": "stop"}],
            "usage": {"prompt_tokens": tokens, "completion_tokens": 20, "total_tokens": tokens + 20},
        }
        return web.Response(body=orjson.dumps(body), content_type="application/json")

    async def models(self, _: web.Request) -> web.Response:
        """GET /v1/models."""
        return web.json_response({"object": "list", "data": [{"id": job.MODEL, "owned_by": "benchmark"}]})

    async def stats(self, _: web.Request) -> web.Response:
        """Calls, bytes of their bodies, most at once, and seconds for which they were held, since the last look."""
        found = {"calls": self._calls, "bytes": self._bytes, "most_at_once": self._most_at_once, "held": self._held}
        self._calls = self._bytes = self._most_at_once = 0
        self._held = 0.0
        return web.json_response(found)


def _answer(body: dict[str, object]) -> dict[str, object]:
    messages: list[dict[str, str]] = body["messages"]  # type: ignore[assignment]
    system, user = messages[0]["content"], messages[1]["content"]
    if body.get("tools") and messages[-1]["role"] != "tool":
        return {"role": "assistant", "content": None, "tool_calls": list(_calls(user))}
    found = _CONTRACT.search(system)
    stage = found.group(1) if found else ""
    return {"role": "assistant", "content": _text(stage, system, user, in_words="response_format" not in body)}


def _text(stage: str, system: str, user: str, *, in_words: bool) -> str:
    if stage == "TaskSpec":
        return orjson.dumps({"intent": job.GOAL}).decode()
    if stage == "Plan":
        return orjson.dumps(_plan(user)).decode()
    if stage == "MergeReport" and in_words:
        return _merge(user)
    if stage in ("ValidationReport", "MergeReport"):
        return orjson.dumps(_REPORT).decode()
    return job.FACT


def _plan(user: str) -> dict[str, object]:
    named = _PARTS.search(user)
    count = int(named.group(1)) if named else 1
    if count == 1:
        return {"subtasks": [{"intent": job.GOAL, "tool": "lookup"}], "task_criteria": [job.CRITERION]}
    subtasks = [
        {"intent": f"Look up part {n}.", "tool": "lookup", "success_criteria": [f"Part {n} names a fact."]}
        for n in range(1, count + 1)
    ]
    return {"subtasks": subtasks, "task_criteria": ["Every part is named with its fact."]}


def _merge(user: str) -> str:
    """artoo's writer of the final answer: a line of JSON, then every result that it was shown in a block."""
    facts = _FACT.findall(user)
    head = orjson.dumps({"sources": list(range(1, len(facts) + 1)), **_REPORT}).decode()
    return "\n".join((head, "```", *facts, "```"))


def _calls(user: str) -> Iterator[dict[str, object]]:
    """Call the tool. An answer follows in a chain; artoo delivers the output for a part of a fan-out."""
    part = _PART.search(user)
    asked = {"query": str(part.group(1)) if part else "capital of France"}
    made: list[tuple[str, dict[str, str]]] = [("lookup", asked), *([("deliver", {})] if part else [])]
    for number, (name, arguments) in enumerate(made):
        function = {"name": name, "arguments": orjson.dumps(arguments).decode()}
        yield {"id": f"call_{number}", "type": "function", "function": function}


async def main(latency_ms: float) -> None:
    """Serves until the standard input ends."""
    mock = Mock(latency_ms / 1_000)
    app = web.Application(client_max_size=16 << 20)
    app.router.add_post("/v1/chat/completions", mock.chat)
    app.router.add_get("/v1/models", mock.models)
    app.router.add_get("/stats", mock.stats)
    runner = web.AppRunner(app, access_log=None, keepalive_timeout=600)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0, backlog=1_024).start()
    print(runner.addresses[0][1], flush=True)
    await asyncio.get_running_loop().run_in_executor(None, sys.stdin.read)
    await runner.cleanup()


def _loop() -> asyncio.AbstractEventLoop:
    return asyncio.SelectorEventLoop(selectors.SelectSelector())


if __name__ == "__main__":
    with asyncio.Runner(loop_factory=_loop) as runner:
        runner.run(main(float(sys.argv[1])))
