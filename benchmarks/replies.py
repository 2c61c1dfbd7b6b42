"""A proxy before a model server that answers the same question with the same reply, so that runs can be compared.

Two runs that differ in one thing get the same sampled reply wherever they ask the same: a difference between
them comes from that one thing (common random numbers). A reply is kept on disk under the task, the request's
path and body, and how often the task had asked exactly this before; only what is not there reaches the server.
"""

from __future__ import annotations

import hashlib
import http.client
import json
import sqlite3
import threading
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

_SECONDS = 3_600.0
"""How long the server may think about one request."""


@dataclass(frozen=True, slots=True)
class Asked:
    """Which request of a task: `nth` counts the ones before with the same path and body."""

    task: str
    digest: str
    nth: int


@dataclass(frozen=True, slots=True)
class Reply:
    """What a server sent, with status 200."""

    kind: str
    body: bytes

    @property
    def streams(self) -> bool:
        """Whether it is a stream of events."""
        return self.kind.startswith("text/event-stream")

    @property
    def is_whole(self) -> bool:
        """Whether nothing is missing at its end, which no length in front tells of a stream."""
        if self.streams:
            return self.body.rstrip().endswith(b"data: [DONE]")
        try:
            json.loads(self.body)
        except ValueError:
            return False
        return True

    def pieces(self) -> list[bytes]:
        """The body as it came: a stream in its lines, anything else in one."""
        return self.body.splitlines(keepends=True) if self.streams else [self.body]


class Replies:
    """Replies on disk, by what was asked. Safe from several threads."""

    def __init__(self, path: Path) -> None:
        self._lock = threading.Lock()
        self._kept = sqlite3.connect(path, check_same_thread=False)
        self._kept.execute(
            "CREATE TABLE IF NOT EXISTS reply"
            " (task, digest, nth, kind, body, asker, PRIMARY KEY (task, digest, nth))"
        )

    def get(self, asked: Asked) -> Reply | None:
        """The reply that was kept, if one was."""
        with self._lock:
            row = self._kept.execute(
                "SELECT kind, body FROM reply WHERE task = ? AND digest = ? AND nth = ?",
                (asked.task, asked.digest, asked.nth),
            ).fetchone()
        return None if row is None else Reply(str(row[0]), bytes(row[1]))

    def keep(self, asked: Asked, reply: Reply, asker: str) -> None:
        """From now on this is the reply; `asker` is the run that had it made."""
        with self._lock, self._kept:
            self._kept.execute(
                "INSERT OR REPLACE INTO reply VALUES (?, ?, ?, ?, ?, ?)",
                (asked.task, asked.digest, asked.nth, reply.kind, reply.body, asker),
            )

    def made_for(self, asker: str) -> int:
        """How many replies the server made for a run."""
        with self._lock:
            return int(self._kept.execute("SELECT count(*) FROM reply WHERE asker = ?", (asker,)).fetchone()[0])

    def close(self) -> None:
        """Closes the file."""
        self._kept.close()


class Recorder(ThreadingHTTPServer):
    """The proxy. Say what is about to be asked for with `begin`, before anything asks.

    Closing it waits for the replies that are under way.
    """

    def __init__(self, replies: Replies, upstream: str) -> None:
        """`upstream` is HOST:PORT of the model server."""
        super().__init__(("127.0.0.1", 0), _Handler)
        self.replies, self.upstream = replies, upstream
        self._asker = self._task = ""
        self._before: Counter[str] = Counter()
        self._counting = threading.Lock()

    @property
    def address(self) -> str:
        """HOST:PORT of the proxy."""
        return f"127.0.0.1:{self.server_port}"

    def begin(self, asker: str, task: str) -> None:
        """A task begins in the run called `asker`: nothing was asked in it yet."""
        with self._counting:
            self._asker, self._task = asker, task
            self._before.clear()

    def asked(self, path: str, body: bytes) -> tuple[str, Asked]:
        """The run, and which of its requests this is."""
        digest = hashlib.sha256(path.encode() + b"\0" + body).hexdigest()
        with self._counting:
            nth = self._before[digest]
            self._before[digest] += 1
            return self._asker, Asked(self._task, digest, nth)


class _Handler(BaseHTTPRequestHandler):
    server: Recorder
    protocol_version = "HTTP/1.1"

    def log_message(self, *told: object, **more: object) -> None:
        """Says nothing."""

    def do_GET(self) -> None:
        """What a server says of itself is not kept."""
        self._forward(b"")

    def do_POST(self) -> None:
        """A question to the model."""
        body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        asker, asked = self.server.asked(self.path, body)
        reply = self.server.replies.get(asked)
        if reply is not None:
            self._answer(200, reply.kind, reply.pieces())
            return
        reply = self._forward(body)
        if reply is not None and reply.is_whole:
            self.server.replies.keep(asked, reply, asker)

    def _forward(self, body: bytes) -> Reply | None:
        """Passes the server's reply on as it comes; None when the server had something to complain of."""
        upstream = http.client.HTTPConnection(self.server.upstream, timeout=_SECONDS)
        try:
            upstream.request(self.command, self.path, body or None, {"Content-Type": "application/json"})
            response = upstream.getresponse()
            kind = response.getheader("Content-Type") or "application/json"
            whole = self._answer(response.status, kind, response)
        except (OSError, http.client.HTTPException) as error:
            if not self.close_connection:  # nothing was said yet
                self.send_error(502, f"the model server at {self.server.upstream} gave no reply: {error}")
            return None
        finally:
            upstream.close()
        return Reply(kind, whole) if response.status == 200 else None

    def _answer(self, status: int, kind: str, pieces: Iterable[bytes]) -> bytes:
        """Sends pieces as they come, and returns all of them: also when the client did not wait for the end.

        No length is told: the end of the connection is the end of the reply.
        """
        self.close_connection = True
        self.send_response(status)
        self.send_header("Content-Type", kind)
        self.send_header("Connection", "close")
        whole, listens = bytearray(), self._sent(self.end_headers)
        for piece in pieces:
            whole += piece
            listens = listens and self._sent(partial(self.wfile.write, piece))
        return bytes(whole)

    @staticmethod
    def _sent(send: Callable[[], object]) -> bool:
        try:
            send()
        except OSError:
            return False
        return True


@contextmanager
def recording(path: Path, upstream: str) -> Iterator[Recorder]:
    """The proxy, while the block runs; what it keeps stands in the file `path`."""
    replies = Replies(path)
    with Recorder(replies, upstream) as recorder:
        thread = threading.Thread(target=recorder.serve_forever, name="replies", daemon=True)
        thread.start()
        try:
            yield recorder
        finally:
            recorder.shutdown()
            thread.join()
            replies.close()
