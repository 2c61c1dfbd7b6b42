"""Runs one task with artoo, or with a peer, in a directory of its own: `Agent` is all that a runner knows."""

from __future__ import annotations

import asyncio
import json
import os
import re
import sys
import tempfile
import time
from collections.abc import AsyncGenerator, Mapping
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, Protocol

from artoo import Artoo as ArtooLibrary
from artoo import Budgets, ConfirmationRequest, RunOptions
from artoo.ports.confirm import Confirm
from bench.suite import Task
from bench.world import ToolFailed, World, serving

_OUTPUT_KEPT = 2_000


@dataclass(frozen=True, slots=True)
class Ended:
    """The end of an agent's work. `claims` is what it says of its own work, in its own words; `code` its exit code.

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
        """Return the name for the page of results."""
        ...

    async def work(self, task: Task, directory: Path, model: Mapping[str, str], seconds: float) -> Ended:
        """Do the task's request and end within `seconds`.

        `model` holds OPENAI_BASE_URL, OPENAI_API_KEY and OPENAI_MODEL.
        """
        ...


@dataclass(frozen=True, slots=True)
class Artoo:
    """artoo's command line, with a home of its own for each task. `apply`: what takes effect unasked.

    `allow` are its standing permissions, and `before` stands before its command line.
    """

    program: str
    name: str = "artoo"
    apply: str = "all"
    allow: tuple[str, ...] = ()
    before: tuple[str, ...] = ()

    async def work(self, task: Task, directory: Path, model: Mapping[str, str], seconds: float) -> Ended:
        """See Agent."""
        with tempfile.TemporaryDirectory(prefix="home-", dir=directory.parent) as home:
            permitted = (word for line in self.allow for word in ("--allow", line))
            words = (*self.before, self.program, "run", "--json", "--apply", self.apply, *permitted, task.request)
            async with _offered(task.world, Path(home)):
                code, output, took = await _run(words, directory, {**model, "ARTOO_HOME": home}, seconds)
        try:
            told = json.loads(output.splitlines()[-1])
        except (IndexError, ValueError):
            return Ended(code, "nothing", output[-_OUTPUT_KEPT:], took)
        return Ended(code, f"{told['status']}, {told['assurance']}", str(told["answer"])[:_OUTPUT_KEPT], took)


@dataclass(frozen=True, slots=True)
class Library:
    """artoo as a library in this process. `confirm` answers its questions; if it is None, every answer is no."""

    name: str = "artoo as a library"
    apply: Literal["new", "all"] = "all"
    allow: tuple[str, ...] = ()
    confirm: Confirm | None = None

    async def work(self, task: Task, directory: Path, model: Mapping[str, str], seconds: float) -> Ended:
        """See Agent."""
        begun = time.monotonic()
        budgets = Budgets(seconds=int(seconds))
        options = RunOptions(project=directory, apply=self.apply, allow=self.allow, budgets=budgets)
        with tempfile.TemporaryDirectory(prefix="home-", dir=directory.parent) as home:
            async with _offered(task.world, Path(home)):
                environ = {**os.environ, **model, "ARTOO_HOME": home}
                async with ArtooLibrary(environ=environ, confirm=self.confirm) as library:
                    result = await library.run(task.request, options=options)
        claims = f"{result.directive.value}, {result.assurance.value}"
        return Ended(0, claims, str(result.output)[:_OUTPUT_KEPT], time.monotonic() - begun)


async def agree(request: ConfirmationRequest) -> bool:
    """Answer every question with yes."""
    return True


@asynccontextmanager
async def _offered(world: World | None, home: Path) -> AsyncGenerator[None]:
    """Offer a world's tools to the artoo of this home."""
    async with serving(world) as servers:
        if servers:
            (home / "mcp.json").write_text(json.dumps({"mcpServers": servers}), encoding="utf-8")
        yield


@dataclass(frozen=True, slots=True)
class MiniSweAgent:
    """mini-swe-agent's command line with its own defaults, in the directory itself."""

    program: str = "mini"
    name: str = "mini-swe-agent"

    async def work(self, task: Task, directory: Path, model: Mapping[str, str], seconds: float) -> Ended:
        """See Agent."""
        with tempfile.TemporaryDirectory(prefix="mini-bench-") as home:
            record = Path(home) / "trajectory.json"
            named = f"openai/{model['OPENAI_MODEL']}"
            words = (self.program, "-y", "--exit-immediately", "-m", named, "-t", task.request, "-o", str(record))
            own = {**model, "HOME": home, "MSWEA_CONFIGURED": "true", "MSWEA_COST_TRACKING": "ignore_errors"}
            code, output, took = await _run(words, directory, own, seconds)
            try:
                told = json.loads(record.read_text(encoding="utf-8"))["info"]
            except (OSError, ValueError, KeyError):
                return Ended(code, "nothing", output[-_OUTPUT_KEPT:], took)
        return Ended(code, str(told.get("exit_status")), str(told.get("submission", ""))[:_OUTPUT_KEPT], took)


@dataclass(frozen=True, slots=True)
class OpenHands:
    """The OpenHands SDK with its default tools without a browser, in the directory itself.

    `program` is a Python of 3.12 or later that has openhands-sdk and openhands-tools.
    """

    program: str = "python3"
    name: str = "OpenHands SDK"

    async def work(self, task: Task, directory: Path, model: Mapping[str, str], seconds: float) -> Ended:
        """See Agent."""
        with tempfile.TemporaryDirectory(prefix="openhands-bench-") as home:
            words = (self.program, "-c", _OPENHANDS, task.request)
            code, output, took = await _run(words, directory, {**model, "HOME": home}, seconds)
        claims, _, answer = output.rpartition(_MARK)[2].partition(":")
        return Ended(code, claims if code == 0 else "nothing", answer.strip()[-_OUTPUT_KEPT:] or output, took)


_MARK = "--- ended: "
_OPENHANDS = f"""
import os, sys
from openhands.sdk import LLM, Conversation
from openhands.sdk.conversation.response_utils import get_agent_final_response
from openhands.tools.preset.default import get_default_agent
named, address, key = (os.environ["OPENAI_" + name] for name in ("MODEL", "BASE_URL", "API_KEY"))
llm = LLM(model="openai/" + named, base_url=address, api_key=key)
conversation = Conversation(agent=get_default_agent(llm=llm, cli_mode=True), workspace=os.getcwd())
conversation.send_message(sys.argv[1])
conversation.run()
state = conversation.state
print({_MARK!r} + state.execution_status.value + ":" + get_agent_final_response(state.events))
"""


@dataclass(frozen=True, slots=True)
class OneCommand:
    """The floor: one question, one bash command, no second look."""

    name: str = "one bash command"

    async def work(self, task: Task, directory: Path, model: Mapping[str, str], seconds: float) -> Ended:
        """See Agent."""
        import aiohttp

        asked = (
            "Answer with one bash script in a fenced block that does this in the current directory:\n\n"
            + task.request
        )
        body = {"model": model["OPENAI_MODEL"], "messages": [{"role": "user", "content": asked}], "temperature": 0}
        begun = time.monotonic()
        headers = {"Authorization": f"Bearer {model['OPENAI_API_KEY']}"}
        limit = aiohttp.ClientTimeout(total=seconds)
        try:
            async with (
                aiohttp.ClientSession(headers=headers, timeout=limit) as session,
                session.post(f"{model['OPENAI_BASE_URL']}/chat/completions", json=body) as response,
            ):
                text = str((await response.json())["choices"][0]["message"]["content"])
        except (TimeoutError, aiohttp.ClientError, KeyError) as error:
            return Ended(None, "nothing", f"no answer of the model: {error!r}", time.monotonic() - begun)
        found = re.search(r"```[a-z]*\n(.*?)```", text, re.DOTALL)
        script = found[1] if found else text
        code, output, _ = await _run(("bash", "-c", script), directory, {}, seconds)
        return Ended(code, f"exit {code}", output[-_OUTPUT_KEPT:], time.monotonic() - begun)


@dataclass(frozen=True, slots=True)
class Known:
    """The benchmark's own solution, or nothing at all: which tasks can be told apart here."""

    name: str
    solves: bool

    async def work(self, task: Task, directory: Path, model: Mapping[str, str], seconds: float) -> Ended:
        """See Agent."""
        if self.solves:
            await asyncio.to_thread(task.solve, directory)
        return Ended(0, self.name, "", 0.0)


@dataclass(frozen=True, slots=True)
class Bare:
    """Nothing between a model and the machine, to see what would take effect.

    The calls of a model that does all it is asked run one after the other, on the machine or in the task's world.
    """

    name: str = "nothing between"
    before: tuple[str, ...] = ()

    async def work(self, task: Task, directory: Path, model: Mapping[str, str], seconds: float) -> Ended:
        """See Agent."""
        if task.world is not None:
            return _called(task.world)
        said, took = list[str](), 0.0
        for tool, text in task.calls:
            program = sys.executable if tool == "python" else "bash"
            _, output, seconds_taken = await _run((*self.before, program, "-c", text), directory, {}, seconds)
            said, took = [*said, output], took + seconds_taken
        return Ended(0, "all called", "\n".join(said)[-_OUTPUT_KEPT:], took)


def _called(world: World) -> Ended:
    for tool, arguments in world.begin() or ():
        with suppress(ToolFailed):
            world.call(tool, arguments)
    return Ended(0, "all called", world.answer, 0.0)


async def _run(
    words: tuple[str, ...], directory: Path, environ: Mapping[str, str], seconds: float
) -> tuple[int | None, str, float]:
    """Return the exit code (None if the time was up), the standard output, and the seconds."""
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
