"""The proxy that makes runs comparable: the same question, the same reply; only what is new reaches the server."""

from __future__ import annotations

import http.client
import json
import threading
from collections.abc import Iterator
from contextlib import ExitStack
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from types import ModuleType
from typing import cast

import pytest
from scripts import script

QUESTION = b'{"messages": []}'


class Model(ThreadingHTTPServer):
    """Answers with the number of the question; `mode` is how."""

    daemon_threads = True

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _Answering)
        self.questions: list[bytes] = []
        self.mode = "json"
        self.go_on = threading.Event()


class _Answering(BaseHTTPRequestHandler):
    def log_message(self, *told: object, **more: object) -> None:
        """Says nothing."""

    def do_POST(self) -> None:
        model = cast("Model", self.server)
        model.questions.append(self.rfile.read(int(self.headers["Content-Length"])))
        number = len(model.questions)
        match model.mode:
            case "waiting stream":
                self._answer(200, "text/event-stream", [b'data: {"n": %d}\n\n' % number])
                model.go_on.wait(30)
                self.wfile.write(b"data: [DONE]\n\n")
            case "cut stream":
                self._answer(200, "text/event-stream", [b'data: {"n": %d}\n\n' % number])
            case "refusal":
                self._answer(429, "application/json", [b'{"error": "later"}'])
            case _:
                usage = {"prompt_tokens": 9, "prompt_tokens_details": {"cached_tokens": 4}}
                self._answer(200, "application/json", [json.dumps({"n": number, "usage": usage}).encode()])

    def _answer(self, status: int, kind: str, pieces: list[bytes]) -> None:
        self.send_response(status)
        self.send_header("Content-Type", kind)
        self.end_headers()
        for piece in pieces:
            self.wfile.write(piece)


@pytest.fixture
def replies(monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    return script("replies", monkeypatch)


@pytest.fixture
def model() -> Iterator[Model]:
    with Model() as server:
        thread = threading.Thread(target=server.serve_forever, args=(0.01,))
        thread.start()
        yield server
        server.go_on.set()
        server.shutdown()
        thread.join()


class Proxy:
    """The proxy of one process after the other, on the same file."""

    def __init__(self, replies: ModuleType, path: Path, model: Model) -> None:
        self._replies, self._path, self._upstream = replies, path, f"127.0.0.1:{model.server_port}"
        self._open = ExitStack()
        self.restart()

    def restart(self) -> None:
        self.close()
        self.recorder = self._open.enter_context(self._replies.recording(self._path, self._upstream))

    def close(self) -> None:
        self._open.close()

    def ask(self, body: bytes = QUESTION, *, method: str = "POST", path: str = "/v1/chat/completions") -> bytes:
        return self.response(body, method, path)[1]

    def response(
        self, body: bytes = QUESTION, method: str = "POST", path: str = "/v1/chat/completions"
    ) -> tuple[http.client.HTTPResponse, bytes]:
        connection = http.client.HTTPConnection(self.recorder.address, timeout=30)
        try:
            connection.request(method, path, body or None)
            response = connection.getresponse()
            return response, response.read()
        finally:
            connection.close()


@pytest.fixture
def proxy(replies: ModuleType, model: Model, tmp_path: Path) -> Iterator[Proxy]:
    proxy = Proxy(replies, tmp_path / "replies.sqlite", model)
    yield proxy
    proxy.close()


def test_another_run_gets_the_same_replies_in_their_order(proxy: Proxy, model: Model) -> None:
    """The nth time that a task asks the same it gets the nth reply, with its usage; a third time is new."""
    proxy.recorder.begin("one", "a1")
    first = [proxy.ask(), proxy.ask()]
    proxy.recorder.begin("other", "a1")
    again = [proxy.ask(), proxy.ask(), proxy.ask()]
    assert again[:2] == first and first[0] != first[1] and b'"cached_tokens": 4' in first[0]
    assert json.loads(again[2])["n"] == 3 == len(model.questions)
    assert (proxy.recorder.replies.made_for("one"), proxy.recorder.replies.made_for("other")) == (2, 1)


def test_what_another_task_or_body_or_path_asks_is_new(proxy: Proxy, model: Model) -> None:
    """A reply belongs to one task and one question."""
    proxy.recorder.begin("one", "a1")
    proxy.ask()
    proxy.ask(b'{"messages": [ ]}')
    proxy.ask(path="/v1/completions")
    proxy.recorder.begin("one", "a2")
    proxy.ask()
    assert len(model.questions) == 4


def test_replies_outlive_the_process(proxy: Proxy, model: Model) -> None:
    """A series that was cut off goes on with what it had."""
    proxy.recorder.begin("one", "a1")
    first = proxy.ask()
    proxy.restart()
    proxy.recorder.begin("one", "a1")
    assert proxy.ask() == first and len(model.questions) == 1


def test_a_stream_is_passed_on_as_it_comes(proxy: Proxy, model: Model) -> None:
    """Its first event is there before its last was made."""
    model.mode = "waiting stream"
    proxy.recorder.begin("one", "a1")
    connection = http.client.HTTPConnection(proxy.recorder.address, timeout=30)
    connection.request("POST", "/v1/chat/completions", QUESTION)
    response = connection.getresponse()
    assert response.readline() == b'data: {"n": 1}\n' and not model.go_on.is_set()
    model.go_on.set()
    assert response.read().endswith(b"data: [DONE]\n\n")
    connection.close()


@pytest.mark.parametrize("mode", ["cut stream", "refusal"])
def test_what_is_no_whole_answer_is_not_kept(proxy: Proxy, model: Model, mode: str) -> None:
    """A reply without its end, or a complaint, reaches the one that asked and nobody else."""
    model.mode = mode
    proxy.recorder.begin("one", "a1")
    assert proxy.ask()
    model.mode = "json"
    proxy.recorder.begin("one", "a1")
    assert json.loads(proxy.ask())["n"] == 2
