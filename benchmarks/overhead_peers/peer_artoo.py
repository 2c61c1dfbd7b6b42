"""artoo itself: the whole runtime with its bus, roles, client and task log, and one tool of the user's."""

from __future__ import annotations

import asyncio
import os
import sys
import tempfile
from pathlib import Path

import job

from artoo import Artoo, Config, RunOptions, tool
from artoo.runtime.config.model import Limits, ModelEndpoint, Models

_ENDPOINT = ModelEndpoint(concurrency=128)
_CONFIG = Config(
    models=Models(brain=_ENDPOINT, tool=_ENDPOINT), limits=Limits(subtasks=64, calls=1_000, tokens=None)
)


@tool(writes=False)
async def lookup(query: str) -> str:
    """Looks up a fact."""
    return job.lookup(query)


async def main(base_url: str, place: Path) -> None:
    """Takes orders with one Artoo, in a home, a project and a workspace of its own."""
    environ = {"OPENAI_BASE_URL": base_url, "OPENAI_MODEL": job.MODEL, "OPENAI_API_KEY": job.KEY}
    project = place / "project"
    project.mkdir()
    common = {"project": project, "workspace": place / "workspace"}
    async with Artoo(_CONFIG.at_home(place / "home"), tools=[lookup], environ=environ) as artoo:

        async def run(text: str, options: RunOptions) -> str:
            result = await artoo.run(text, options=options)
            if result.directive != "accept":
                raise SystemExit(f"the benchmark's own task failed: {result}")
            return result.output

        async def chain() -> str:
            return await run(job.GOAL, RunOptions(strict_roles=True, memory=False, **common))

        async def fan(parts: int) -> str:
            return await run(job.fan_goal(parts), RunOptions(memory=False, **common))

        await job.take_orders(chain, fan, job.own_output())


if __name__ == "__main__":
    os.environ.pop("ARTOO_HOME", None)
    with tempfile.TemporaryDirectory(prefix="artoo-overhead-") as directory:
        asyncio.run(main(sys.argv[1], Path(directory)))
