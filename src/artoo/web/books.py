"""Memory, audit and cost: what was learnt, what the Auditor saw, what it all took. Nothing is changed here."""

from __future__ import annotations

import asyncio
from collections import defaultdict
from dataclasses import dataclass

from starlette.requests import Request
from starlette.responses import Response

from artoo.auditor.layout import audit_directory
from artoo.auditor.reading import earlier_reports, report_now
from artoo.auditor.verify import Verification
from artoo.auditor.verify import verify as verified
from artoo.contracts.errors import ArtooError
from artoo.contracts.memory import MemoryAction
from artoo.contracts.tags import Pair
from artoo.memory.environment import open_environment
from artoo.memory.insight import Explanation, Overview, explain, overview
from artoo.runtime.system import SystemClock
from artoo.tasklog.layout import tasks_directory
from artoo.tasklog.reader import TaskSummary, list_tasks
from artoo.web.site import Site, form_of, page, site_of
from artoo.web.tasks import state_name

COUNTED = 500
"""Tasks whose cost is added up."""
REPORTS = 10


async def memory(request: Request) -> Response:
    """The pyramid; with `space` and `entity` one pair over time."""
    site = site_of(request)
    query = request.query_params
    pair = Pair(query["space"], query["entity"]) if {"space", "entity"} <= query.keys() else None
    try:
        found, explained = await asyncio.to_thread(_remembered, site, pair)
    except (ArtooError, OSError) as error:
        return page(request, "memory.html", found=None, explained=None, why=str(error), actions=())
    actions = tuple(
        (action, found.strongest[action]) for action in MemoryAction if action is not MemoryAction.IGNORE
    )
    return page(request, "memory.html", found=found, explained=explained, why="", actions=actions)


def _remembered(site: Site, pair: Pair | None) -> tuple[Overview, Explanation | None]:
    environment = open_environment(site.config.memory_path)
    try:
        now = SystemClock().now()
        return overview(environment, now), None if pair is None else explain(environment, pair, now)
    finally:
        environment.close()


async def audit(request: Request) -> Response:
    """What the Auditor has on record now, and its earlier reports."""
    home = site_of(request).home
    now = await asyncio.to_thread(report_now, home, SystemClock().now())
    earlier = await asyncio.to_thread(earlier_reports, home, REPORTS)
    return page(request, "audit.html", report=now, earlier=earlier, proof=None)


async def verify(request: Request) -> Response:
    """Proves the logs whole, or names file and line of what is not."""
    await form_of(request)
    proof = await asyncio.to_thread(_proved, site_of(request))
    return page(request, "audit.html", report=None, earlier=(), proof=proof)


def _proved(site: Site) -> Verification:
    return verified(audit_directory(site.home), tasks_directory(site.home))


@dataclass(slots=True)
class Sum:
    """What some tasks took. `money` is None where no prices are configured."""

    tasks: int = 0
    calls: int = 0
    tokens: int = 0
    tools: int = 0
    milliseconds: int = 0
    money: float | None = None
    currency: str = ""

    def add(self, task: TaskSummary) -> None:
        """One task more; one that has no result has no account either."""
        if task.result is None:
            return
        cost = task.result.cost
        self.tasks += 1
        self.calls += cost.llm_calls
        self.tokens += cost.prompt_tokens + cost.completion_tokens
        self.tools += cost.tool_calls
        self.milliseconds += cost.elapsed_ms
        if cost.money is not None:
            self.money = (self.money or 0.0) + cost.money.amount
            self.currency = cost.money.currency


async def cost(request: Request) -> Response:
    """What the latest tasks took, by day and one by one."""
    tasks = await asyncio.to_thread(list_tasks, site_of(request).home, COUNTED)
    total, days = Sum(), defaultdict[str, Sum](Sum)
    for each in tasks:
        total.add(each)
        days[f"{each.started.astimezone():%Y-%m-%d}"].add(each)
    ended = [(each, state_name(each.result, each.running)) for each in tasks if each.result is not None]
    by_day = [(day, found) for day, found in sorted(days.items(), reverse=True) if found.tasks]
    return page(request, "cost.html", total=total, days=by_day, tasks=ended[:100], counted=len(tasks))
