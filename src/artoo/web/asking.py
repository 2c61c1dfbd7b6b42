"""The requests with which a user starts, answers, messages, continues and stops tasks in the web UI."""

from __future__ import annotations

import asyncio
import time
from pathlib import Path

from starlette.requests import Request
from starlette.responses import RedirectResponse, Response

from artoo.contracts.confirmation import Choice, Consent, Words
from artoo.contracts.errors import ConfigurationError
from artoo.contracts.request import Turn
from artoo.contracts.steering import UserMessage
from artoo.contracts.text import shortened
from artoo.runtime.app.run_options import RunOptions
from artoo.runtime.approvals.prompt_store import answer_question, ask_to_stop, open_questions, send_message
from artoo.runtime.changes.run_changes import LONGEST_SUMMARY
from artoo.runtime.task.conversations import TURNS
from artoo.tasklog.layout import part_path, task_directory
from artoo.tasklog.lock import is_running
from artoo.tasklog.state import TaskState
from artoo.web.site import Form, directory_of, form_of, form_with_images, paths_of, site_of, value
from artoo.web.tasks import MODES
from artoo.words.result import result_words

LOG_SECONDS = 5.0
"""How long a new task's page waits for its log."""
ENDING_SECONDS = 30.0
"""How long a follow-up waits for the end of a task whose review it has answered."""
PAGE = "page"


async def start(request: Request) -> Response:
    """Start a task and go to its page."""
    site, (form, images) = site_of(request), await form_with_images(request)
    project = value(form, "project").strip()
    options = _options(form, images, Path(project) if project else site.project)
    return await _begin(request, _text(form), options)


def _text(form: Form) -> str:
    text = value(form, "text").strip()
    if not text:
        raise ConfigurationError("the request is empty; say what you want done")
    return text


def _options(form: Form, images: tuple[bytes, ...], project: Path) -> RunOptions:
    """Return the options of a task that a form begins. Raises ConfigurationError for one that the form has not."""
    named = value(form, "apply")
    apply = next((mode for mode in MODES if mode.value == named), None)
    if named and apply is None:
        raise ConfigurationError("there is no such way of applying; use the page's own form")
    return RunOptions(
        project=project, apply=apply, model=value(form, "model").strip() or None, plan=bool(value(form, "plan")),
        images=images,
    )  # fmt: skip


async def _begin(request: Request, text: str, options: RunOptions, history: tuple[Turn, ...] = ()) -> Response:
    site = site_of(request)
    task_id = await site.starter.start(text, options, history)
    await _logged(task_directory(site.home, task_id))
    return RedirectResponse(f"/tasks/{task_id}", 303)


async def _logged(directory: Path) -> None:
    """Wait up to `LOG_SECONDS` for the log of a new task, which is written shortly after the first message."""
    until = time.monotonic() + LOG_SECONDS
    while not part_path(directory, 0).exists() and time.monotonic() < until:  # noqa: ASYNC110 (a file)
        await asyncio.sleep(0.02)


async def resume(request: Request) -> Response:
    """Continue a task that was stopped."""
    task_id, _ = directory_of(request)
    await form_of(request)
    await site_of(request).starter.start("", RunOptions(), resumes=task_id)
    return RedirectResponse(f"/tasks/{task_id}", 303)


async def stop(request: Request) -> Response:
    """Ask a task to stop, even if it runs in another process."""
    task_id, _ = directory_of(request)
    await form_of(request)
    await asyncio.to_thread(ask_to_stop, site_of(request).home, task_id)
    return RedirectResponse(f"/tasks/{task_id}", 303)


async def say(request: Request) -> Response:
    """Send a message to a running task, in any process, or start the next task of the conversation.

    A message at the review of a task's changes keeps the changes pending, and the next task continues with them.
    """
    site, (task_id, directory) = site_of(request), directory_of(request)
    form, images = await form_with_images(request)
    hold = bool(value(form, "hold"))
    text = "" if hold and not value(form, "text").strip() else _text(form)
    if is_running(directory) and not await _kept_for_later(request):
        message = UserMessage(text=text, hold=hold, by="web")
        if await asyncio.to_thread(send_message, site.home, task_id, message):
            return RedirectResponse(f"/tasks/{task_id}", 303)
    index, at_end = await site.indexes.advanced(directory)
    while not at_end:
        index, at_end = await site.indexes.advanced(directory)
    options = _options(form, images, Path(index.state.project or site.project))
    return await _begin(request, text, options, history_of(index.state))


async def _kept_for_later(request: Request) -> bool:
    """Answer the review of a task, if it waits for one, that its changes stay pending, and wait for its end."""
    site, (task_id, directory) = site_of(request), directory_of(request)
    asked = await asyncio.to_thread(open_questions, site.home, task_id)
    for one in asked:
        if one.request.review is not None:
            await asyncio.to_thread(
                answer_question, site.home, task_id, one.key, one.request.digest, Consent.KEEP, PAGE
            )
            until = time.monotonic() + ENDING_SECONDS
            while is_running(directory) and time.monotonic() < until:  # noqa: ASYNC110 (a lock of another process)
                await asyncio.sleep(0.05)
            return True
    return False


def history_of(story: TaskState) -> tuple[Turn, ...]:
    """Return the turns of the conversation with the task's own turn, for its next task."""
    said = "" if story.result is None else result_words(story.result.language).plain(story.result, told=False)
    turn = Turn(
        input=story.request, summary=shortened(said, LONGEST_SUMMARY), task_id=story.task_id, project=story.project
    )
    return (*story.history, turn)[-TURNS:]


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
