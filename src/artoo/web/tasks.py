"""The web pages of the task list (50 tasks), of one task as a conversation, and of how it decided."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable, Sequence
from typing import Any

from starlette.requests import Request
from starlette.responses import Response

from artoo.contracts import codec
from artoo.contracts.errors import ConfigurationError, MessageUnreadable
from artoo.contracts.plan import PlanRefused
from artoo.contracts.settling import ApplyMode
from artoo.runtime.approvals.prompt_store import open_questions
from artoo.runtime.changes.find_pending import pendings
from artoo.runtime.changes.startup_recovery import recover_earlier
from artoo.runtime.config.endpoints import endpoint
from artoo.tasklog.layout import images_directory, part_path, task_directory
from artoo.tasklog.lock import is_running
from artoo.tasklog.reader import TaskSummary, list_tasks, summary_of
from artoo.tasklog.state import TaskState
from artoo.web.differences import change_set
from artoo.web.drawing import narrow, plane, wide
from artoo.web.index import Fold
from artoo.web.names import state_of
from artoo.web.others import fetch
from artoo.web.reasons import law_of, reasons_of
from artoo.web.rows import Row
from artoo.web.site import NothingHere, Site, directory_of, number_in, page, site_of, words_of
from artoo.web.starting import Live
from artoo.web.stream import home_events, open_stream, running_tasks, streamed
from artoo.words.outcome import resumable
from artoo.words.result import result_words

LISTED = 50
SEARCHED = 1_000
"""How many of the latest tasks a search looks at."""
SHOWN_RUNNING = 8
"""The most running tasks of the first page, the latest ones."""
FIRST_SECONDS = 0.3
"""How long the first answer about a task reads its log. The page gets the rest later by events."""
MOST_SHOWN = 60
"""The most subtasks of a round that the page shows individually."""
STATES = ("needs", "working", "done", "failed", "stopped")
MODES = (ApplyMode.NEW, ApplyMode.EDITS, ApplyMode.LIVE, ApplyMode.ASK)
"""The modes that the form offers."""


async def home(request: Request) -> Response:
    """Show the first page. With `?part`, return only its lists, and with `?running` only the running tasks."""
    site, query = site_of(request), request.query_params
    if "running" in query:
        return page(request, "running.html", running=await _running(request))
    sought, state = query.get("q", "").strip(), query.get("state", "")
    listed_most = SEARCHED if sought or state else LISTED + 1
    tasks = await asyncio.to_thread(list_tasks, site.home, listed_most)
    asked = await asyncio.to_thread(open_questions, site.home)
    await asyncio.to_thread(recover_earlier, site.config)
    waiting = await asyncio.to_thread(pendings, site.config)
    shared = await site.others.seen(site.config, LISTED)
    left = {one.task.id for one in shared.team.tasks}
    # The page already lists these tasks as the team's.
    pending = [one for one in waiting if one.task_id not in left]
    listed = [*((one, "") for one in tasks), *((one.summary, one.machine) for one in shared.tasks)]
    listed.sort(key=lambda one: one[0].started, reverse=True)
    needing = {one.task_id for one in (*asked, *waiting)}
    rows = [
        (one, state_of(one.result, running=one.running, asked=one.task_id in needing), machine)
        for one, machine in listed
        if _holds(one, sought)
    ]
    # Running tasks have a list of their own, unless the user looks for something.
    whole = not sought and not state
    found = [row for row in rows if (row[2] or not row[0].running if whole else state in ("", row[1]))]
    return page(
        request,
        "home_now.html" if "part" in query else "home.html",
        tasks=found[:LISTED], more=len(found) > LISTED, listed=LISTED, asked=asked, pending=pending,
        requests={one.directory.name: one.request for one in tasks},
        sought=sought, chosen=state, states=STATES, team=shared.team, part="part" in query,
        running=() if "part" in query else await _running(request), **composer(site),
    )  # fmt: skip


def _holds(task: TaskSummary, sought: str) -> bool:
    """Check whether the request, the answer or the id of a task contains a text, in any case."""
    texts = (task.request, task.task_id, task.result.summary if task.result else "")
    return any(sought.casefold() in text.casefold() for text in texts)


def composer(site: Site) -> dict[str, Any]:
    """Return the values of the form that begins a task or continues a conversation."""
    try:
        found = endpoint(site.config, "brain", os.environ)
    except ConfigurationError:
        found = None
    return {"modes": MODES, "mode": site.config.apply.value, "model": "" if found is None else found.model}


async def _running(request: Request) -> tuple[tuple[str, TaskState], ...]:
    """Return the ids and states of the running tasks, latest first."""
    site = site_of(request)
    directories = await asyncio.to_thread(running_tasks, site.home, SHOWN_RUNNING)
    found = [(each.name, await site.indexes.advanced(each, FIRST_SECONDS)) for each in directories]
    return tuple((name, index.state) for name, (index, _) in found)


async def home_stream(request: Request) -> Response:
    """Stream the events of the first page."""
    return streamed(home_events(site_of(request)))


async def _at_hand(request: Request) -> None:
    """Copy the log of another machine's task to this home, as far as the shared store has it."""
    site, task_id = site_of(request), str(request.path_params["task"])
    if site.config.store is not None and not part_path(task_directory(site.home, task_id), 0).exists():
        await asyncio.to_thread(fetch, site.config, task_id)


async def _seen(request: Request) -> dict[str, Any]:
    """Return what both pages of a task show: its state, result and open questions, and how far its log is read."""
    site = site_of(request)
    await _at_hand(request)
    task_id, directory = directory_of(request)
    index, complete = await site.indexes.advanced(directory, FIRST_SECONDS)
    story, running = index.state, is_running(directory)
    # The result is read from the end of the log if the index has not yet read all of the log.
    if not complete:
        summary = await asyncio.to_thread(summary_of, site.home, task_id)
        result = None if summary is None else summary.result
    else:
        result = story.result
    asked = await asyncio.to_thread(open_questions, site.home, task_id)
    return {
        "task_id": task_id, "index": index, "story": story, "result": result, "complete": complete,
        "running": running, "asked": asked,
        "state": state_of(result, running=running, asked=bool(asked)),
    }  # fmt: skip


async def task(request: Request) -> Response:
    """Show one task as a conversation. With `?part`, return only the parts that change during the task."""
    site, words, query = site_of(request), words_of(request), request.query_params
    values = await _seen(request)
    task_id, story, result = values["task_id"], values["story"], values["result"]
    changes = await change_set(
        site, task_id, values["asked"], story.settled, words.language, running=values["running"]
    )
    said = result_words(words.language)
    values |= {
        "facts": () if result is None else tuple(map(said.fact, result.facts)),
        "stopped": "" if result is None else said.why_stopped(result),
        "answer": answer_so_far(story) if result is None else result.output.strip(),
        "changes": changes, "state": values["state"] if changes.review is None else "needs",
        "steps": await site.indexes.read(values["index"].steps), "live": site.starter.live(task_id) or Live(),
        "resumable": not values["running"] and (result is None or resumable(result)),
        "said": query.get("said", ""), "via": query.get("via", ""), "most_shown": MOST_SHOWN, **composer(site),
    }  # fmt: skip
    return page(request, "task_now.html" if "part" in query else "task.html", **values)


def answer_so_far(story: TaskState) -> str:
    """Return the merged answer of the latest judged round, which is shown before the review of the changes."""
    ends = [each.evidence for each in story.rounds if each.evidence is not None]
    return "" if not ends or isinstance(ends[-1], PlanRefused) else ends[-1].merged_output.strip()


async def how(request: Request) -> Response:
    """Show how a task decided. With `?part`, return only the parts that change during the task."""
    words, values = words_of(request), await _seen(request)
    story, index = values["story"], values["index"]
    values |= {
        "count": index.counted, "short": index.short_count, "law": law_of(story), "most_shown": MOST_SHOWN,
        "wide": wide(story, words), "narrow": narrow(story, words), "plane": plane(story, words),
        "reasons": reasons_of(story, words),
    }  # fmt: skip
    return page(request, "how_now.html" if "part" in request.query_params else "how.html", **values)


async def image(request: Request) -> Response:
    """Return an image that is attached to the request of a task."""
    site, (task_id, directory) = site_of(request), directory_of(request)
    index, _ = await site.indexes.advanced(directory, FIRST_SECONDS)
    spec, digest = index.state.spec, str(request.path_params["digest"])
    found = next((one for one in spec.images if one.sha256 == digest), None) if spec is not None else None
    if found is None:
        raise NothingHere
    data = await asyncio.to_thread((images_directory(site.home, task_id) / digest).read_bytes)
    return Response(data, media_type=found.media_type)


async def rows(request: Request) -> Response:
    """Return rows of the timeline as JSON. The query has `view` (short or all), `first` and `count`."""
    _, directory = directory_of(request)
    index, _ = await site_of(request).indexes.advanced(directory, 0.0)
    try:
        first, count = int(request.query_params["first"]), int(request.query_params["count"])
    except (KeyError, ValueError):
        raise ConfigurationError("say which rows: first and count, whole numbers") from None
    short = request.query_params.get("view") == "short"
    look: Callable[[int, int], Sequence[Row | Fold]] = index.short if short else index.rows
    found = await site_of(request).indexes.read(look, first, count)
    words = words_of(request)
    plain = [{"n": one.first, "fold": one.count} if isinstance(one, Fold) else one.plain(words) for one in found]
    body = {"first": first, "rows": plain, "count": index.counted, "short": index.short_count}
    return Response(codec.line_of(body), media_type="application/json")


async def stream(request: Request) -> Response:
    """Stream the events of one task."""
    task_id, directory = directory_of(request)
    return open_stream(request, task_id, directory)


async def event(request: Request) -> Response:
    """Show one line of the log, with all prompts, answers and outputs. With `?part`, leave out the page's frame."""
    task_id, directory = directory_of(request)
    index = site_of(request).indexes.of(directory)
    number = number_in(str(request.path_params["number"]))
    if number is None:
        raise NothingHere
    while index.counted <= number:
        index, at_end = await site_of(request).indexes.advanced(directory)
        if at_end:
            break
    try:
        fields = await site_of(request).indexes.read(index.fields, number)
    except (IndexError, MessageUnreadable, OSError) as error:
        raise NothingHere(str(error)) from error
    template = "event_now.html" if "part" in request.query_params else "event.html"
    return page(request, template, task_id=task_id, number=number, fields=fields, count=index.counted)
