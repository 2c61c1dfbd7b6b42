"""A diff for people: every line printable, nothing left out."""

from __future__ import annotations

import difflib

from artoo.contracts.changes import is_visible

_MOST_LINES = 1_000


def unified(before: bytes, after: bytes) -> tuple[str, ...]:
    """The lines of a unified diff of two texts, without a head; empty when one is no text or very long."""
    texts = [_lines(before), _lines(after)]
    if texts[0] is None or texts[1] is None:
        return ()
    found = difflib.unified_diff(texts[0], texts[1], lineterm="", n=2)
    return tuple(line for number, line in enumerate(found) if number >= 2)


def plain(text: str) -> str:
    """`text` on one line with everything invisible written out: no name or line can pose as another."""
    return "".join(one if is_visible(one) or one == "\t" else _written(one) for one in text)


def _lines(data: bytes) -> list[str] | None:
    if b"\0" in data:
        return None
    try:
        text = data.decode("utf-8")
    except UnicodeDecodeError:
        return None
    lines = [plain(line) for line in text.split("\n")]
    if lines and not lines[-1]:
        lines.pop()
    elif text:
        lines[-1] += "  (no newline at the end)"
    return lines if len(lines) <= _MOST_LINES else None


def _written(character: str) -> str:
    number = ord(character)
    if number > 0xFFFF:
        return f"\\U{number:08x}"
    return f"\\x{number:02x}" if number < 0x100 else f"\\u{number:04x}"
