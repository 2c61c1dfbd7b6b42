"""Long text page by page, on the person's own terminal: what was shown stays above, in the scrollback."""

from __future__ import annotations

from collections.abc import Sequence

from artoo.cli.display.keyboard import Keyboard
from artoo.cli.display.line_wrap import rows_of
from artoo.cli.display.screen import ERASE_LINE, Screen
from artoo.words.catalogue import Catalogue

_BACK = frozenset(("p", "b", "\x1b[5~", "\x1b[A", "\x1b[D"))
_LEAVE = frozenset(("q", "", "\x04"))
"""Keys (with page up and the arrows). Every other key goes on: nobody is kept in a pager by not knowing it."""

FEWEST_ROWS = 5
"""Rows of a page on the smallest terminal."""


async def page(lines: Sequence[str], screen: Screen, keyboard: Keyboard, words: Catalogue) -> bool:
    """Shows `lines`; in pages when they are longer than the screen. False when the person left before the end.

    A page is written below what is there, so all that was looked at can be scrolled back to.
    """
    if fits(lines, screen) or not screen.redraws:
        screen.say("".join(f"{line}\n" for line in lines))
        return True
    starts, seen_end = [0], False
    with keyboard.keys():
        while True:
            end = _fits(lines, starts[-1], screen)
            screen.say("".join(f"{line}\n" for line in lines[starts[-1] : end]))
            at_end = end >= len(lines)
            seen_end = seen_end or at_end
            key = await _key(lines, end, screen, keyboard, words)
            if key in _BACK and len(starts) > 1:
                starts.pop()
            elif key in _LEAVE or at_end:
                return seen_end
            elif key not in _BACK:
                starts.append(end)


def fits(lines: Sequence[str], screen: Screen) -> bool:
    """Whether all of it can be seen at once, with a line for the question below it."""
    return rows_of(lines, screen.size().columns) < screen.size().lines - 1


async def _key(lines: Sequence[str], end: int, screen: Screen, keyboard: Keyboard, words: Catalogue) -> str:
    """The next key, asked for on a line that is gone afterwards."""
    on, at_end = (
        "-- {number}/{total}  space or n: on, p: back, q: to the end --",
        "-- end  p: back, any other key: go on --",
    )
    prompt = words(at_end if end >= len(lines) else on)
    screen.say(prompt.format(number=f"{end:,}", total=f"{len(lines):,}"))
    key = await keyboard.read()
    screen.say(ERASE_LINE)
    return key


def _fits(lines: Sequence[str], start: int, screen: Screen) -> int:
    """The end of the page that begins at `start`: at least one line, however long it is."""
    size = screen.size()
    room, end = max(FEWEST_ROWS, size.lines - 2), start
    while end < len(lines):
        room -= rows_of(lines[end : end + 1], size.columns)
        if room < 0 and end > start:
            break
        end += 1
    return end
