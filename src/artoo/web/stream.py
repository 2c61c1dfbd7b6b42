"""Server-sent events. An event's id is a place in a task's log, so whoever comes back goes on exactly there."""

from __future__ import annotations

import asyncio
import hashlib
from collections.abc import AsyncGenerator
from pathlib import Path

import orjson
from starlette.requests import Request
from starlette.responses import StreamingResponse

from artoo.runtime.desk import open_questions
from artoo.tasklog.layout import parts_of, tasks_directory
from artoo.tasklog.lock import is_running
from artoo.web.site import Site, site_of

LOOK_SECONDS = 0.25
"""How often a log is looked at: one read that finds nothing, some 20 µs."""
HOME_SECONDS = 1.0
BEAT_SECONDS = 15.0
"""A comment as often as that: so a connection that is gone is noticed on both sides."""
ROWS = 256
FAR_BEHIND = 1_000
"""Who has missed more is told how many, and fetches those rows that are looked at."""
RETRY = b"retry: 1000\n\n"
LATEST = 60


def sent(name: str, data: object, number: int | None = None) -> bytes:
    """One event. JSON holds no line ends, so it is one line of data."""
    head = b"" if number is None else b"id: %d\n" % number
    return head + b"event: " + name.encode() + b"\ndata: " + orjson.dumps(data) + b"\n\n"


def streamed(events: AsyncGenerator[bytes, None]) -> StreamingResponse:
    """The answer that stays open."""
    return StreamingResponse(events, media_type="text/event-stream", headers={"x-accel-buffering": "no"})


def place_of(request: Request) -> int | None:
    """The first line that the page does not have: after Last-Event-ID, else what the page says itself."""
    said = request.headers.get("last-event-id") or request.query_params.get("after", "")
    return int(said) + 1 if said.removeprefix("-").isdecimal() and len(said) < 16 else None


async def task_events(site: Site, task_id: str, directory: Path, first: int | None) -> AsyncGenerator[bytes, None]:
    """Every line of a log from `first` on, once, in order; and a word when the drawing has changed.

    A page that reads slowly holds this generator up, and nothing else: what it has not taken is in the log.
    """
    yield RETRY
    told, quiet_for = "", 0.0
    index, _ = await site.indexes.advanced(directory)
    following = index.counted if first is None else max(0, first)
    while not site.closing.is_set():
        index, at_end = await site.indexes.advanced(directory)
        busy = False
        while following < index.counted:
            behind = index.counted - following
            rows = [] if behind > FAR_BEHIND else await asyncio.to_thread(index.rows, following, ROWS)
            last = following + (len(rows) or behind) - 1
            plain = [row.plain() for row in rows]
            short = index.short_count
            yield sent("rows", {"first": following, "last": last, "short": short, "rows": plain}, last)
            following, busy, quiet_for = last + 1, True, 0.0
        state = await asyncio.to_thread(state_of, site, task_id, directory)
        state = f"{index.story.version}.{state}"
        if state != told:
            yield sent("state", {"version": state, "count": index.counted, "short": index.short_count})
            told = state
        if at_end and not busy:
            if quiet_for >= BEAT_SECONDS:
                yield b": still here\n\n"
                quiet_for = 0.0
            await _pause(site, LOOK_SECONDS)
            quiet_for += LOOK_SECONDS


def state_of(site: Site, task_id: str, directory: Path) -> str:
    """What of a task is not in its log: whether it runs, and which questions wait."""
    keys = ",".join(one.key for one in open_questions(site.home, task_id))
    return f"{is_running(directory):d}.{keys}"


async def home_events(site: Site) -> AsyncGenerator[bytes, None]:
    """A word whenever the list of tasks, or what waits, is not what it was."""
    yield RETRY
    told, quiet_for = "", 0.0
    while not site.closing.is_set():
        seen = await asyncio.to_thread(signature, site.home)
        if seen != told:
            yield sent("state", {"version": seen})
            told, quiet_for = seen, 0.0
        elif quiet_for >= BEAT_SECONDS:
            yield b": still here\n\n"
            quiet_for = 0.0
        await _pause(site, HOME_SECONDS)
        quiet_for += HOME_SECONDS


def signature(home: Path) -> str:
    """Changes when the first page would look different. Names, ends of logs and locks; no log is read."""
    root = tasks_directory(home)
    names = sorted((entry.name for entry in root.iterdir()), reverse=True)[:LATEST] if root.is_dir() else []
    seen = hashlib.sha256()
    for name in names:
        parts = parts_of(root / name)
        running = is_running(root / name)
        # While it runs its log grows all the time, and the list says no more than that it runs.
        size = 0 if running or not parts else parts[-1].stat().st_size
        seen.update(f"{name} {running} {size}\n".encode())
    for one in open_questions(home):
        seen.update(one.key.encode())
    views = home / "views"
    seen.update(" ".join(sorted(entry.name for entry in views.iterdir())).encode() if views.is_dir() else b"")
    return seen.hexdigest()[:16]


async def _pause(site: Site, seconds: float) -> None:
    try:
        async with asyncio.timeout(seconds):
            await site.closing.wait()
    except TimeoutError:
        return


def open_stream(request: Request, task_id: str, directory: Path) -> StreamingResponse:
    """The stream of one task."""
    return streamed(task_events(site_of(request), task_id, directory, place_of(request)))
