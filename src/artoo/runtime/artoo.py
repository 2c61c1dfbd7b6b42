"""artoo as a library: one object that holds models, stream and hands, and runs tasks."""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncGenerator, Callable, Mapping, Sequence
from contextlib import AsyncExitStack
from dataclasses import replace
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Self

from artoo.bus.inprocess import InProcessBus
from artoo.bus.spool import SpoolingTap
from artoo.contracts.envelope import Envelope
from artoo.contracts.errors import ConfigurationError
from artoo.contracts.request import Turn, UserRequest
from artoo.contracts.roles import Role
from artoo.contracts.solution import FinalResult
from artoo.llm.budget import Budget, BudgetedModel, MeteredModel
from artoo.ports.clock import Clock
from artoo.ports.confirm import Confirm
from artoo.ports.ids import Ids
from artoo.runtime.config import Config
from artoo.runtime.models import open_models
from artoo.runtime.options import RunOptions
from artoo.runtime.recording import recorded
from artoo.runtime.system import SystemClock, UuidIds

if TYPE_CHECKING:
    from artoo.llm.model_fetch import Report
    from artoo.ports.sandbox import Roots, Sandbox
    from artoo.runtime.hands import McpTools
    from artoo.runtime.memories import Memories
    from artoo.runtime.task import TaskMemory, TaskRun, TaskSettings
    from artoo.tools.user_tools import UserTool


class Artoo:
    """Runs requests. Use it as an async context manager; several tasks may run at the same time.

    `tools` are the user's own functions (see `artoo.tool`). `environ` overrides the process environment for
    model settings. `model`, `clock` and `ids` replace the real ones (tests, replay). `on_fetch` is told how far
    the download of the embedded model is, the first time. `confirm` asks a person about acts that need consent;
    None: the answer is no, except where a policy says yes. Roles and tools are loaded by the first task.
    """

    def __init__(
        self,
        config: Config | None = None,
        *,
        tools: Sequence[Callable[..., object]] = (),
        environ: Mapping[str, str] | None = None,
        model: MeteredModel | None = None,
        clock: Clock | None = None,
        ids: Ids | None = None,
        on_fetch: Report | None = None,
        confirm: Confirm | None = None,
    ) -> None:
        self._config = config if config is not None else Config.model_construct()
        self._environ = os.environ if environ is None else environ
        self._own_tools = _made_tools(tools)
        self._clock = clock or SystemClock()
        self._ids = ids or UuidIds()
        self._given_model = model
        self._on_fetch = on_fetch
        self._confirm = confirm
        self._mcp: McpTools | None = None
        self._group: asyncio.TaskGroup | None = None
        self._bus = InProcessBus(self._clock, self._ids)
        self._resources = AsyncExitStack()
        self._model: MeteredModel | None = None
        self._sandbox: Sandbox | None = None
        self._running: dict[str, TaskRun] = {}
        self._memories: Memories | None = None

    async def __aenter__(self) -> Self:
        """Raises ConfigurationError when the model settings cannot work or the home cannot be made."""
        self._config.home.mkdir(mode=0o700, parents=True, exist_ok=True)
        if self._given_model is None:
            models = open_models(self._config, self._environ, self._clock, report=self._on_fetch)
            self._resources.push_async_callback(models.close)
            self._model = models
        else:
            self._model = self._given_model
        self._group = await self._resources.enter_async_context(asyncio.TaskGroup())
        await self._resources.enter_async_context(recorded(self._bus, self._config.home, _secrets(self._environ)))
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._bus.close()
        await self._resources.__aexit__(kind, error, trace)

    @property
    def bus(self) -> InProcessBus:
        """The stream, for taps and watchers of one's own."""
        return self._bus

    async def run(
        self, text: str, *, history: Sequence[Turn] = (), options: RunOptions | None = None
    ) -> FinalResult:
        """Runs one request to its end. What cannot be done ends in a FinalResult too, not in an exception."""
        task, request = await self._open(text, history, options or RunOptions())
        return await self._finish(task, request)

    async def stream(
        self, text: str, *, history: Sequence[Turn] = (), options: RunOptions | None = None
    ) -> AsyncGenerator[Envelope, None]:
        """All messages of the task, in order and without loss; the last one is its FinalResult."""
        task, request = await self._open(text, history, options or RunOptions())
        spool = SpoolingTap(self._config.home / "spool", name=f"stream-{task.task_id}")

        def tap(envelope: Envelope) -> None:
            if envelope.task_id == task.task_id:
                spool(envelope)
                if isinstance(envelope.payload, FinalResult):
                    detach()

        detach = self._bus.attach(tap)
        with spool:
            # Not a task group: a generator that yields inside one would raise its error at whoever stops listening.
            finishing = asyncio.create_task(self._finish(task, request))
            finishing.add_done_callback(lambda _: (detach(), spool.finish()))
            try:
                async for item in spool:
                    if isinstance(item, Envelope):
                        yield item
                await finishing
            finally:
                finishing.cancel()
                await asyncio.wait([finishing])

    def interrupt(self) -> None:
        """Asks every running task to end now; each ends with an honest FinalResult."""
        for task in tuple(self._running.values()):
            task.interrupt()

    async def _finish(self, task: TaskRun, request: UserRequest) -> FinalResult:
        self._running[task.task_id] = task
        try:
            return await task.run(request)
        finally:
            del self._running[task.task_id]
            if self._memories is not None:
                self._memories.nudge()

    async def _open(self, text: str, history: Sequence[Turn], options: RunOptions) -> tuple[TaskRun, UserRequest]:
        if self._model is None:
            raise ConfigurationError("Artoo is not open; use it as `async with Artoo() as artoo:`")
        if not text.strip():
            raise ConfigurationError("the request is empty; say what is wanted")
        task_id = self._ids.new()
        roots = self._roots(options)
        from artoo.runtime.answers import Answers
        from artoo.runtime.hands import open_hands
        from artoo.runtime.task import TaskRun
        from artoo.runtime.thinking import accepted_texts
        from artoo.tools.policy import Policies

        policies = Policies.parse((*self._config.allow, *options.allow), roots.project, roots.home)
        memory, persona = await self._open_memory(options), accepted_texts(self._config.home)
        hands = open_hands(
            await self._open_sandbox(),
            roots,
            self._config.home,
            task_id,
            text,
            self._clock,
            self._own_tools,
            self._bus.port(Role.GATE, task_id),
            self._environ,
            self._mcp_tools(),
        )
        limits, wanted = self._config.limits, options.budgets
        budget = Budget(max_calls=wanted.calls or limits.calls, max_tokens=wanted.tokens or limits.tokens)
        run = TaskRun(
            task_id,
            self._bus,
            BudgetedModel(self._model, budget),
            hands,
            budget,
            self._settings(options),
            self._clock,
            self._ids,
            Answers(policies, self._confirm),
            memory,
            persona,
        )
        request = UserRequest(
            text=text, project=str(roots.project), workspace=str(roots.workspace), history=tuple(history)
        )
        return run, request

    async def _open_memory(self, options: RunOptions) -> TaskMemory | None:
        if not (self._config.memory.enabled and options.memory):
            return None
        if self._memories is None:
            # LMDB only where something is remembered.
            from artoo.runtime.memories import Memories, words_rules

            words = self._given_model is not None or words_rules(self._config, self._environ)
            self._memories = Memories(
                self._config.memory_path,
                self._bus,
                self._clock,
                self._ids,
                busy=lambda: bool(self._running),
                model=self._model if words else None,
            )
            self._resources.push_async_callback(self._memories.close)
        return await self._memories.open()

    def _mcp_tools(self) -> McpTools | None:
        """The person's MCP servers, connected when a task first asks. Raises ConfigurationError."""
        if self._mcp is None and self._group is not None:
            from artoo.runtime.hands import McpTools
            from artoo.runtime.mcp import own_servers
            from artoo.tools.mcp.pool import McpPool

            pool = McpPool(self._group)
            self._resources.push_async_callback(pool.close)
            self._mcp = McpTools(own_servers(self._config), pool)
        return self._mcp

    async def _open_sandbox(self) -> Sandbox:
        """The sandbox; what a crash left of earlier acts is finished or undone first."""
        if self._sandbox is None:
            from artoo.runtime.settling import settle_earlier

            await settle_earlier(self._config)
            from artoo.tools.sandbox.choose import open_sandbox  # probes the kernel: only for real tasks

            self._sandbox = await open_sandbox(self._config.home)
        return self._sandbox

    def _roots(self, options: RunOptions) -> Roots:
        from artoo.ports.sandbox import Roots

        project = (options.project or Path.cwd()).expanduser().resolve()
        if not project.is_dir():
            raise ConfigurationError(f"the project directory {project} does not exist")
        workspace = options.workspace.expanduser().absolute() if options.workspace else self._config.workspace_path
        workspace.mkdir(parents=True, exist_ok=True)
        return Roots(home=Path.home().resolve(), workspace=workspace.resolve(), project=project)

    def _settings(self, options: RunOptions) -> TaskSettings:
        from artoo.loops.fast.executor import ExecutorLimits
        from artoo.runtime.task import TaskSettings

        limits = self._config.limits
        hyperparameters = self._config.control.hyperparameters(strict=options.strict)
        if options.budgets.seconds is not None:
            hyperparameters = replace(
                hyperparameters, time_budget_ms=max(1, round(options.budgets.seconds * 1_000))
            )
        return TaskSettings(
            hyperparameters=hyperparameters,
            executor=ExecutorLimits(steps=limits.steps, seconds=limits.subtask_seconds),
            most_subtasks=limits.subtasks,
            strict_roles=options.strict_roles,
        )


def _secrets(environ: Mapping[str, str]) -> list[str]:
    """Values that must never stand in a log: whatever the environment calls a key, a token or a password."""
    return [value for name, value in environ.items() if name.endswith(("_KEY", "_TOKEN", "_SECRET", "_PASSWORD"))]


def _made_tools(functions: Sequence[Callable[..., object]]) -> tuple[UserTool, ...]:
    """The user's functions as tools. Raises ConfigurationError for one that cannot be a tool."""
    if not functions:
        return ()
    from artoo.tools.user_tools import user_tool

    return tuple(user_tool(function) for function in functions)
