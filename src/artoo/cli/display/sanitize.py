"""Safe printing on standard output of text and JSON from models, tools and files.

The characters that are escaped are defined in `artoo.words.shown`.
"""

from __future__ import annotations

import json
import sys

from artoo.contracts.text import shortened
from artoo.words.shown import printable

__all__ = ["asked_line", "one_line", "print_json", "printable", "show", "show_as_it_is"]

_ASKED = 300
"""Maximum number of characters of a request that is shown to identify a task."""


def one_line(text: str) -> str:
    """Return `text` so that it can be shown safely in one line. Each run of white space becomes one space."""
    return printable(" ".join(text.split()))


def asked_line(request: str) -> str:
    """Return a request in one line, by which a user recognises the task. A long request is shortened, because it
    would move other text off the screen. `artoo log show` prints all of it.
    """
    return shortened(one_line(request), _ASKED)


def show(text: str) -> None:
    """Print `text` on standard output. On a terminal, invisible characters are escaped.

    The text is written at once. If the process is interrupted, all of it is printed or nothing. Characters that
    cannot be encoded become `?`.
    """
    show_as_it_is(printable(text) if sys.stdout.isatty() else text)


def show_as_it_is(text: str) -> None:
    """Print text like `show`, but without escaping. The text is safe already and may contain artoo's own
    colours."""
    encoding = sys.stdout.encoding or "utf-8"
    sys.stdout.write(text.encode(encoding, "replace").decode(encoding) + "\n")
    sys.stdout.flush()


def print_json(found: object) -> None:
    """Print a value as JSON. It may contain plain values, contracts, dataclasses, times and paths."""
    import pydantic_core

    plain = pydantic_core.to_jsonable_python(found, by_alias=False)
    show(json.dumps(plain, ensure_ascii=False, indent=2))
