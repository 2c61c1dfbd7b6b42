"""A diff for people: every line printable, nothing left out."""

from __future__ import annotations

import difflib

from artoo.contracts.changes import is_visible
from artoo.tools.files.text_files import Text, exact_text
from artoo.words.shown import written

_MOST_LINES = 1_000


def unified(before: bytes, after: bytes) -> tuple[str, ...]:
    """The lines of a unified diff of two texts, without a head; empty when one is no text or very long.

    A first line in brackets says how they are written down, where that is not UTF-8 with LF or has changed.
    """
    old, new = exact_text(before), exact_text(after)
    if old is None or new is None:
        return ()
    strip = not old.mixed and not new.mixed
    was, now = _lines(old, strip=strip), _lines(new, strip=strip)
    if max(len(was), len(now)) > _MOST_LINES:
        return ()
    found = difflib.unified_diff(was, now, lineterm="", n=2)
    return (*_form(old, new), *(line for number, line in enumerate(found) if number >= 2))


def _form(old: Text, new: Text) -> tuple[str, ...]:
    """What the lines do not show of two texts: one of them that is empty is written in no way of its own."""
    if old.text and new.text and old.form != new.form:
        return (f"({_told(old)} before, {_told(new)} now)",)
    form = new.form if new.text else old.form
    return (f"({form})",) if form else ()


def _told(text: Text) -> str:
    return text.form or ("ASCII" if text.text.isascii() else "UTF-8") + " with line ends LF"


def plain(text: str) -> str:
    """`text` on one line with everything invisible written out: no name or line can pose as another."""
    return "".join(one if is_visible(one) or one == "\t" else written(one) for one in text)


def _lines(text: Text, *, strip: bool) -> list[str]:
    """The lines, printable. `strip`: without the CR of line ends, which are told once for all of them."""
    content = text.text.replace("\r\n", "\n") if strip else text.text
    lines = [plain(line) for line in content.split("\n")]
    if not lines[-1]:
        lines.pop()
    else:
        lines[-1] += "  (no newline at the end)"
    return lines
