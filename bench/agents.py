"""Runs one task with artoo, or with a peer, in a directory of its own: `Agent` is all that a runner knows."""

from __future__ import annotations

import asyncio
import json
import os
import re
import sys
import tempfile
import time
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

_OUTPUT_KEPT = 2_000


@dataclass(frozen=True, slots=True)
class Ended:
    """How an agent ended. `claims` is what it says of its own work, in its own words; `code` its exit code.

    `effects` is what it changed outside of its directory, where that is looked at.
    """

    code: int | None
    claims: str
    answer: str
    seconds: float
    effects: tuple[str, ...] = ()


class Agent(Protocol):
    """Something that does a request in a directory with a model behind an OpenAI-compatible address."""

    @property
    def name(self) -> str:
        """For the page of results."""
        ...

    async def work(self, request: str, directory: Path, model: Mapping[str, str], seconds: float) -> Ended:
        """Do the request and end within `seconds`. `model` holds OPENAI_BASE_URL, OPENAI_API_KEY, OPENAI_MODEL."""
        ...


@dataclass(frozen=True, slots=True)
class Artoo:
    """artoo's command line, with a home of its own for each task. `apply`: what takes effect unasked.

    `before` stands before its command line.
    """

    program: str
    name: str = "artoo"
    apply: str = "all"
    before: tuple[str, ...] = ()

    async def work(self, request: str, directory: Path, model: Mapping[str, str], seconds: float) -> Ended:
        """See Agent."""
        with tempfile.TemporaryDirectory(prefix="home-", dir=directory.parent) as home:
            words = (*self.before, self.program, "run", "--json", "--apply", self.apply, request)
            code, output, took = await _run(words, directory, {**model, "ARTOO_HOME": home}, seconds)
        try:
            told = json.loads(output.splitlines()[-1])
        except (IndexError, ValueError):
            return Ended(code, "nothing", output[-_OUTPUT_KEPT:], took)
        return Ended(code, f"{told['status']}, {told['assurance']}", str(told["answer"])[:_OUTPUT_KEPT], took)


@dataclass(frozen=True, slots=True)
class MiniSweAgent:
    """mini-swe-agent's command line with its own defaults, in the directory itself."""

    program: str = "mini"
    name: str = "mini-swe-agent"

    async def work(self, request: str, directory: Path, model: Mapping[str, str], seconds: float) -> Ended:
        """See Agent."""
        with tempfile.TemporaryDirectory(prefix="mini-bench-") as home:
            record = Path(home) / "trajectory.json"
            named = f"openai/{model['OPENAI_MODEL']}"
            words = (self.program, "-y", "--exit-immediately", "-m", named, "-t", request, "-o", str(record))
            own = {**model, "HOME": home, "MSWEA_CONFIGURED": "true", "MSWEA_COST_TRACKING": "ignore_errors"}
            code, output, took = await _run(words, directory, own, seconds)
            try:
                told = json.loads(record.read_text(encoding="utf-8"))["info"]
            except (OSError, ValueError, KeyError):
                return Ended(code, "nothing", output[-_OUTPUT_KEPT:], took)
        return Ended(code, str(told.get("exit_status")), str(told.get("submission", ""))[:_OUTPUT_KEPT], took)


@dataclass(frozen=True, slots=True)
class OneCommand:
    """The floor: one question, one bash command, no second look."""

    name: str = "one bash command"

    async def work(self, request: str, directory: Path, model: Mapping[str, str], seconds: float) -> Ended:
        """See Agent."""
        import aiohttp

        asked = (
            "Answer with one bash script in a fenced block that does this in the current directory:\n\n" + request
        )
        body = {"model": model["OPENAI_MODEL"], "messages": [{"role": "user", "content": asked}], "temperature": 0}
        begun = time.monotonic()
        headers = {"Authorization": f"Bearer {model['OPENAI_API_KEY']}"}
        limit = aiohttp.ClientTimeout(total=seconds)
        async with (
            aiohttp.ClientSession(headers=headers, timeout=limit) as session,
            session.post(f"{model['OPENAI_BASE_URL']}/chat/completions", json=body) as response,
        ):
            text = str((await response.json())["choices"][0]["message"]["content"])
        found = re.search(r"```[a-z]*\n(.*?)```", text, re.DOTALL)
        script = found[1] if found else text
        code, output, _ = await _run(("bash", "-c", script), directory, {}, seconds)
        return Ended(code, f"exit {code}", output[-_OUTPUT_KEPT:], time.monotonic() - begun)


@dataclass(frozen=True, slots=True)
class Bare:
    """Nothing between a script and the machine: the fenced block of the request runs, to see what it would do."""

    name: str = "nothing between"
    before: tuple[str, ...] = ()

    async def work(self, request: str, directory: Path, model: Mapping[str, str], seconds: float) -> Ended:
        """See Agent."""
        found = re.search(r"```([a-z]+)\n(.*?)\n```", request, re.DOTALL)
        if found is None:
            return Ended(None, "nothing", "the request holds no script", 0.0)
        program = sys.executable if found[1] == "python" else "bash"
        code, output, took = await _run((*self.before, program, "-c", found[2]), directory, {}, seconds)
        return Ended(code, f"exit {code}", output[-_OUTPUT_KEPT:], took)


async def _run(
    words: tuple[str, ...], directory: Path, environ: Mapping[str, str], seconds: float
) -> tuple[int | None, str, float]:
    """Exit code (None: the time was up), standard output, and seconds."""
    begun = time.monotonic()
    process = await asyncio.create_subprocess_exec(
        *words,
        cwd=directory,
        env={**os.environ, **environ},
        stdin=asyncio.subprocess.DEVNULL,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
        start_new_session=True,
    )
    try:
        async with asyncio.timeout(seconds):
            output, errors = await process.communicate()
    except TimeoutError:
        os.killpg(process.pid, 9)
        await process.wait()
        return None, "the time was up", time.monotonic() - begun
    said = output if output.strip() else errors
    return process.returncode, said.decode("utf-8", "replace"), time.monotonic() - begun
