"""Begin a task from a request, with working directory, piped material, workspace and settings."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Coroutine, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from pathlib import Path

from artoo.contracts.criteria import by_command
from artoo.contracts.envelope import Envelope
from artoo.contracts.errors import ConfigurationError
from artoo.contracts.request import Turn, UserRequest
from artoo.contracts.roles import Role
from artoo.contracts.solution import FinalResult
from artoo.contracts.text import well_formed
from artoo.llm.budget import BudgetedModel
from artoo.ports.model import Tier
from artoo.ports.workspace import Workspace
from artoo.runtime.app.budgets import price_list
from artoo.runtime.app.exception_groups import alone
from artoo.runtime.app.images import Album, demand_eyes
from artoo.runtime.app.run_options import RunOptions, listed
from artoo.runtime.app.services import Workshop
from artoo.runtime.changes.continuing import continue_pending
from artoo.runtime.changes.settlement_history import with_what_became
from artoo.runtime.task.agent_context import Behalf
from artoo.runtime.task.persona import accepted_texts
from artoo.runtime.task.role_context import TaskContext
from artoo.runtime.task.task_header import opened_as
from artoo.runtime.task.task_run import TaskRun
from artoo.tasklog.lock import TaskLock


@dataclass(frozen=True, slots=True)
class Begun:
    """A task that is ready to run. `lock` is acquired when `play` runs. The caller of `play` must release the lock
    and close `workspace`.

    `earlier`: the messages of the task that another process published. `ended` is called with the result of the
    task.
    """

    task: TaskRun
    play: Callable[[], Coroutine[None, None, FinalResult]]
    lock: TaskLock
    workspace: Workspace
    earlier: tuple[Envelope, ...] = ()
    ended: Callable[[FinalResult], Awaitable[None]] | None = None


def require_request(given: object) -> None:
    """Raise ConfigurationError unless a request is a text and not empty."""
    if not isinstance(given, str):
        raise ConfigurationError(f"the request must be a text, and is {given!r}")
    if not given.strip():
        raise ConfigurationError("the request is empty; say what is wanted")


MATERIAL = Path("/tmp/input")
"""The file in which the tools and commands of a task find the data that belong to its request.

The data are not part of the request, because the user did not write them. Therefore the user is asked before a host
is reached whose name comes from them.
"""


def _with_material(text: str, material: bytes) -> str:
    if not material:
        return text
    lines = material.count(b"\n") + (not material.endswith(b"\n"))
    return f"{text}\n\n[Input of this request: the file {MATERIAL}, {len(material):,} bytes, {lines:,} lines.]"


async def _as_it_stands(home: Path, history: Sequence[Turn], project: Path) -> tuple[Turn, ...]:
    """Add the present state of the changes to each earlier turn. If there are any turns, this is done in a
    thread."""
    return await asyncio.to_thread(with_what_became, home, history, project) if history else ()


def _minutes_east(now: datetime) -> int:
    """Return the offset of this machine's zone from UTC at that time."""
    offset = now.astimezone().utcoffset()
    return 0 if offset is None else round(offset.total_seconds() / 60)


async def begin(shop: Workshop, text: str, history: Sequence[Turn], options: RunOptions) -> Begun:
    """Return a new task. Raises ConfigurationError if it cannot be run."""
    require_request(text)
    task_id = shop.ids.new()
    try:
        return await _begun(shop, task_id, text, history, options)
    except BaseException:
        shop.bus.close_task(task_id)
        raise


async def _begun(shop: Workshop, task_id: str, text: str, history: Sequence[Turn], options: RunOptions) -> Begun:
    history = listed("history", history, Turn)
    text, home = well_formed(_with_material(text, options.material)), shop.config.home
    album = await asyncio.to_thread(Album.of, options.images) if options.images else Album()
    if not shop.given_model:
        # The first task reads the catalogue from disk, so this is done in a thread.
        await asyncio.to_thread(price_list, shop.config, shop.environ_of(options))
    budget = shop.budget(options)
    roots = shop.roots(options)
    answers = shop.answers(options, roots, task_id)
    if options.plan and answers.confirm is None:
        raise ConfigurationError("no user can approve the plan here; omit --plan, or run the command in a terminal")
    memory = await shop.memory(options)
    behalf, mode = options.behalf or Behalf(), options.mode(shop.config.apply)
    model = behalf.model(shop.model_of(options))
    settings, brain = shop.settings(options, accepted_texts(home)), await model.known(Tier.BRAIN)
    # The task of a small model has the effort `quick`, unless the user chose another effort.
    quick = brain.small and options.effort is None
    settings = replace(
        settings,
        allowance=replace(settings.allowance, effort="quick") if quick else settings.allowance,
        brain=brain,
        tool=await model.known(Tier.TOOL),
        project=str(roots.project),
        apply=mode,
        unasked=mode.unasked,
    )
    demand_eyes(album.images, (settings.brain, settings.tool))
    turns, earlier = await _as_it_stands(home, history, roots.project), ""
    if history and behalf.workspace is None:
        earlier = await asyncio.to_thread(continue_pending, home, history, roots.project, task_id)
    if earlier:
        marked = {"here": True}
        turns = tuple(each.model_copy(update=marked) if each.task_id == earlier else each for each in turns)
    workspace = behalf.workspace or await shop.workspace(task_id, roots)
    if options.material:
        await workspace.write(MATERIAL, options.material)
    servers = options.caller.servers if options.caller is not None else ()
    gate = shop.bus.port(Role.GATE, task_id)
    made = await shop.hands(
        *(gate, workspace, text, mode, None, behalf.settling, servers),
        permitted=answers.policies,
        verify=options.verify,
    )
    await behalf.began(task_id)
    budgeted = album.shown_to(BudgetedModel(model, budget))
    stage = TaskContext(task_id, shop.bus, budgeted, behalf.hands(made), shop.clock, shop.ids, memory)
    task = TaskRun(task_id, stage, settings, budget.cost, answers, raise_limits=budget.raise_limits)
    opened = opened_as(
        settings,
        options.allow,
        memory=memory is not None,
        money=options.budgets.over(shop.config.limits).money,
        asked_by=options.caller and options.caller.asked_by,
    )
    request = UserRequest(
        text=text,
        project=str(roots.project),
        workspace=str(roots.workspace),
        history=tuple(
            each.model_copy(update={"here": True}) if each.task_id == earlier else each for each in turns
        ),
        checks=tuple(map(by_command, options.checks)),
        returns=dict(options.returns) if options.returns is not None else None,
        images=album.images,
        east=_minutes_east(shop.clock.now()),
    )
    lock = TaskLock(home, task_id)

    def claim() -> None:
        lock.take()
        album.keep(home, task_id)

    return Begun(task, lambda: alone(task.run(opened, request, claim)), lock, workspace, ended=made.ended)
