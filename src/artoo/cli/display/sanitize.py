"""Safe printing on standard output of text and JSON from models, tools and files.

See `artoo.words.shown`.
"""

from __future__ import annotations

import json
import sys

from artoo.contracts.shortened import shortened
from artoo.words.shown import printable

__all__ = ["asked_line", "one_line", "print_json", "printable", "show", "show_as_it_is"]

_ASKED = 300
"""The most characters of a request that names its task."""


def one_line(text: str) -> str:
    """Make `text` safe to show on one line. Each run of white space becomes one space."""
    return printable(" ".join(text.split()))


def asked_line(request: str) -> str:
    """Return a request, which names its task, on one line. A long request is shortened, because it would push other
    text off the screen. `artoo log show` prints all of it.
    """
    return shortened(one_line(request), _ASKED)


def show(text: str) -> None:
    """Print `text` on standard output. On a terminal, invisible characters are escaped.

    The text is written at once, so that an interrupt leaves all or nothing. Unencodable characters become `?`.
    """
    show_as_it_is(printable(text) if sys.stdout.isatty() else text)


def show_as_it_is(text: str) -> None:
    """Print text like `show`, but unchanged, because it is safe already and may contain artoo's own colours."""
    encoding = sys.stdout.encoding or "utf-8"
    sys.stdout.write(text.encode(encoding, "replace").decode(encoding) + "\n")
    sys.stdout.flush()


def print_json(found: object) -> None:
    """Print a value as JSON. It may contain plain values, contracts, dataclasses, times and paths."""
    import pydantic_core

    plain = pydantic_core.to_jsonable_python(found, by_alias=False)
    show(json.dumps(plain, ensure_ascii=False, indent=2))
