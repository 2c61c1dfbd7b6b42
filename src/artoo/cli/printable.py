"""Text from models, tools and files made safe to show: it may hold sequences that would command a terminal."""

from __future__ import annotations

import sys
import unicodedata

_KEPT = frozenset("\n\t")
_HIDDEN_CATEGORIES = frozenset({"Cc", "Cf", "Cs", "Co"})
_JOINERS = frozenset("\u200c\u200d")


def printable(text: str) -> str:
    """`text` with control, direction and other invisible characters written out as `\\x1b` or `\\u202e`."""
    if text.isascii() and text.isprintable():
        return text
    return "".join(character if _harmless(character) else _written(character) for character in text)


def one_line(text: str) -> str:
    """`text` safe to show on one line: runs of white space become one space."""
    return printable(" ".join(text.split()))


def show(text: str) -> None:
    """Prints `text` on standard output, made safe when that is a terminal.

    One write, so that an interrupt leaves all of it or nothing; what the encoding cannot show becomes `?`.
    """
    show_as_it_is(printable(text) if sys.stdout.isatty() else text)


def show_as_it_is(text: str) -> None:
    """As `show`, for text that is safe already and may hold artoo's own colours."""
    encoding = sys.stdout.encoding or "utf-8"
    sys.stdout.write(text.encode(encoding, "replace").decode(encoding) + "\n")
    sys.stdout.flush()


def _harmless(character: str) -> bool:
    if character in _KEPT or character in _JOINERS:
        return True
    return unicodedata.category(character) not in _HIDDEN_CATEGORIES


def _written(character: str) -> str:
    if character == "\r":
        return ""
    number = ord(character)
    return f"\\x{number:02x}" if number < 0x100 else f"\\u{number:04x}"
