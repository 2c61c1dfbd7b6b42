"""The floor: ready-made requests over blocking sockets. What a peer takes above it is its own."""

from __future__ import annotations

import asyncio
import json
import selectors
import socket
import sys
from urllib.parse import urlsplit

import job

_CHAIN = ("TaskSpec", "Plan", "ExecutorStep", "ExecutorStep", "ValidationReport", "MergeReport")
_LENGTH = b"content-length:"


class Wire:
    """Connections that stay open, and requests as long as the other peers'."""

    def __init__(self, base_url: str) -> None:
        url = urlsplit(base_url)
        self._address = (str(url.hostname), url.port or 80)
        self._head = f"POST {url.path}/chat/completions HTTP/1.1\r\nHost: {url.netloc}\r\n"
        self._connections: list[socket.socket] = []
        self._chain = [self._request(stage, job.GOAL) for stage in _CHAIN]
        self._work = self._request("ExecutorStep", "Look up part 1.")
        self._review = self._request("ValidationReport", f"Claim: {job.FACT}\nEvidence: {job.FACT}")

    async def chain(self) -> str:
        """Six requests, one after the other."""
        (connection,) = self._open(1)
        return "".join([_exchange(connection, request) for request in self._chain])

    async def fan(self, parts: int) -> str:
        """A plan, `parts` times work and review at once, each pair on a connection of its own, a merge."""
        connections = self._open(parts)
        plan = self._request("Plan", job.fan_goal(parts))
        merge = self._request("MergeReport", f"{job.FACT}\n" * parts)
        _exchange(connections[0], plan)
        done: list[str] = []
        with selectors.DefaultSelector() as ready:
            for connection in connections:
                ready.register(connection, selectors.EVENT_READ, (connection, [self._review]))
                connection.sendall(self._work)
            while len(done) < 2 * parts:
                for key, _ in ready.select():
                    connection, next_ones = key.data
                    done.append(_answer(connection))
                    if next_ones:
                        connection.sendall(next_ones.pop())
        _exchange(connections[0], merge)
        return "".join(done)

    def _open(self, count: int) -> list[socket.socket]:
        while len(self._connections) < count:
            connection = socket.create_connection(self._address)
            connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            self._connections.append(connection)
        return self._connections[:count]

    def _request(self, stage: str, text: str) -> bytes:
        form = {"response_format": job.schema_format(stage)} if stage in job.SCHEMAS else {}
        body = json.dumps({"model": job.MODEL, "messages": job.messages(stage, text[:4_000]), **form}).encode()
        return f"{self._head}Content-Type: application/json\r\nContent-Length: {len(body)}\r\n\r\n".encode() + body


def _exchange(connection: socket.socket, request: bytes) -> str:
    connection.sendall(request)
    return _answer(connection)


def _answer(connection: socket.socket) -> str:
    """One answer, whole; a connection carries one request at a time."""
    seen = b""
    while True:
        more = connection.recv(65_536)
        if not more:
            raise SystemExit("the mock server closed a connection")
        seen += more
        head, end, body = seen.partition(b"\r\n\r\n")
        if end and len(body) >= int(head.lower().partition(_LENGTH)[2].partition(b"\r\n")[0]):
            return body.decode()


async def main(base_url: str) -> None:
    """Takes orders; nothing else runs in this process, so that it may block."""
    wire = Wire(base_url)
    await job.take_orders(wire.chain, wire.fan, job.own_output())


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1]))
