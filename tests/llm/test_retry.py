from __future__ import annotations

from random import Random

import pytest

from artoo.contracts.errors import ModelUnreachable
from artoo.llm.retry import Retrier, RetryPolicy, is_transient
from artoo.llm.transport import Json, TransportReply
from artoo.llm.wires import chat
from artoo.testing import FakeClock

OK: Json = {"choices": [{"message": {"content": "hi"}, "finish_reason": "stop"}]}


def reply(status: int, body: Json = None, **headers: str) -> TransportReply:
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    return chat.WIRE.read(TransportReply(status, named, OK if status == 200 and body is None else body))


class Server:
    """Answers from a list; an exception in it is raised."""

    def __init__(self, *answers: TransportReply | ModelUnreachable) -> None:
        self.answers = list(answers)
        self.timeouts: list[float] = []
        self.counted = 0

    async def post(self, timeout: float) -> TransportReply:
        self.counted += 1
        self.timeouts.append(timeout)
        answer = self.answers.pop(0)
        if isinstance(answer, ModelUnreachable):
            raise answer
        return answer


def lost() -> ModelUnreachable:
    return ModelUnreachable("lost", transient=True)


def test_hidden_and_hopeless_errors():
    """A gateway's error in a 200 counts as what it says; a spent quota does not come back by waiting."""
    assert is_transient(reply(200, {"error": {"code": 429, "message": "slow down"}}))
    assert is_transient(reply(200, {"error": "something"}))
    assert not is_transient(reply(200, {"error": {"code": "401"}}))
    assert is_transient(reply(200, {}))
    assert not is_transient(reply(429, {"error": {"code": "insufficient_quota"}}))


async def test_waits_grow_with_jitter():
    """Each wait lies in the upper half of a span that doubles up to its bound."""
    clock, server = FakeClock(auto_advance=True), Server(*[reply(500)] * 6, reply(200))
    policy = RetryPolicy(attempts=7, first_wait=1, longest_wait=4)
    result = await Retrier(policy, clock, Random(1)).send(server.post)
    assert (result.status, server.counted) == (200, 7)
    for waited, span in zip(clock.slept, [1, 2, 4, 4, 4, 4], strict=True):
        assert span / 2 <= waited <= span


@pytest.mark.parametrize(
    ("headers", "least", "most"),
    [
        ({"retry_after": "20"}, 20, 20.5),
        ({"retry_after": "Thu, 01 Jan 2026 00:00:20 GMT"}, 20, 20.5),
        ({"retry_after": "300"}, 300, 300.5),
        ({"retry_after": "Thu, 01 Jan 2026 00:09:00 GMT"}, 540, 540.5),
        ({"retry_after": "Wed, 31 Dec 2025 09:00:00 GMT"}, 0, 0.5),
        ({"retry_after_ms": "250", "retry_after": "9"}, 0.25, 0.75),
        ({"retry_after": "soon"}, 0.25, 0.5),
        ({"retry_after": "Fri, 31 Dec 9999 23:59:59 -9959"}, 0.25, 0.5),
        ({"retry_after": "-5"}, 0.25, 0.5),
        ({}, 0.25, 0.5),
    ],
)
async def test_retry_after_is_honoured(headers: dict[str, str], least: float, most: float):
    """Seconds, dates and milliseconds: never earlier than asked, a little later, however long that is."""
    clock, server = FakeClock(auto_advance=True), Server(reply(429, None, **headers), reply(200))
    await Retrier(RetryPolicy(), clock, Random(2)).send(server.post)
    assert least <= clock.slept[0] <= most


@pytest.mark.parametrize("asked", ["3600", "Thu, 01 Jan 2026 01:00:00 GMT"])
async def test_what_would_come_too_late_is_not_waited_for(asked: str):
    """A wait beyond the time that there is ends it at once, and the error can say when to come back."""
    clock, server = FakeClock(auto_advance=True), Server(reply(429, None, retry_after=asked), reply(200))
    retrier = Retrier(RetryPolicy(), clock, Random(2))
    result = await retrier.send(server.post)
    assert (result.status, server.counted, clock.slept) == (429, 1, [])
    assert retrier.comes_back(result).endswith("in 3600 s, at 2026-01-01 01:00:00 UTC")
    assert retrier.comes_back(reply(429)) == retrier.comes_back(reply(200, None, retry_after=asked)) == ""


async def test_attempts_are_bounded():
    """The last reply, or the last error, is what comes back."""
    clock, server = FakeClock(auto_advance=True), Server(lost(), reply(500), reply(503))
    result = await Retrier(RetryPolicy(attempts=3), clock, Random(1)).send(server.post)
    assert (result.status, server.counted) == (503, 3)
    server = Server(reply(500), lost())
    with pytest.raises(ModelUnreachable, match="lost"):
        await Retrier(RetryPolicy(attempts=2), clock, Random(1)).send(server.post)


async def test_total_time_is_bounded():
    """No wait starts that would end after the total time, and no call may take longer than what is left."""
    clock, server = FakeClock(auto_advance=True), Server(*[reply(429, None, retry_after="40")] * 5)
    policy = RetryPolicy(attempts=5, total=100, per_call=90)
    result = await Retrier(policy, clock, Random(1)).send(server.post)
    assert (result.status, server.counted) == (429, 3)
    assert server.timeouts[0] == 90
    assert server.timeouts[2] < 20
