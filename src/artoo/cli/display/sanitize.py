"""Text from models, tools and files on standard output and on a terminal's lines (`artoo.words.shown`)."""

from __future__ import annotations

import json
import sys

from artoo.contracts.shortened import shortened
from artoo.words.shown import printable

__all__ = ["asked_line", "one_line", "print_json", "printable", "show", "show_as_it_is"]

_ASKED = 300
"""Characters."""


def one_line(text: str) -> str:
    """Make `text` safe to show on one line: runs of white space become one space."""
    return printable(" ".join(text.split()))


def asked_line(request: str) -> str:
    """A request that names its task, on one line: of a pasted page the beginning, or it would push off the screen
    what is decided about; `artoo log show` has all of it.
    """
    return shortened(one_line(request), _ASKED)


def show(text: str) -> None:
    """Prints `text` on standard output, made safe when that is a terminal.

    One write, so that an interrupt leaves all of it or nothing; what the encoding cannot show becomes `?`.
    """
    show_as_it_is(printable(text) if sys.stdout.isatty() else text)


def show_as_it_is(text: str) -> None:
    """Print text that is safe already and may have artoo's own colours, like `show`."""
    encoding = sys.stdout.encoding or "utf-8"
    sys.stdout.write(text.encode(encoding, "replace").decode(encoding) + "\n")
    sys.stdout.flush()


def print_json(found: object) -> None:
    """Print one JSON value: plain values, contracts, dataclasses, moments and paths, nested in any way."""
    import pydantic_core

    plain = pydantic_core.to_jsonable_python(found, by_alias=False)
    show(json.dumps(plain, ensure_ascii=False, indent=2))
