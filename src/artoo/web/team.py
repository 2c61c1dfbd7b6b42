"""The web pages of the board, agents and letters, with the operator's forms.

They offer the same as `artoo task`, `artoo agent` and `artoo mail`.
"""

from __future__ import annotations

import asyncio

from starlette.requests import Request
from starlette.responses import RedirectResponse, Response

from artoo.agents.board.board import MOST_TASKS
from artoo.agents.board.operator_todo import left_to_operator
from artoo.contracts.agents import OPERATOR, BoardState
from artoo.contracts.errors import ConfigurationError, SandboxError
from artoo.team.by_hand import approve, moves_from, read_letter
from artoo.team.by_hand import move as move_by_hand
from artoo.team.locks import serving
from artoo.team.office import open_office
from artoo.team.roster import roster
from artoo.web.site import form_of, number_in, page, site_of, value

LETTERS = 50
PULSES = 16
"""The number of latest heartbeats that are shown for each agent."""
COLUMNS = ("needs", "todo", "progress", "done")
"""The columns of the board. The first has the tasks that wait for the operator, whatever their state."""
_COLUMNS = {
    BoardState.PENDING: "todo", BoardState.REJECTED: "todo", BoardState.IN_PROGRESS: "progress",
    BoardState.REVIEW: "progress", BoardState.BLOCKED: "progress",
}  # fmt: skip


async def team(request: Request) -> Response:
    """Show the board in four columns, the agents and the letters. With `?part`, only the parts that change."""
    site = site_of(request)
    async with open_office(site.config) as office:
        tasks = await office.board.list(limit=MOST_TASKS)
        left = {one.task.id: one.why for one in await left_to_operator(office.database, office.policies)}
        known, problems = await roster(office)
        agents = [
            (each, await office.mailbox.unread(each.name), await office.pulses.recent(each.name, PULSES))
            for each in known
        ]
        inbox = await office.mailbox.list(OPERATOR, "inbox", limit=LETTERS)
        archive = await office.mailbox.list(OPERATOR, "archive", limit=LETTERS)
        process = await asyncio.to_thread(serving, office.home)
    placed = [("needs" if task.id in left else _COLUMNS.get(task.state, "done"), task) for task in tasks]
    columns = [(name, [task for column, task in placed if column == name]) for name in COLUMNS]
    # Unread letters come first, and each part has the newest letter first.
    letters = (*reversed(inbox), *reversed(archive))[:LETTERS]
    template = "team_now.html" if "part" in request.query_params else "team.html"
    return page(
        request, template, columns=columns, left=left, agents=agents, letters=letters, process=process,
        any_tasks=bool(tasks), problems=problems,
    )  # fmt: skip


async def board_task(request: Request) -> Response:
    """Show one task of the board, with its result and evidence, its changes, and its history."""
    task_id, why = str(request.path_params["task"]), ""
    async with open_office(site_of(request).config) as office:
        found = await office.board.get(task_id)
        work = await office.approvals.work(found)
        proposal = None
        if found.state in (BoardState.REVIEW, BoardState.REJECTED):
            try:
                proposal = await office.approvals.look(found)
            except SandboxError as error:
                # A submission that cannot be read can still be rejected.
                why = str(error)
        log = await office.board.log(task_id)
    return page(
        request, "board_task.html", task=found, work=work, proposal=proposal, log=log, why=why,
        moves=moves_from(found.state),
    )  # fmt: skip


async def move(request: Request) -> Response:
    """Move a task to another state, for example to retry it, continue it, or remove it from the board."""
    task_id, form = str(request.path_params["task"]), await form_of(request)
    try:
        state = BoardState(value(form, "state"))
    except ValueError:
        raise ConfigurationError("there is no such state; use the page's own form") from None
    async with open_office(site_of(request).config) as office:
        await move_by_hand(office, task_id, state, value(form, "why").strip())
    return RedirectResponse(f"/team/tasks/{task_id}", 303)


async def review(request: Request) -> Response:
    """Approve or reject a submission. The approval covers only the changes that the page showed."""
    task_id, form = str(request.path_params["task"]), await form_of(request)
    why, submission = value(form, "why").strip(), number_in(value(form, "submission"))
    if submission is None:
        raise ConfigurationError("say which submission this is about; use the page's own form")
    async with open_office(site_of(request).config) as office:
        if value(form, "verdict") == "approve":
            found, digest = await office.board.get(task_id), value(form, "digest") or None
            ruling = await approve(office, found, why, submission=submission, digest=digest)
            if not ruling.completed:
                raise ConfigurationError("; ".join(ruling.why) or "it was not approved")
        elif not why:
            raise ConfigurationError("say why: the reason reaches the agent that does the task again")
        else:
            await office.approvals.reject(task_id, OPERATOR, why, submission=submission)
    return RedirectResponse(f"/team/tasks/{task_id}", 303)


async def add_task(request: Request) -> Response:
    """Add a task to the board."""
    site, form = site_of(request), await form_of(request)
    async with open_office(site.config) as office:
        project = await asyncio.to_thread(office.projects.name, site.project)
        await office.board.add(value(form, "text"), OPERATOR, assignee=value(form, "to") or None, project=project)
    return RedirectResponse("/team", 303)


async def send_letter(request: Request) -> Response:
    """Send a letter from the operator."""
    site, form = site_of(request), await form_of(request)
    async with open_office(site.config) as office:
        await office.mailbox.send(OPERATOR, value(form, "to").strip(), value(form, "text"))
    return RedirectResponse("/team", 303)


async def letter_read(request: Request) -> Response:
    """Mark a letter to the operator as read."""
    await form_of(request)
    async with open_office(site_of(request).config) as office:
        await read_letter(office, str(request.path_params["letter"]))
    return RedirectResponse("/team", 303)
