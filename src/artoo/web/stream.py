"""Server-sent events. An event's id is a place in a task's log, so that a client continues exactly there."""

from __future__ import annotations

import asyncio
import hashlib
import time
from collections.abc import AsyncGenerator, Iterable, Mapping
from itertools import islice
from pathlib import Path

from starlette.requests import Request
from starlette.responses import StreamingResponse

from artoo.contracts import codec
from artoo.runtime.approvals.prompt_store import open_questions
from artoo.tasklog.layout import parts_of, tasks_directory
from artoo.tasklog.lock import is_running
from artoo.web.others import books_of
from artoo.web.site import Site, site_of

LOOK_SECONDS = 0.25
"""How often a log is looked at: mostly one read that finds nothing."""
HOME_SECONDS = 1.0
SHARED_SECONDS = 5.0
"""How often the team's database is read again where it is in a store."""
BEAT_SECONDS = 15.0
"""Something is heard as often as that: so a connection that is gone is noticed on both sides, also one that died
without a word (a sleeping laptop, a tunnel that hangs)."""
BEAT = b"event: beat\ndata: 0\n\n"
ROWS = 256
FAR_BEHIND = 1_000
"""Who has missed more is told how many, and fetches those rows that are looked at."""
RETRY = b"retry: 1000\n\n"
LATEST = 60


def sent(name: str, data: Mapping[str, object], number: int | None = None) -> bytes:
    """Format one event. JSON has no line ends, so it is one line of data."""
    head = b"" if number is None else b"id: %d\n" % number
    return head + b"event: " + name.encode() + b"\ndata: " + codec.line_of(data) + b"\n\n"


def streamed(events: AsyncGenerator[bytes, None]) -> StreamingResponse:
    """Return the answer that stays open."""
    return StreamingResponse(events, media_type="text/event-stream", headers={"x-accel-buffering": "no"})


def place_of(request: Request) -> int | None:
    """Return the first line that the page does not have: after Last-Event-ID, else as the page says."""
    said = request.headers.get("last-event-id") or request.query_params.get("after", "")
    return int(said) + 1 if said.removeprefix("-").isdecimal() and len(said) < 16 else None


async def task_events(site: Site, task_id: str, directory: Path, first: int | None) -> AsyncGenerator[bytes, None]:
    """Yield every line of a log from `first` on, once, in order, and a note when the drawing has changed.

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
            rows = [] if behind > FAR_BEHIND else await site.indexes.read(index.rows, following, ROWS)
            last = following + (len(rows) or behind) - 1
            plain = [row.plain() for row in rows]
            short = index.short_count
            yield sent("rows", {"first": following, "last": last, "short": short, "rows": plain}, last)
            following, busy, quiet_for = last + 1, True, 0.0
        state = await site.indexes.read(state_of, site, task_id, directory)
        state = f"{index.version}.{state}"
        if state != told:
            yield sent("state", {"version": state, "count": index.counted, "short": index.short_count})
            told = state
        if at_end and not busy:
            if quiet_for >= BEAT_SECONDS:
                yield BEAT
                quiet_for = 0.0
            await _pause(site, LOOK_SECONDS)
            quiet_for += LOOK_SECONDS


def state_of(site: Site, task_id: str, directory: Path) -> str:
    """Return the state of a task that is not in its log: whether it runs, and its open questions."""
    keys = ",".join(one.key for one in open_questions(site.home, task_id))
    return f"{is_running(directory):d}.{keys}"


async def home_events(site: Site) -> AsyncGenerator[bytes, None]:
    """Yield a note when the list of tasks (`state`), a running task, or the team's database changes."""
    yield RETRY
    told, quiet_for = dict[str, str](), 0.0
    while not site.closing.is_set():
        seen = await site.indexes.read(signatures, site)
        for name, version in seen.items():
            if told.get(name) != version:
                yield sent(name, {"version": version})
                quiet_for = 0.0
        told = seen
        if quiet_for >= BEAT_SECONDS:
            yield BEAT
            quiet_for = 0.0
        await _pause(site, HOME_SECONDS)
        quiet_for += HOME_SECONDS


def running_tasks(home: Path, most: int) -> list[Path]:
    """List the logs of running tasks, latest first."""
    root = tasks_directory(home)
    return list(islice((root / name for name in _latest(root) if is_running(root / name)), most))


def _latest(root: Path) -> list[str]:
    return sorted((entry.name for entry in root.iterdir()), reverse=True)[:LATEST] if root.is_dir() else []


def signatures(site: Site) -> dict[str, str]:
    """Return values that change when their parts of the page would. No log is read."""
    root, home = tasks_directory(site.home), site.home
    books = books_of(site.config)
    if site.config.store is None:
        team = _digest(_state(path) for path in (books, books.with_name(f"{books.name}-wal")))
    else:
        # No event reports the writes of other machines, so the store is read from time to time.
        team = _digest((int(time.monotonic() / SHARED_SECONDS),))
    listed, running = list[object](), list[object]()
    for name in _latest(root):
        end, runs = [_state(path) for path in parts_of(root / name)[-1:]], is_running(root / name)
        # While it runs its log grows all the time, and the list says no more than that it runs.
        listed += (name, runs, () if runs else end)
        running += (name, end) if runs else ()
    listed += (one.key for one in open_questions(home))
    workspaces = home / "workspaces"
    listed += sorted(entry.name for entry in workspaces.iterdir()) if workspaces.is_dir() else ()
    return {"state": _digest((*listed, team)), "running": _digest(running), "team": team}


def _digest(seen: Iterable[object]) -> str:
    return hashlib.sha256("\n".join(map(str, seen)).encode()).hexdigest()[:16]


def _state(path: Path) -> str:
    """Return a value that changes when the file was written. Merely opening the database makes an empty file."""
    try:
        found = path.stat()
    except OSError:
        # The file is missing, or was removed meanwhile.
        return ""
    return f"{found.st_size}.{found.st_mtime_ns}" if found.st_size else ""


async def _pause(site: Site, seconds: float) -> None:
    try:
        async with asyncio.timeout(seconds):
            await site.closing.wait()
    except TimeoutError:
        return


def open_stream(request: Request, task_id: str, directory: Path) -> StreamingResponse:
    """Open the stream of one task."""
    return streamed(task_events(site_of(request), task_id, directory, place_of(request)))
