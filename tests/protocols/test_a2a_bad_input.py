"""Messages that are none, by either binding and method: a clear error each, no crash, and nothing is begun."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from foreign import books, client_of, hosted, message, started
from malformed import malformed

VERSION = {"a2a-version": "1.0", "content-type": "application/json"}
TEXT = [{"text": "make bad.txt"}]


def _messages(number: int) -> Iterator[dict[str, Any]]:
    """Messages that lack something, have too much of it, or want what there is not."""
    good: dict[str, Any] = {"messageId": f"bad-{number}", "role": "ROLE_USER", "parts": TEXT}
    yield {}
    yield {"message": {**good, "parts": []}}
    yield {"message": {**good, "messageId": ""}}
    yield {"message": {**good, "messageId": "x" * 10_000}}
    yield {"message": {**good, "messageId": "a\nb"}}
    yield {"message": {**good, "role": "ROLE_AGENT"}}
    yield {"message": {**good, "role": 17}}
    yield {"message": {**good, "role": ["ROLE_USER"]}}
    yield {"message": {**good, "parts": [{"text": " \n "}]}}
    yield {"message": {**good, "parts": [{"text": "x" * (20_001 + number)}]}}
    yield {"message": {**good, "parts": [{"raw": "AAAA"}]}}
    yield {"message": {**good, "parts": [{"url": "http://169.254.169.254/"}]}}
    yield {"message": {**good, "parts": [{"data": {"deep": [[[[number]]]]}}]}}
    yield {"message": {**good, "parts": [{}]}}
    yield {"message": {**good, "parts": "text"}}
    yield {"message": {**good, "taskId": f"no-such-{number}"}}
    yield {"message": {**good, "contextId": "c" * 1_000}}
    yield {"message": good, "tenant": "somebody"}
    yield {"message": good, "configuration": {"acceptedOutputModes": ["image/png"]}}
    yield {"message": good, "configuration": {"historyLength": -1}}
    for url in (
        "http://127.0.0.1:22/",
        "file:///etc/passwd",
        "https://[::1]/",
        "gopher://x/",
        "http://user:p@x.org/",
    ):
        yield {"message": good, "configuration": {"taskPushNotificationConfig": {"url": url}}}
    yield {"message": [good]}
    yield {"message": {**good, "extra": {"a": [number] * 100}, "parts": [{"text": {"no": "text"}}]}}


def _requests() -> Iterator[tuple[str, bytes]]:
    """Path and body: each malformed line once, each message sent and streamed, by both bindings."""
    for number in range(16):
        yield "/rpc", malformed(number)
    for number in range(2):
        for params in _messages(number):
            method = ("SendMessage", "SendStreamingMessage")[number % 2]
            wrapped = {"jsonrpc": "2.0", "id": number, "method": method, "params": params}
            yield "/rpc", json.dumps(wrapped).encode()
            yield ("/v1/message:send", "/v1/message:stream")[number % 2], json.dumps(params).encode()
    for method in ("GetTask", "CancelTask", "SubscribeToTask", "NoSuchMethod", "__init__", ""):
        others: list[Any] = [{}, {"id": "no-such"}, {"id": 5}, [], {"id": "../../etc"}]
        for params in others:
            yield "/rpc", json.dumps({"jsonrpc": "2.0", "id": 1, "method": method, "params": params}).encode()
    yield "/rpc", b"[" * 100_000
    yield (
        "/rpc",
        b'{"jsonrpc":"2.0","id":1,"method":"ListTasks","params":' + b'{"a":' * 50_000 + b"1" + b"}" * 50_001,
    )
    yield "/v1/message:send", b"[" * 100_000
    yield "/v1/message:send", b""
    yield "/rpc", b"x" * ((1 << 20) + 1)


async def test_what_is_no_message_begins_nothing(tmp_path: Path) -> None:
    """Each is answered with an error that says something; the board stays empty, and good ones work afterwards."""
    sent = 0
    async with hosted(tmp_path) as place, started(place) as served, served.http() as http, books(place) as office:
        for path, body in _requests():
            answer = await http.post(served.url + path, content=body, headers=VERSION)
            said: dict[str, Any] = answer.json()
            error: Any = said.get("error")
            assert error, (path, body[:200], answer.text[:300])
            text: str = error if isinstance(error, str) else error["message"]
            assert text.strip(), answer.text
            assert "Traceback" not in answer.text and str(place.root) not in answer.text
            assert answer.status_code < 500
            assert isinstance(error, str) or error["code"] != -32603, (path, body[:200], answer.text[:300])
            sent += 1
        assert sent > 150
        assert await office.board.list() == ()
        assert not list(place.home.glob("tasks/*"))
        async with client_of(served) as client:
            answers = [one async for one in client.send_message(message("make good.txt", "m1"))]
        assert answers[-1].HasField("status_update")
