"""A patrol routine that is a script: what it prints is to be done, a request a line; nothing printed is no work.

It runs before any model is asked, read-only, by the interpreter of its first line (`#!`), else by bash. A line that
stays printed is one request; it can come again once it was absent.
"""

from __future__ import annotations

import asyncio
import shlex
from collections.abc import Awaitable, Callable
from pathlib import Path

from artoo.agents.patrol.parser import LARGEST_FILE, LONGEST_REQUEST, PatrolItem, PatrolText, Problem

MOST_LINES = 20
PRINTED = "printed"
"""Marks items that a script has printed, and their keys."""

RunScript = Callable[[str], Awaitable[tuple[int | None, str]]]
"""Runs a command read-only: its exit code (None: it did not end by itself) and what it printed. Never raises."""


def is_script(path: Path) -> bool:
    """Whatever is no Markdown is a script."""
    return path.suffix.casefold() not in (".md", ".markdown")


async def printed_by(path: Path, run: RunScript) -> PatrolText:
    """What the script at `path` wants done now; an absent or empty one is no work. Never raises."""
    try:
        text = await asyncio.to_thread(_read, path)
    except FileNotFoundError:
        return PatrolText()
    except (OSError, UnicodeDecodeError, ValueError) as error:
        return _refused(f"it cannot be read as a script: {error}")
    if not text.strip():
        return PatrolText()
    code, printed = await run(command_of(text))
    if code != 0:
        how = "did not end in time, or tried to change files" if code is None else f"ended with exit code {code}"
        return _refused(f"it {how}, so nothing is done: {printed.strip()[-300:]}")
    lines = [line.strip() for line in printed.splitlines() if line.strip()]
    wanted = [_item(line, number) for number, line in enumerate(lines[:MOST_LINES], 1)]
    items = tuple({item.key: item for item in wanted}.values())
    if len(lines) <= MOST_LINES:
        return PatrolText(items)
    more = f"it printed {len(lines) - MOST_LINES} lines more than the {MOST_LINES} that are read"
    return PatrolText(items, (Problem(1, more),))


def command_of(text: str) -> str:
    """The command that runs a script which the sandbox cannot see: its text goes in by the standard input."""
    first = text.partition("\n")[0]
    interpreter = first[2:].strip() if first.startswith("#!") else "bash"
    return f"printf %s {shlex.quote(text)} | {interpreter} /dev/stdin"


def _item(line: str, number: int) -> PatrolItem:
    return PatrolItem(line[:LONGEST_REQUEST], number, printed=True)


def _refused(why: str) -> PatrolText:
    return PatrolText(problems=(Problem(1, why),))


def _read(path: Path) -> str:
    with path.open("rb") as file:
        raw = file.read(LARGEST_FILE + 1)
    if len(raw) > LARGEST_FILE:
        raise ValueError(f"it is larger than {LARGEST_FILE} bytes")
    return raw.decode("utf-8-sig")
