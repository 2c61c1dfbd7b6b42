"""How a task begins: from a request to roles that are ready to run."""

from __future__ import annotations

from collections.abc import Callable, Coroutine, Sequence
from dataclasses import dataclass

from artoo.contracts.envelope import Envelope
from artoo.contracts.errors import ConfigurationError
from artoo.contracts.request import Turn, UserRequest
from artoo.contracts.roles import Role
from artoo.contracts.solution import FinalResult
from artoo.llm.budget import BudgetedModel
from artoo.runtime.opening import opened_as
from artoo.runtime.options import RunOptions
from artoo.runtime.stage import LiveStage
from artoo.runtime.task import TaskRun
from artoo.runtime.thinking import accepted_texts
from artoo.runtime.workshop import Workshop
from artoo.tasklog.lock import TaskLock


@dataclass(frozen=True, slots=True)
class Begun:
    """A task that is ready to run, and locked. `earlier` is what it said in another process."""

    task: TaskRun
    play: Callable[[], Coroutine[None, None, FinalResult]]
    lock: TaskLock
    earlier: tuple[Envelope, ...] = ()


async def begin(shop: Workshop, text: str, history: Sequence[Turn], options: RunOptions) -> Begun:
    """A new task. Raises ConfigurationError for what cannot be run."""
    if not text.strip():
        raise ConfigurationError("the request is empty; say what is wanted")
    model, budget = shop.model, shop.budget(options.budgets)
    task_id = shop.ids.new()
    roots = shop.roots(options)
    answers = shop.answers(options, roots)
    memory = await shop.memory(options)
    settings = shop.settings(options, accepted_texts(shop.config.home))
    hands = await shop.hands(task_id, roots, text, shop.bus.port(Role.GATE, task_id))
    if options.behalf is not None:
        await options.behalf.began(task_id)
        hands, model = options.behalf.hands(hands), options.behalf.model(model)
    metered = BudgetedModel(model, budget)
    stage = LiveStage(task_id, shop.bus, metered, hands, shop.clock, shop.ids, memory, shop.durable)
    task = TaskRun(task_id, stage, settings, budget.cost, answers)
    opened = opened_as(settings, shop.limits(options), options.allow, memory=memory is not None)
    request = UserRequest(
        text=text, project=str(roots.project), workspace=str(roots.workspace), history=tuple(history)
    )
    return Begun(task, lambda: task.run(opened, request), shop.locked(task_id))
