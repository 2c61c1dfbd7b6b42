"""The web pages of the task list (50 tasks) and of one task, to start, answer, message and stop it."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from starlette.requests import Request
from starlette.responses import RedirectResponse, Response

from artoo.contracts import codec
from artoo.contracts.confirmation import Choice, Consent, Words
from artoo.contracts.errors import ConfigurationError, MessageUnreadable
from artoo.contracts.settling import ApplyMode
from artoo.contracts.steering import UserMessage
from artoo.runtime.app.run_options import RunOptions
from artoo.runtime.approvals.prompt_store import answer_question, ask_to_stop, open_questions, send_message
from artoo.runtime.changes.find_pending import pendings
from artoo.runtime.changes.startup_recovery import recover_earlier
from artoo.tasklog.layout import part_path, task_directory
from artoo.tasklog.lock import is_running
from artoo.tasklog.reader import list_tasks, summary_of
from artoo.tasklog.state import TaskState
from artoo.web.drawing import Drawing, narrow, plane, wide
from artoo.web.index import Fold
from artoo.web.others import copied, fetch
from artoo.web.reasons import law_of, reasons_of
from artoo.web.rows import Row
from artoo.web.site import NothingHere, form_of, number_in, page, paths_of, site_of, value, words_of
from artoo.web.stream import home_events, open_stream, running_tasks, streamed
from artoo.words.outcome import ending_of
from artoo.words.result import result_words

LISTED = 50
DRAWN = 4
"""The most running tasks that the first page draws. The latest tasks are chosen."""
FIRST_SECONDS = 0.3
"""How long the first answer about a task reads its log. The page gets the rest later by events."""
LOG_SECONDS = 5.0
"""How long a new task's page waits for its log."""
PAGE = "page"
MOST_SHOWN = 60
"""The most subtasks of a round that the page shows individually."""


async def home(request: Request) -> Response:
    """Show the first page. With `?part`, return only its lists, and with `?running` only the running tasks."""
    site, query = site_of(request), request.query_params
    if "running" in query:
        return page(request, "running.html", running=await _running(request))
    tasks = await asyncio.to_thread(list_tasks, site.home, LISTED + 1)
    asked = await asyncio.to_thread(open_questions, site.home)
    await asyncio.to_thread(recover_earlier, site.config)
    waiting = await asyncio.to_thread(pendings, site.config)
    shared = await site.others.seen(site.config, LISTED)
    left = {one.task.id for one in shared.team.tasks}
    # The page already lists these tasks as the team's.
    pending = [one for one in waiting if one.task_id not in left]
    listed = [*((one, "") for one in tasks), *((one.summary, one.machine) for one in shared.tasks)]
    listed.sort(key=lambda one: one[0].started, reverse=True)
    rows = [(one, ending_of(one.result, running=one.running), machine) for one, machine in listed[:LISTED]]
    return page(
        request,
        "home_now.html" if "part" in query else "home.html",
        tasks=rows, more=len(listed) > LISTED, listed=LISTED, asked=asked, pending=pending,
        team=shared.team,
        running=() if "part" in query else await _running(request),
    )  # fmt: skip


@dataclass(frozen=True, slots=True)
class Drawn:
    """A running task with its two drawings for the first page."""

    task_id: str
    story: TaskState
    wide: Drawing
    narrow: Drawing


async def _running(request: Request) -> tuple[Drawn, ...]:
    """Return the running tasks with drawings of their loops, latest first."""
    site, words = site_of(request), words_of(request)
    found: list[Drawn] = []
    for directory in await asyncio.to_thread(running_tasks, site.home, DRAWN):
        index, _ = await site.indexes.advanced(directory, FIRST_SECONDS)
        story = index.state
        found.append(Drawn(directory.name, story, wide(story, words), narrow(story, words)))
    return tuple(found)


async def home_stream(request: Request) -> Response:
    """Stream the events of the first page."""
    return streamed(home_events(site_of(request)))


_OFFERED = {mode.value: mode for mode in (ApplyMode.NEW, ApplyMode.EDITS, ApplyMode.ASK, ApplyMode.LIVE)}


async def start(request: Request) -> Response:
    """Start a task and go to its page."""
    site, form = site_of(request), await form_of(request)
    text, project = value(form, "text").strip(), value(form, "project").strip()
    if not text:
        raise ConfigurationError("the request is empty; say what you want done")
    try:
        apply = _OFFERED[value(form, "apply") or "new"]
    except KeyError:
        raise ConfigurationError("there is no such way of applying; use the page's own form") from None
    place = Path(project) if project else site.project
    task_id = await site.starter.start(text, RunOptions(project=place, apply=apply))
    await _logged(task_directory(site.home, task_id))
    return RedirectResponse(f"/tasks/{task_id}", 303)


async def _logged(directory: Path) -> None:
    """Wait up to `LOG_SECONDS` for the log of a new task, which is written shortly after the first message."""
    until = time.monotonic() + LOG_SECONDS
    while not part_path(directory, 0).exists() and time.monotonic() < until:  # noqa: ASYNC110 (a file)
        await asyncio.sleep(0.02)


def directory_of(request: Request) -> tuple[str, Path]:
    """Return the task id of the address, and its log or a copy of another machine's log. Raises NothingHere."""
    task_id, home = str(request.path_params["task"]), site_of(request).home
    directory = task_directory(home, task_id)
    if part_path(directory, 0).exists():
        return task_id, directory
    copy = copied(home, task_id)
    if copy is None:
        raise NothingHere(words_of(request)("There is nothing at this address."))
    return task_id, copy


async def _at_hand(request: Request) -> None:
    """Copy the log of another machine's task to this home, as far as the shared store has it."""
    site, task_id = site_of(request), str(request.path_params["task"])
    if site.config.store is not None and not part_path(task_directory(site.home, task_id), 0).exists():
        await asyncio.to_thread(fetch, site.config, task_id)


async def task(request: Request) -> Response:
    """Show one task. With `?part`, return only the parts that change during the task."""
    site, words = site_of(request), words_of(request)
    await _at_hand(request)
    task_id, directory = directory_of(request)
    part = "part" in request.query_params
    index, complete = await site.indexes.advanced(directory, FIRST_SECONDS)
    story, running = index.state, is_running(directory)
    # The result is read from the end of the log if the index has not yet read all of the log.
    if not complete:
        summary = await asyncio.to_thread(summary_of, site.home, task_id)
        result = None if summary is None else summary.result
    else:
        result = story.result
    asked = await asyncio.to_thread(open_questions, site.home, task_id)
    return page(
        request,
        "task_now.html" if part else "task.html",
        task_id=task_id,
        story=story,
        result=result,
        facts=() if result is None else tuple(map(result_words(words.language).fact, result.facts)),
        complete=complete,
        state=ending_of(result, running=running),
        running=running,
        asked=asked,
        said=value(tuple(request.query_params.multi_items()), "said"),
        via=value(tuple(request.query_params.multi_items()), "via"),
        count=index.counted,
        short=index.short_count,
        wide=wide(story, words),
        narrow=narrow(story, words),
        plane=plane(story, words),
        reasons=reasons_of(story, words),
        law=law_of(story),
        most_shown=MOST_SHOWN,
    )


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
    plain = [{"n": one.first, "fold": one.count} if isinstance(one, Fold) else one.plain() for one in found]
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


async def stop(request: Request) -> Response:
    """Ask a task to stop, even if it runs in another process."""
    task_id, _ = directory_of(request)
    await form_of(request)
    await asyncio.to_thread(ask_to_stop, site_of(request).home, task_id)
    return RedirectResponse(f"/tasks/{task_id}", 303)


async def say(request: Request) -> Response:
    """Send a message to a running task, even if it runs in another process."""
    task_id, _ = directory_of(request)
    form = await form_of(request)
    message = UserMessage(text=value(form, "text").strip(), hold=bool(value(form, "hold")), by="web")
    if not message.text and not message.hold:
        raise ConfigurationError("the message is empty")
    if not await asyncio.to_thread(send_message, site_of(request).home, task_id, message):
        raise ConfigurationError("the task does not run any more; start another one")
    return RedirectResponse(f"/tasks/{task_id}", 303)


async def answer(request: Request) -> Response:
    """Answer a question, if the question is the one that the page showed and has no answer yet."""
    task_id, _ = directory_of(request)
    form = await form_of(request)
    paths = paths_of(form)
    said: Consent | Choice | Words
    try:
        words, consent = value(form, "words").strip(), value(form, "consent")
        # A refusal rejects the plan, whatever text came with it.
        if words and consent != Consent.NO.value:
            said = Words(text=words)
        else:
            said = Consent(consent) if consent != "chosen" else Choice(paths=paths)
    except ValueError:
        raise ConfigurationError("choose at least one path, or give another answer") from None
    given = await asyncio.to_thread(
        answer_question, site_of(request).home, task_id, value(form, "key"), value(form, "digest"), said, PAGE
    )
    late = given.said.value if isinstance(given.said, Consent) else Consent.ONCE.value
    tail = "" if given.first else f"?said={late}&via={given.via}"
    return RedirectResponse(f"/tasks/{task_id}{tail}", 303)
