"""Unified diffs for users, with two lines of context, and with invisible characters escaped."""

from __future__ import annotations

import difflib
import re

from artoo.contracts.changes import is_visible
from artoo.tools.files.text_files import Text, exact_text
from artoo.words.shown import written

_MOST_LINES = 10_000
"""Maximum number of lines between the first and the last difference. A comparison of more lines would take too
long."""
_BESIDE = 2
"""Number of lines of context before and after a change."""
_PLACE = re.compile(r"^@@ -(\d+)((?:,\d+)?) \+(\d+)((?:,\d+)?) @@$")


def unified(before: bytes, after: bytes) -> tuple[str, ...]:
    """Return a unified diff of two texts, without a header. Return "" if one of them is not text, or if the changed
    part is too long.

    If the encoding or the line ends have changed, or are not UTF-8 with LF, a first line in brackets describes
    them.
    """
    old, new = exact_text(before), exact_text(after)
    if old is None or new is None:
        return ()
    strip = not old.mixed and not new.mixed
    was, now = _lines(old, strip=strip), _lines(new, strip=strip)
    skipped, was, now = _differing(was, now)
    if max(len(was), len(now)) > _MOST_LINES:
        return ()
    found = difflib.unified_diff(was, now, lineterm="", n=_BESIDE)
    lines = (line for number, line in enumerate(found) if number >= 2)
    return (*_form(old, new), *(_placed(line, skipped) for line in lines))


def _differing(was: list[str], now: list[str]) -> tuple[int, list[str], list[str]]:
    """Return the part of both texts from the first to the last different line, and the number of lines before
    it."""
    most = min(len(was), len(now))
    first = next((at for at in range(most) if was[at] != now[at]), most)
    rest = most - first
    last = next((at for at in range(rest) if was[-1 - at] != now[-1 - at]), rest)
    skipped, end = max(0, first - _BESIDE), max(0, last - _BESIDE)
    return skipped, was[skipped : len(was) - end], now[skipped : len(now) - end]


def _placed(line: str, skipped: int) -> str:
    """Change the line numbers in a line of the diff, so that they count from the beginning of the file."""
    found = _PLACE.match(line)
    if found is None or not skipped:
        return line
    old, old_count, new, new_count = found.groups()
    return f"@@ -{int(old) + skipped}{old_count} +{int(new) + skipped}{new_count} @@"


def _form(old: Text, new: Text) -> tuple[str, ...]:
    """Describe encoding and line ends, which the lines of a diff do not show. An empty text has no encoding of its
    own."""
    if old.text and new.text and old.form != new.form:
        return (f"({_told(old)} before, {_told(new)} now)",)
    form = new.form if new.text else old.form
    return (f"({form})",) if form else ()


def _told(text: Text) -> str:
    return text.form or ("ASCII" if text.text.isascii() else "UTF-8") + " with line ends LF"


def plain(text: str) -> str:
    """Escape the invisible characters in `text`, so that no name or line can look like another one."""
    return "".join(one if is_visible(one) or one == "\t" else written(one) for one in text)


def _lines(text: Text, *, strip: bool) -> list[str]:
    """Return the printable lines. `strip`: true to leave out the CR of line ends, because one remark reports it for
    all lines."""
    content = text.text.replace("\r\n", "\n") if strip else text.text
    lines = [plain(line) for line in content.split("\n")]
    if not lines[-1]:
        lines.pop()
    else:
        lines[-1] += "  (no newline at the end)"
    return lines
