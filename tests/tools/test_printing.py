"""What is told of a command while it runs."""

from __future__ import annotations

import asyncio

from artoo.ports.printing import Printed
from artoo.redaction import Redactor
from artoo.tools.core.live_output import EVERY_SECONDS, LINES_TOLD, LONGEST_LINE, Printing

SECRET = "hunter2-of-the-test"


async def told_of(*pieces: bytes) -> list[tuple[str, ...]]:
    """What is told of a command that writes these pieces at once, and runs on until it was told."""
    told: list[tuple[str, ...]] = []
    first = asyncio.Event()

    def tell(printed: Printed) -> None:
        assert (printed.task_id, printed.act) == ("task", "1/1")
        told.append(printed.lines)
        first.set()

    with Printing("task", tell, Redactor([SECRET]).text).of("1/1") as heard:
        for piece in pieces:
            heard(piece)
        await asyncio.wait_for(first.wait(), 30)
    return told


async def test_many_pieces_are_told_at_once() -> None:
    """A thousand pieces within a moment are one report: the last lines, also one that is not ended."""
    pieces = [b"line %d\n" % number for number in range(1000)]
    [lines] = await told_of(*pieces, b"and no end")
    assert lines == (*(f"line {number}" for number in range(1001 - LINES_TOLD, 1000)), "and no end")


async def test_nothing_is_told_after_the_end() -> None:
    """A command that ends before its report is due is told of by its result, not by its tail."""
    told: list[Printed] = []
    with Printing("task", told.append, str).of("1/1") as heard:
        heard(b"quick\n")
    await asyncio.sleep(2 * EVERY_SECONDS)
    assert told == []


async def test_secrets_are_not_told() -> None:
    """A known value and the form of a key are taken out, also where two pieces meet."""
    half = len(SECRET) // 2
    [lines] = await told_of(f"password {SECRET[:half]}".encode(), f"{SECRET[half:]}\n".encode())
    assert lines == ("password [redacted]",)
    [lines] = await told_of(b"Authorization: Bearer abcdefghijklmnopqrstuvwxyz0123456789\n")
    assert "abcdefghijklmnop" not in lines[0]


async def test_what_is_cut_off_is_not_told() -> None:
    """A line whose beginning is gone may be the end of a secret: it is left out, and a long one is bounded."""
    [lines] = await told_of(b"x" * 20_000 + b"\nwhole\n")
    assert lines == ("whole",)
    [lines] = await told_of(SECRET.encode() + b"x" * 16_380)
    assert lines == ("x" * LONGEST_LINE,)
