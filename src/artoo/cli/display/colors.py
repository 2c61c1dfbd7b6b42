"""The colours by meaning as SGR codes, and the cases without colour (`NO_COLOR`, no terminal).

Each colour comes together with a word or a sign that has the same meaning.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import TextIO


class Tone(StrEnum):
    """The meaning of a colour. Its value is the SGR code (ECMA-48) of the colour, which every terminal supports."""

    HEAD = "1"
    DANGER = "1;31"
    LOST = "31"
    MADE = "32"
    WAITS = "33"
    PLACE = "36"
    QUIET = "2"


@dataclass(frozen=True, slots=True)
class Paint:
    """Colours text, or leaves it unchanged if colours are off."""

    colours: bool = False

    def __call__(self, text: str, tone: Tone) -> str:
        """Return `text` in the colour of a tone. The text must be safe to print, because it is not escaped here."""
        return f"\x1b[{tone.value}m{text}\x1b[0m" if self.colours and text else text


def is_plain(stream: TextIO, environ: Mapping[str, str]) -> bool:
    """Return whether colours and redrawing are not wanted or not possible."""
    dumb = environ.get("TERM", "").lower() in ("", "dumb", "unknown")
    return bool(environ.get("NO_COLOR")) or dumb or not stream.isatty()
