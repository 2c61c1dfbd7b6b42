"""Memory, audit and cost: what was learnt, what the Auditor saw, what it all took."""

from __future__ import annotations

import asyncio
from collections import defaultdict
from dataclasses import dataclass, field

from starlette.requests import Request
from starlette.responses import RedirectResponse, Response

from artoo.auditor.layout import audit_directory
from artoo.auditor.reading import earlier_reports, last_anchors, report_so_far
from artoo.auditor.verify import Verification
from artoo.auditor.verify import verify as verified
from artoo.contracts.errors import ArtooError, ConfigurationError
from artoo.contracts.solution import Money
from artoo.contracts.tags import Pair, pair_named
from artoo.memory.views import Explanation, Overview
from artoo.runtime.app.system import SystemClock
from artoo.runtime.memory.books import opened_books, settle_proposal
from artoo.runtime.task.persona import accepted_count
from artoo.store.address import parse
from artoo.tasklog.layout import tasks_directory
from artoo.tasklog.reader import TaskSummary, list_tasks
from artoo.web.site import Site, form_of, page, site_of, value
from artoo.words.outcome import ending_of

COUNTED = 500
"""Tasks whose cost is added up."""
REPORTS = 10
CHAINS = 50
"""Chains whose last anchor is listed."""


async def memory(request: Request) -> Response:
    """The pyramid; with `pair` (or `space` and `entity`) one pair over time."""
    site = site_of(request)
    query = request.query_params
    asked = query.get("pair", "").strip()
    pair = pair_named(asked) if asked else None
    if {"space", "entity"} <= query.keys():
        pair = Pair(query["space"], query["entity"])
    try:
        found, explained = await _remembered(site, pair)
    except (ArtooError, OSError) as error:
        return page(request, "memory.html", found=None, explained=None, why=str(error), asked=asked)
    accepted = await asyncio.to_thread(accepted_count, site.home)
    return page(request, "memory.html", found=found, explained=explained, why="", asked=asked, accepted=accepted)


async def _remembered(site: Site, pair: Pair | None) -> tuple[Overview, Explanation | None]:
    async with opened_books(site.config) as books:
        now = SystemClock().now()
        return await books.overview(now), None if pair is None else await books.explain(pair, now)


async def propose(request: Request) -> Response:
    """Accepts or refuses what the Dreamer proposed for the thinking layer."""
    form = await form_of(request)
    verdict = value(form, "verdict")
    if verdict not in ("accept", "refuse"):
        raise ConfigurationError("accept or refuse it; use the page's own form")
    proposal_id = str(request.path_params["proposal"])
    site = site_of(request)
    async with opened_books(site.config) as books:
        await settle_proposal(books, site.home, proposal_id, accept=verdict == "accept")
    return RedirectResponse("/memory", 303)


async def audit(request: Request) -> Response:
    """What the Auditor saw since its last report, its earlier reports, and its chains as they are anchored."""
    home = site_of(request).home
    now = await asyncio.to_thread(report_so_far, home, SystemClock().now())
    earlier = await asyncio.to_thread(earlier_reports, home, REPORTS)
    anchors = await asyncio.to_thread(last_anchors, home)
    reports = [*([now] if now is not None else []), *reversed(earlier)]
    return page(
        request, "audit.html", now=now, reports=reports, anchors=anchors[:CHAINS], chains=len(anchors), proof=None
    )


async def verify(request: Request) -> Response:
    """Proves the logs whole, or names file and line of what is not."""
    await form_of(request)
    proof = await asyncio.to_thread(proof_of, site_of(request))
    return page(request, "audit.html", now=None, reports=(), anchors=(), chains=0, proof=proof)


def proof_of(site: Site) -> Verification:
    """What `artoo audit verify` finds: with a shared store, also what that knows of this machine and of others."""
    found = verified(audit_directory(site.home), tasks_directory(site.home))
    if site.config.store is not None:
        from artoo.runtime.cluster.remote_logs import verify_shared  # the driver is there only with the extra

        verify_shared(site.home, parse(site.config.store), found)
    return found


@dataclass(slots=True)
class Sum:
    """What some tasks took. `money` by currency, the operator's label; empty where no prices are configured."""

    tasks: int = 0
    calls: int = 0
    tokens: int = 0
    tools: int = 0
    milliseconds: int = 0
    money: dict[str, float] = field(default_factory=dict[str, float])

    @property
    def spent(self) -> str:
        """The money. Amounts of two currencies stand beside each other; nobody here knows a rate."""
        return " + ".join(f"{amount:.2f} {currency}".strip() for currency, amount in sorted(self.money.items()))

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
            self.pay(cost.money)

    def pay(self, money: Money) -> None:
        """Adds what priced calls have cost."""
        self.money[money.currency] = self.money.get(money.currency, 0.0) + money.amount


async def cost(request: Request) -> Response:
    """What the latest tasks took, by day and one by one."""
    tasks = await asyncio.to_thread(list_tasks, site_of(request).home, COUNTED)
    total, days = Sum(), defaultdict[str, Sum](Sum)
    for each in tasks:
        total.add(each)
        days[f"{each.started.astimezone():%Y-%m-%d}"].add(each)
    ended = [(each, ending_of(each.result, running=each.running)) for each in tasks if each.result is not None]
    by_day = [(day, found) for day, found in sorted(days.items(), reverse=True) if found.tasks]
    return page(request, "cost.html", total=total, days=by_day, tasks=ended[:100], counted=len(tasks))
