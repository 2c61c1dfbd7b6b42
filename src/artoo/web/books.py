"""The web pages of memory, with answers to proposals, and of the Auditor's reports and verification."""

from __future__ import annotations

import asyncio

from starlette.requests import Request
from starlette.responses import RedirectResponse, Response

from artoo.auditor.layout import audit_directory
from artoo.auditor.reading import earlier_reports, last_anchors, report_so_far
from artoo.auditor.verify import Verification
from artoo.auditor.verify import verify as verified
from artoo.contracts.errors import ArtooError, ConfigurationError
from artoo.contracts.tags import Pair, pair_named
from artoo.memory.views import Explanation, Overview
from artoo.runtime.app.system import SystemClock
from artoo.runtime.memory.books import opened_books, settle_proposal
from artoo.runtime.task.persona import accepted_count
from artoo.store.address import parse
from artoo.tasklog.layout import tasks_directory
from artoo.web.site import Site, form_of, page, site_of, value

REPORTS = 10
CHAINS = 50
"""The most hash chains whose last anchor is listed."""


async def memory(request: Request) -> Response:
    """Show the pyramid of memory. With `pair` (or `space` and `entity`), also show one pair over time."""
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
    """Accept or refuse a proposal of the Dreamer for the thinking layer."""
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
    """Show the findings since the last report, the earlier reports, and the last anchors of the hash chains."""
    home = site_of(request).home
    now = await asyncio.to_thread(report_so_far, home, SystemClock().now())
    earlier = await asyncio.to_thread(earlier_reports, home, REPORTS)
    anchors = await asyncio.to_thread(last_anchors, home)
    reports = [*([now] if now is not None else []), *reversed(earlier)]
    return page(
        request, "audit.html", now=now, reports=reports, anchors=anchors[:CHAINS], chains=len(anchors), proof=None
    )


async def verify(request: Request) -> Response:
    """Verify the hash chains of the logs, and show the file and line of each error."""
    await form_of(request)
    proof = await asyncio.to_thread(proof_of, site_of(request))
    return page(request, "audit.html", now=None, reports=(), anchors=(), chains=0, proof=proof)


def proof_of(site: Site) -> Verification:
    """Verify the logs as `artoo audit verify` does. With a shared store, also verify them against its records."""
    found = verified(audit_directory(site.home), tasks_directory(site.home))
    if site.config.store is not None:
        # The database driver is installed only with an optional extra.
        from artoo.runtime.cluster.remote_logs import verify_shared

        verify_shared(site.home, parse(site.config.store), found)
    return found
