"""Truncate a tool's output to head and tail, by the limits in `contracts/execution.py`; detect binary output.

A mark between head and tail says how much is omitted.
"""

from __future__ import annotations

import re
from itertools import groupby

from artoo.contracts.execution import MOST_OUTPUT_SHOWN, OUTPUT_KEPT
from artoo.ports.sandbox import Captured

MARK_ROOM = 60
"""Number of characters reserved for the mark, so that head, mark and tail together stay within the limit."""
_CHARACTERS_A_TOKEN = 4
_SHARE = 8

_WHOLE_LINE_WINDOW = 200
_BINARY_SHARE = 0.1
_TERMINAL_CODES = re.compile(r"\x1b(?:\[[0-?]*[ -/]*[@-~]|\][^\x07\x1b]*(?:\x07|\x1b\\)?|[@-Z\\-_])")


def without_terminal_codes(text: str) -> str:
    """Remove escape sequences for colours and cursor movements, because they have a meaning only in a terminal."""
    return _TERMINAL_CODES.sub("", text) if "\x1b" in text else text


def room_for_output(window: int) -> int:
    """Return the maximum number of characters of one output for a model with this window (in tokens). It is an
    eighth of the window."""
    return max(OUTPUT_KEPT, min(window * _CHARACTERS_A_TOKEN // _SHARE, MOST_OUTPUT_SHOWN))


def head_tail(text: str, kept: int = OUTPUT_KEPT, read_on: str = "") -> str:
    """Shorten `text` to its beginning and its end with a mark between them, in at most `kept` (>= 2 * MARK_ROOM)
    characters."""
    # The text is shortened between words if possible, because a part of a number would be a wrong number.
    if len(text) <= kept:
        return text
    room = _room(kept, read_on)
    head, tail = _end_whole(text[: room - room // 2]), _start_whole(text[-(room // 2) :])
    return head + _mark(len(text) - len(head) - len(tail), "characters", read_on) + tail


def clip(captured: Captured, kept: int = OUTPUT_KEPT, read_on: str = "") -> tuple[str, bool]:
    """Return a captured stream as text of at most `kept` characters. Also return whether a part of it is missing.

    `read_on` becomes part of the mark. It explains how to read the omitted part. If most of the stream is binary,
    only its size is returned.
    """
    # Binary data decoded as letters could be mistaken for evidence, so lines that are not text are replaced by a
    # description.
    parts = (captured.head, captured.tail) if captured.truncated else (captured.head + captured.tail,)
    told = [_told(part) for part in parts]
    hidden = sum(size for _, size in told)
    if 2 * hidden > len(captured.head) + len(captured.tail):
        return f"(binary output, {captured.total_bytes} bytes, not shown)", True
    if not captured.truncated:
        whole = told[0][0]
        return head_tail(whole, kept, read_on), hidden > 0 or len(whole) > kept
    room = _room(kept, read_on)
    head = _end_whole(told[0][0][: room - room // 2])
    tail = _start_whole(told[1][0][-(room // 2) :])
    shown, there = len(head.encode()) + len(tail.encode()), len(captured.head) + len(captured.tail)
    left_out = captured.total_bytes - min(shown, there)
    return head + _mark(left_out, "bytes", read_on) + tail, True


def _told(sample: bytes) -> tuple[str, int]:
    """Decode a part of a stream. Binary lines are replaced by their number of bytes, and the sum of these numbers
    is returned too."""
    told, hidden = list[str](), 0
    for binary, lines in groupby(sample.split(b"\n"), looks_binary):
        piece = b"\n".join(lines)
        hidden += len(piece) if binary else 0
        told.append(f"({len(piece)} bytes that are no text)" if binary else piece.decode("utf-8", "replace"))
    return "\n".join(told), hidden


def looks_binary(sample: bytes) -> bool:
    """Check whether bytes contain a NUL, or whether more than a tenth of them is not UTF-8. An incomplete character
    at either end does not count."""
    if not sample:
        return False
    if b"\0" in sample:
        return True
    broken = sample.decode("utf-8", "replace").count("\ufffd") - 2
    return broken > _BINARY_SHARE * len(sample)


def _room(kept: int, read_on: str) -> int:
    mark = MARK_ROOM + len(read_on)
    return max(kept, 2 * mark) - mark


def _mark(left_out: int, unit: str, read_on: str) -> str:
    return f"\n[... {left_out} {unit} left out here{read_on and f'; {read_on}'} ...]\n"


def _end_whole(text: str) -> str:
    """Remove an incomplete last line from `text`. If lines are long, remove only the incomplete last word."""
    start = max(0, len(text) - _WHOLE_LINE_WINDOW)
    cut = text.rfind("\n", start)
    if cut < 0:
        cut = text.rfind(" ", start)
    return text[:cut] if cut > 0 else text


def _start_whole(text: str) -> str:
    """Remove an incomplete first line from `text`. If lines are long, remove only the incomplete first word."""
    cut = text.find("\n", 0, _WHOLE_LINE_WINDOW)
    if cut < 0:
        cut = text.find(" ", 0, _WHOLE_LINE_WINDOW)
    return text[cut + 1 :] if cut >= 0 else text
