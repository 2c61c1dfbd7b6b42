"""Retry requests, with default attempts and time, jitter, Retry-After, and transient HTTP statuses.

The package `stamina` is not used, for three reasons. Its waits and its time limit use only the machine's clock,
which tests and replay could not replace. It adds no jitter to a wait that a server requests. It does not limit such
a wait.
"""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from email.utils import parsedate_to_datetime
from random import Random

from artoo.contracts.errors import ModelUnreachable
from artoo.llm.completion import error_code, status_of
from artoo.llm.transport import TransportReply
from artoo.ports.clock import Clock

logger = logging.getLogger(__name__)

# The user is informed of a wait that is longer than this number of seconds.
_LONG_SECONDS = 15.0
_MOST_SECONDS = 1e9
_TRANSIENT = frozenset({408, 409, 425, 429})
_HOPELESS_CODES = frozenset({"insufficient_quota", "billing_hard_limit_reached"})


@dataclass(frozen=True, slots=True)
class RetryPolicy:
    """The settings for retries. At most `attempts` requests are made within `total` seconds, each with a limit of
    `per_call` seconds. If `per_call` is larger than `total`, the first request may still take all of `per_call`.

    Waits double from `first_wait` up to `longest_wait`. Each is a random time between half of this value and all of
    it (jitter). A wait that the server requests replaces this one. If the wait would end after `total`, no further
    request is sent.
    """

    attempts: int = 4
    total: float = 600.0
    per_call: float = 300.0
    first_wait: float = 0.5
    longest_wait: float = 15.0


class Retrier:
    """Repeats a request until a reply arrives that is final. `clock` is used for the waits, and `random` for the
    jitter."""

    def __init__(self, policy: RetryPolicy, clock: Clock, random: Random) -> None:
        self._policy = policy
        self._clock = clock
        self._random = random

    async def send(self, post: Callable[[float], Awaitable[TransportReply]]) -> TransportReply:
        """Send a request until a reply arrives that is not transient. If the attempts or the time are used up,
        return the last reply.

        `post` is called with its time limit in seconds. Raises ModelUnreachable if the last attempt got no reply.
        """
        policy = self._policy
        end = self._clock.monotonic() + max(policy.total, policy.per_call)
        for attempt in range(1, policy.attempts + 1):
            left = end - self._clock.monotonic()
            last = attempt == policy.attempts
            try:
                reply = await post(min(policy.per_call, max(left, 0.001)))
            except ModelUnreachable as error:
                if last or not error.transient or not await self._wait(attempt, None, end):
                    raise
                continue
            if last or not is_transient(reply) or not await self._wait(attempt, reply, end):
                return reply
        raise AssertionError("unreachable: the last attempt returns or raises")

    async def _wait(self, attempt: int, reply: TransportReply | None, end: float) -> bool:
        seconds = self._seconds(attempt, reply)
        if self._clock.monotonic() + seconds >= end:
            return False
        if seconds > _LONG_SECONDS:
            logger.warning("the model's server asks to wait; it is asked again in %.0f s", seconds)
        await self._clock.sleep(seconds)
        return True

    def _seconds(self, attempt: int, reply: TransportReply | None) -> float:
        policy = self._policy
        own = min(policy.longest_wait, policy.first_wait * 2 ** (attempt - 1))
        own *= self._random.uniform(0.5, 1.0)
        asked = asked_wait(reply, self._clock.now()) if reply is not None else None
        if asked is None:
            return own
        # A request is not sent earlier than the server asked for, because many servers count early requests. It is
        # sent a little later, so that parallel calls do not come at the same moment.
        return asked + min(own, 0.5)

    def comes_back(self, reply: TransportReply) -> str:
        """Describe for a user when the server wants to be asked again. Return "" if it does not say so."""
        now = self._clock.now()
        asked = asked_wait(reply, now) if is_transient(reply) else None
        if not asked:
            return ""
        when = now + timedelta(seconds=min(asked, _MOST_SECONDS))
        return f"; it asks to be asked again in {asked:.0f} s, at {when.astimezone(UTC):%Y-%m-%d %H:%M:%S} UTC"


def is_transient(reply: TransportReply) -> bool:
    """Return whether a retry may succeed. It may after the statuses 408, 409, 425, 429 and 5xx except 501, or if
    there is no completion."""
    if reply.completion is not None:
        return False
    status = status_of(reply)
    if status == 200:
        return True
    if error_code(reply) in _HOPELESS_CODES:
        return False
    return status in _TRANSIENT or (status >= 500 and status != 501)


def asked_wait(reply: TransportReply, now: datetime) -> float | None:
    """Return the wait in seconds that a server requests by Retry-After (a number or an HTTP date), or by
    `retry-after-ms`, which some vendors send. Return None if it requests none.
    """
    milliseconds = _number(reply.headers.get("retry-after-ms", ""))
    if milliseconds is not None:
        return milliseconds / 1_000
    value = reply.headers.get("retry-after", "").strip()
    seconds = _number(value)
    if seconds is not None or not value:
        return seconds
    try:
        when = parsedate_to_datetime(value)
        zoned = when if when.tzinfo is not None else when.replace(tzinfo=UTC)
        return max(0.0, (zoned - now).total_seconds())
    except (ValueError, OverflowError):  # no date, or one outside of the calendar
        return None


def _number(text: str) -> float | None:
    try:
        value = float(text)
    except ValueError:
        return None
    return value if 0 <= value < _MOST_SECONDS else None
