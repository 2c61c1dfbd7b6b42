"""Homes that are served by real processes of `artoo serve`, with a model that plays every role by script."""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import re
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import cast

from team_world import exists, plan, write

from artoo.testing import Asked, slow
from artoo.testing.replies import Scripted


@dataclass(slots=True)
class Serving:
    """A home that is served by one process after another. `more`: settings beside those of every home."""

    place: Path
    base_url: str
    more: tuple[tuple[str, str], ...] = ()

    @property
    def environ(self) -> dict[str, str]:
        return {
            **os.environ,
            "ARTOO_HOME": str(self.place / "home"),
            "HOME": str(self.place),
            "ARTOO_WORKSPACE": str(self.place / "out"),
            "ARTOO_MEMORY__ENABLED": "false",
            "OPENAI_BASE_URL": self.base_url,
            "OPENAI_MODEL": "scripted",
            **dict(self.more),
        }

    async def start(self) -> asyncio.subprocess.Process:
        """`artoo serve --json`, which writes to a file that outlives it."""
        with self.output.open("ab") as output, self.errors.open("ab") as errors:
            return await asyncio.create_subprocess_exec(
                *(sys.executable, "-m", "artoo", "serve", "--json"), env=self.environ, stdout=output, stderr=errors
            )

    async def killed_after(self, seconds: float) -> None:
        """Starts one, and kills it without warning."""
        process = await self.start()
        try:
            async with asyncio.timeout(seconds):
                await process.wait()
        except TimeoutError:
            process.kill()
            await process.wait()
        assert process.returncode == -9, self.errors.read_text()

    @property
    def output(self) -> Path:
        return self.place / "told.jsonl"

    @property
    def errors(self) -> Path:
        return self.place / "errors.txt"

    def greetings(self) -> int:
        """How many of them have begun to work."""
        return self.errors.read_text().count("at work") if self.errors.exists() else 0

    def told(self) -> set[str]:
        """The transitions that all of them printed; a line that a kill cut is none."""
        events: set[str] = set()
        for line in self.output.read_bytes().split(b"\n"):
            with contextlib.suppress(ValueError):
                fields = cast("dict[str, str]", json.loads(line))
                if fields["kind"] == "TaskMoved":
                    events.add(fields["event"])
        return events


def script(asked: Asked) -> Scripted:
    """Every role, slowly enough to be killed at it."""
    found = re.search(r"(?:Request|Your subtask):\n[^\n]*?(\w+)\.txt", asked.user)
    name = found[1] if found else ""
    match asked.contract:
        case "Plan":
            return slow(plan(f"write {name}.txt", exists(f"{name}.txt")), 0.1)
        case "ExecutorStep":
            return slow(write(f"{name}.txt", f"{name}\n"), 0.15)
        case "ReviewReport":
            return slow({"verdict": "approve", "reasons": []}, 0.1)
        case _:
            return {"next_moves": []}
