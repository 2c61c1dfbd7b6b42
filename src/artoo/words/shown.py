"""Escape invisible and control characters, and format durations and counts with plurals.

Text from models, tools and files could contain control sequences on a terminal. On a web page it could contain
invisible characters or reverse a line.
"""

from __future__ import annotations

import re
import unicodedata
from datetime import UTC, datetime

from artoo.contracts.changes import is_ignorable

_PLAIN = re.compile(r"[\n\t -~]*")
_COLOUR = re.compile(r"\x1b\[[0-9;:]*m")
_HIDDEN_CATEGORIES = frozenset({"Cc", "Cf", "Cs", "Co", "Zl", "Zp"})
_JOINERS = frozenset("\u200c\u200d")
_SELECTORS = ((0x180B, 0x180F), (0xFE00, 0xFE0F), (0xE0100, 0xE01EF))


def printable(text: str) -> str:
    """Return `text` with control, direction and other invisible characters escaped as `\\x1b` or `\\u202e`.

    One joiner or variation selector after a visible character stays, because Persian, emoji and Chinese need it.
    Further joiners and selectors are escaped, because they may hide a message. Carriage returns are removed.
    """
    # This fast path helps, because most texts are plain ASCII, and long outputs are shown often.
    if _PLAIN.fullmatch(text):
        return text
    shown, before = list[str](), ""
    for character in text.replace("\r", ""):
        shown.append(character if _is_shown(character, before) else written(character))
        before = character
    return "".join(shown)


def uncoloured(text: str) -> str:
    """Remove colour codes (ECMA-48, SGR) from a program's output. `printable` escapes other control characters."""
    return _COLOUR.sub("", text)


def written(character: str) -> str:
    """Return a character as an escape such as `\\u202e`. An undecodable byte becomes, for example, `\\xe9`."""
    number = ord(character)
    if 0xDC80 <= number <= 0xDCFF:
        number -= 0xDC00
    if number > 0xFFFF:
        return f"\\U{number:08x}"
    return f"\\x{number:02x}" if number < 0x100 else f"\\u{number:04x}"


def _is_shown(character: str, before: str) -> bool:
    if character in "\n\t":
        return True
    if character in _JOINERS:
        return bool(before) and before not in _JOINERS and (_selects(before) or _is_plain(before))
    return _is_plain(before) if _selects(character) else _is_plain(character)


def _selects(character: str) -> bool:
    return any(first <= ord(character) <= last for first, last in _SELECTORS)


def _is_plain(character: str) -> bool:
    """Check whether a character is visible by itself or a blank."""
    hidden = not character or unicodedata.category(character) in _HIDDEN_CATEGORIES
    return not hidden and not is_ignorable(character)


def plural(number: int, noun: str) -> str:
    """Return `1 path` or `2 paths`, for English sentences."""
    return f"{number:,} {noun}{'s' * (number != 1)}"


def local_time(moment: datetime | float) -> str:
    """Format a time, or the seconds since the epoch, to the minute in the local time zone."""
    local = moment if isinstance(moment, datetime) else datetime.fromtimestamp(moment, UTC)
    return f"{local.astimezone():%Y-%m-%d %H:%M}"


def duration(milliseconds: float, *, whole: bool = False) -> str:
    """Format a duration like `0.4 s`, `12 s`, `3 min 05 s` or `2 h 05 min`. If `whole` is true, omit tenths."""
    seconds = milliseconds / 1000
    if seconds < 9.95 and not whole:
        return f"{seconds:.1f} s"
    if seconds < 59.5:
        return f"{int(seconds) if whole else round(seconds)} s"
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours} h {minutes:02d} min" if hours else f"{minutes} min {rest:02d} s"
