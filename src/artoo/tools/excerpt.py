"""What of a long file is shown: whole lines, and the numbers of the others, so that they can be asked for."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence
from io import StringIO
from itertools import accumulate

from artoo.contracts.execution import OUTPUT_KEPT
from artoo.tools.output import head_tail

_MARK_ROOM = 160
"""Characters set aside for the line that says what is left out."""
_END_ROOM = (OUTPUT_KEPT - _MARK_ROOM) // 2


def beginning_and_end(text: str, kept: int) -> str:
    """A text of at most `kept` characters; of a longer one, its first and last lines in OUTPUT_KEPT of them.

    Such a look says what kind of file it is, and costs little; `kept` characters of lines may be asked for then.
    """
    if len(text) <= kept:
        return text
    lines = _lines(text)
    first, last = _fitting(lines, _END_ROOM), _fitting(lines[::-1], _END_ROOM)
    if not first:
        return head_tail(text)
    end = len(lines) - last
    mark = _mark(f"lines {first + 1}-{end} of {len(lines)}", first, _fitting(lines[first:end], kept))
    return "".join((*lines[:first], mark, *lines[end:]))


def two_ends(head: str, tail: str, size: int, kept: int) -> str:
    """The first lines of `head` and the last ones of `tail`, of a file of `size` bytes that was not read whole."""
    lines, others = _lines(head), _lines(tail)
    first, last = _fitting(lines, _END_ROOM), _fitting(others[::-1], _END_ROOM)
    if not first:
        between = f"\n[... the middle of {size} bytes is left out ...]\n"
        return f"{head_tail(head, _END_ROOM)}{between}{head_tail(tail, _END_ROOM)}"
    left_out = f"the lines from {first + 1} to the last {last} of {size} bytes"
    mark = _mark(left_out, first, _fitting(lines[first:], kept))
    return "".join((*lines[:first], mark, *others[len(others) - last :]))


def beginning(text: str, number: int, kept: int) -> str:
    """A text whose first line has this number, or its first lines, in at most `kept` characters."""
    if len(text) <= kept:
        return text
    lines = _lines(text)
    shown = _fitting(lines, kept - _MARK_ROOM)
    if not shown:
        return head_tail(text, kept)
    before, last = number + shown - 1, number + len(lines) - 1
    return "".join((*lines[:shown], _mark(f"lines {before + 1}-{last}", before, shown)))


def _lines(text: str) -> list[str]:
    """With their ends; only line feeds end one, as where lines are counted in bytes."""
    return list(StringIO(text, newline="\n"))


def _fitting(lines: Sequence[str], room: int) -> int:
    """How many of the first lines are at most so many characters together."""
    return bisect_right(list(accumulate(map(len, lines))), room)


def _mark(left_out: str, before: int, fitting: int) -> str:
    """Names so many lines as will be shown at once, from the one after `before` on."""
    more = f"{before + 1}-{before + max(1, fitting)}"
    return f"[... {left_out} are left out here; ask for more with lines: {more} ...]\n"
