"""Server-sent events of a task and of the first page, with polling intervals and keep-alive seconds.

An event's id is a line number of the task's log, so that a client can resume there.
"""

from __future__ import annotations

import asyncio
import hashlib
import time
from collections.abc import AsyncGenerator, Iterable, Mapping
from dataclasses import replace
from itertools import islice
from pathlib import Path

from starlette.requests import Request
from starlette.responses import StreamingResponse

from artoo.contracts import codec
from artoo.runtime.approvals.prompt_store import open_questions
from artoo.tasklog.layout import parts_of, tasks_directory
from artoo.tasklog.lock import is_running
from artoo.web.others import books_of
from artoo.web.site import Site, site_of, words_of
from artoo.web.starting import Live
from artoo.words.catalogue import ENGLISH, Catalogue
from artoo.words.shown import printable

LOOK_SECONDS = 0.1
"""The interval at which a log is polled. A poll is usually a single read without new data."""
HOME_SECONDS = 1.0
SHARED_SECONDS = 5.0
"""The interval at which pages read the team's database again if it is in a shared store."""
BEAT_SECONDS = 15.0
"""The interval of keep-alive events, by which both sides notice a lost connection, even if it was not closed (for
example by a sleeping laptop or a hanging tunnel)."""
BEAT = b"event: beat\ndata: 0\n\n"
ROWS = 256
FAR_BEHIND = 1_000
"""A client that has missed more rows gets only their count, and fetches the rows that it shows."""
RETRY = b"retry: 1000\n\n"
LATEST = 60


def sent(name: str, data: Mapping[str, object], number: int | None = None) -> bytes:
    """Format one event. The data is one line, because JSON contains no line ends."""
    head = b"" if number is None else b"id: %d\n" % number
    return head + b"event: " + name.encode() + b"\ndata: " + codec.line_of(data) + b"\n\n"


def streamed(events: AsyncGenerator[bytes, None]) -> StreamingResponse:
    """Build the HTTP response that streams the events."""
    return StreamingResponse(events, media_type="text/event-stream", headers={"x-accel-buffering": "no"})


def place_of(request: Request) -> int | None:
    """Return the first line that the client lacks, by Last-Event-ID or else `?after`, or None without either."""
    said = request.headers.get("last-event-id") or request.query_params.get("after", "")
    return int(said) + 1 if said.removeprefix("-").isdecimal() and len(said) < 16 else None


async def task_events(
    site: Site, task_id: str, directory: Path, first: int | None, words: Catalogue = ENGLISH
) -> AsyncGenerator[bytes, None]:
    """Yield every line of a log once and in order, from line `first`, and events if the state or live texts change.

    A slow client delays only this generator, and needs no buffer, because the lines remain in the log.
    """
    yield RETRY
    told, shown, quiet_for = "", Live(), 0.0
    index, _ = await site.indexes.advanced(directory)
    following = index.counted if first is None else max(0, first)
    while not site.closing.is_set():
        index, at_end = await site.indexes.advanced(directory)
        busy = False
        while following < index.counted:
            behind = index.counted - following
            rows = [] if behind > FAR_BEHIND else await site.indexes.read(index.rows, following, ROWS)
            last = following + (len(rows) or behind) - 1
            plain = [row.plain(words) for row in rows]
            short = index.short_count
            yield sent("rows", {"first": following, "last": last, "short": short, "rows": plain}, last)
            following, busy, quiet_for = last + 1, True, 0.0
        state = await site.indexes.read(state_of, site, task_id, directory)
        state = f"{index.version}.{state}"
        if state != told:
            yield sent("state", {"version": state, "count": index.counted, "short": index.short_count})
            told = state
        live = site.starter.live(task_id) or Live()
        if (live.words, live.printed) != (shown.words, shown.printed):
            shown = replace(live)
            yield sent("live", {"words": printable(live.words), "printed": live.printed})
            quiet_for = 0.0
        if at_end and not busy:
            if quiet_for >= BEAT_SECONDS:
                yield BEAT
                quiet_for = 0.0
            await _pause(site, LOOK_SECONDS)
            quiet_for += LOOK_SECONDS


def state_of(site: Site, task_id: str, directory: Path) -> str:
    """Return the part of a task's state that is not in its log: the running flag and the keys of open questions."""
    keys = ",".join(one.key for one in open_questions(site.home, task_id))
    return f"{is_running(directory):d}.{keys}"


async def home_events(site: Site) -> AsyncGenerator[bytes, None]:
    """Yield an event when the list of tasks (`state`), a running task (`running`) or the team's data changes."""
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
    """Return a value for each part of the first page, which changes if that part does. No log is read."""
    root, home = tasks_directory(site.home), site.home
    books = books_of(site.config)
    if site.config.store is None:
        team = _digest(_state(path) for path in (books, books.with_name(f"{books.name}-wal")))
    else:
        # No event reports the writes of other machines, so this value changes every `SHARED_SECONDS`.
        team = _digest((int(time.monotonic() / SHARED_SECONDS),))
    listed, running = list[object](), list[object]()
    for name in _latest(root):
        end, runs = [_state(path) for path in parts_of(root / name)[-1:]], is_running(root / name)
        # The log of a running task grows all the time, but the list only shows that the task runs.
        listed += (name, runs, () if runs else end)
        running += (name, end) if runs else ()
    listed += (one.key for one in open_questions(home))
    workspaces = home / "workspaces"
    listed += sorted(entry.name for entry in workspaces.iterdir()) if workspaces.is_dir() else ()
    return {"state": _digest((*listed, team)), "running": _digest(running), "team": team}


def _digest(seen: Iterable[object]) -> str:
    return hashlib.sha256("\n".join(map(str, seen)).encode()).hexdigest()[:16]


def _state(path: Path) -> str:
    """Return a value that changes when the file is written. Empty files, as of a new database, do not count."""
    try:
        found = path.stat()
    except OSError:
        # The file does not exist, or was removed meanwhile.
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
    return streamed(task_events(site_of(request), task_id, directory, place_of(request), words_of(request)))
