"""Whether a refusal says that the prompt is longer than the model's window, in any vendor's words (pure)."""

from __future__ import annotations

import re
from typing import NamedTuple

from artoo.llm.completion import error_code, error_of, status_of
from artoo.llm.transport import TransportReply

_CODES = frozenset({"context_length_exceeded", "exceed_context_size_error", "request_too_large"})
_NUMBER = re.compile(r"(?<![\w.])\d{1,3}(?:[,_]\d{3})+(?![\w.]*\d)|(?<![\w.])\d{3,9}(?!\w)")
_LEAST_WINDOW = 512
_FEWEST_BYTES, _MOST_BYTES = 1, 8
"""Bytes of a token: a server's count of our prompt lies between these."""


class Overflow(NamedTuple):
    """The prompt does not fit. `window`: the model's tokens, where the server said how many."""

    window: int | None


def overflow_of(reply: TransportReply, prompt_bytes: int, answer_tokens: int) -> Overflow | None:
    """The overflow that a refusal reports by its status, its code or its numbers; None when it reports none.

    A server that names two numbers, the greater one a plausible count of this request and the smaller one a
    window, has counted the request against the window. Where the prompt alone takes less than half of that, the
    room for the answer is too large, and not the prompt.
    """
    status = status_of(reply)
    if status not in (400, 413, 422) and error_code(reply) not in _CODES:
        return None
    window = _window(error_of(reply), prompt_bytes, answer_tokens)
    if window is not None or status == 413 or error_code(reply) in _CODES:
        return Overflow(window)
    return None


def _window(text: str, prompt_bytes: int, answer_tokens: int) -> int | None:
    numbers = [int(re.sub(r"[,_]", "", found)) for found in _NUMBER.findall(text)]
    parts = {one for one in numbers for other in numbers if one + other in numbers and one + other > one}
    numbers = [number for number in numbers if number not in parts]  # "6105 (5105 in the messages, 1000 …)"
    least, most = prompt_bytes // _MOST_BYTES, prompt_bytes // _FEWEST_BYTES + answer_tokens
    counted = [number for number in numbers if least <= number <= most]
    windows = [
        number
        for number in numbers
        if number >= _LEAST_WINDOW and any(number < count for count in counted) and prompt_bytes // 4 > number // 2
    ]
    return max(windows) if windows else None
