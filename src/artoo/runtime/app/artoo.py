"""The class `Artoo`, which runs, streams or resumes tasks (its call options are in `run_options`)."""

from __future__ import annotations

import asyncio
import inspect
import os
from collections.abc import AsyncGenerator, Callable, Mapping, Sequence
from contextlib import AsyncExitStack, aclosing, suppress
from dataclasses import replace
from importlib import import_module
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Self, TypeVar, Unpack, cast, overload

from artoo.bus.inprocess import InProcessBus
from artoo.contracts.envelope import Envelope
from artoo.contracts.errors import ConfigurationError
from artoo.contracts.steering import UserMessage
from artoo.ports.clock import Clock
from artoo.ports.ids import Ids
from artoo.prompts.library import require_shipped
from artoo.redaction import Redactor, secret_values
from artoo.runtime.app.exception_groups import plain
from artoo.runtime.app.home import HOME_VARIABLE
from artoo.runtime.app.models import open_models
from artoo.runtime.app.run_options import CallOptions, RunOptions, listed, options_of_call, require
from artoo.runtime.app.services import Workshop
from artoo.runtime.app.single_loop import OneLoop
from artoo.runtime.app.streams import Streams
from artoo.runtime.app.system import SystemClock, UuidIds
from artoo.runtime.app.telemetry import observed
from artoo.runtime.config.endpoints import key_variables
from artoo.runtime.config.model import Config
from artoo.runtime.task.auditor import Auditing, audited
from artoo.runtime.task.task_log import recorded, shared_logs, told
from artoo.tasklog.writer import TaskLog

if TYPE_CHECKING:
    # Imported only for type checks, because building these classes takes a tenth of the time that opening an Artoo
    # takes.
    from artoo.contracts.audit import AuditReport
    from artoo.contracts.solution import FinalResult
    from artoo.llm.budget import MeteredModel
    from artoo.llm.embedded.fetch import Report
    from artoo.ports.confirm import Confirm
    from artoo.ports.evidence import EvidenceSource
    from artoo.ports.printing import OnOutput
    from artoo.ports.workspace import Workspace
    from artoo.runtime.app.caller import Caller
    from artoo.runtime.app.typed_results import Returned
    from artoo.runtime.changes.pending_changes import Pending
    from artoo.runtime.changes.run_changes import RunResult
    from artoo.runtime.task.agent_context import Behalf
    from artoo.runtime.task.role_context import TaskMemory
    from artoo.runtime.task.start_task import Begun
    from artoo.runtime.task.task_run import TaskRun
    from artoo.tools.core.function_tools import UserTool
    from artoo.tools.core.middleware import Middleware

T = TypeVar("T")


class Artoo:
    """Runs requests. Use it as an async context manager, in one event loop. Several tasks may run at the same time.

    `config`: the configuration, which is used unchanged. If it is None, `config.yaml` of the home and the `ARTOO_*`
    variables are read, as the command line does. `tools` are the user's own functions (see `artoo.tool`). `deps`
    are the values for those of their parameters that have a `Deps` type. `environ` replaces the environment of the
    process. If it contains no ARTOO_HOME, that of the process is used. `model`, `clock` and `ids` replace the real
    ones, for tests and replay. `on_fetch` receives the progress of the first download of the embedded model.
    `confirm` asks the user about operations that need consent. If it is None, the answer is no, unless a policy
    permits the operation. `on_output` receives the last output lines of each running command, a few times a second,
    without secrets. `middleware` wraps every tool call. The modules of roles and tools are imported when the first
    task begins.

    Raises ConfigurationError if the configuration cannot be read, or a function cannot be a tool.
    """

    _loaded = False

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
        on_output: OnOutput | None = None,
        middleware: Sequence[Middleware] = (),
        deps: Sequence[object] = (),
    ) -> None:
        if inspect.iscoroutinefunction(on_output):
            raise ConfigurationError("on_output is called and not awaited; pass a plain function")
        self._environ = os.environ if environ is None else environ
        if config is not None:
            require("config", config, Config, 'Config(apply="edits")')
        self._config = _config_of_home(self._environ) if config is None else config
        self._own_tools = _made_tools(tools, deps)
        self._clock = clock or SystemClock()
        self._ids = ids or UuidIds()
        self._given_model = model
        self._on_fetch = on_fetch
        self._confirm = confirm
        self._on_output = on_output
        self._middleware: tuple[Middleware, ...] = tuple(middleware)
        self._bus = InProcessBus(self._clock, self._ids)
        self._resources = AsyncExitStack()
        self._loop = OneLoop()
        self._running: dict[str, TaskRun] = {}
        self._streams = Streams(self._bus, self._config.home)
        self._shop: Workshop | None = None
        self._log: TaskLog | None = None
        self._auditing: Auditing | None = None

    async def __aenter__(self) -> Self:
        """Open the Artoo. Raises ConfigurationError if it is open already, or if model settings, the home or prompt
        texts are unusable.
        """
        if self._loop.open():
            # The connections ended together with their event loop, so errors while they are closed are ignored.
            with suppress(Exception):
                await self.__aexit__(None, None, None)
            self._loop.open()
        try:
            await self._open()
        except BaseException as error:
            await self.__aexit__(type(error), error, error.__traceback__)
            raise
        return self

    async def _open(self) -> None:
        require_shipped()
        try:
            self._config.home.mkdir(mode=0o700, parents=True, exist_ok=True)
        except OSError as error:
            place = f"artoo's home {self._config.home} cannot be made: {error.strerror}"
            raise ConfigurationError(f"{place}; {HOME_VARIABLE} names another one") from error
        if self._given_model is None:
            model = open_models(self._config, self._environ, self._clock, report=self._on_fetch)
            self._resources.push_async_callback(model.close)
        else:
            model = self._given_model
        group = await self._resources.enter_async_context(asyncio.TaskGroup())
        sharing = await self._resources.enter_async_context(shared_logs(self._config))
        auditing = audited(self._bus, self._config.home, self._clock)
        self._auditing = await self._resources.enter_async_context(auditing)
        secrets = secret_values(self._environ, key_variables(self._config))
        grown = told(self._auditing, sharing)
        redactor = Redactor(secrets)
        recording = recorded(self._bus, self._config.home, redactor, grown)
        self._log = await self._resources.enter_async_context(recording)
        given = self._given_model is not None
        await self._resources.enter_async_context(
            observed(self._bus, self._config, self._environ, given_model=given)
        )
        if self._config.notify.wanted:
            from artoo.runtime.extensions.notices import noticed

            telling = noticed(self._bus, self._config.notify, self._config.home, redactor.text)
            await self._resources.enter_async_context(telling)
        self._shop = Workshop(
            config=self._config,
            environ=self._environ,
            bus=self._bus,
            clock=self._clock,
            ids=self._ids,
            model=model,
            given_model=given,
            own_tools=self._own_tools,
            confirm=self._confirm,
            group=group,
            resources=self._resources,
            log=self._log,
            auditing=self._auditing,
            busy=lambda: bool(self._running),
            on_output=self._on_output,
            redacted=redactor.text,
            middleware=self._middleware,
        )

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self._streams.close()
        self._bus.close()
        try:
            await self._resources.__aexit__(kind, error, trace)
        except BaseExceptionGroup as group:
            found = plain(group, error)
            if found is not error:
                raise found from None
        finally:
            self._shop = None
            self._loop.close()

    @property
    def bus(self) -> InProcessBus:
        """Return the message bus, to which a caller can attach its own taps."""
        return self._bus

    async def audit(self) -> AuditReport:
        """Return the Auditor's findings since its last report. Raises ConfigurationError outside `async with`."""
        return await self._open_shop().auditing.report()

    async def store_audit(self) -> None:
        """Store the Auditor's statistics up to now, for programs that read its files. The window of the current
        report does not end."""
        await self._open_shop().auditing.store()

    @property
    def model(self) -> MeteredModel:
        """Return the models of this process without a budget, for a caller that counts the cost itself. Raises
        ConfigurationError.
        """
        return self._open_shop().model

    async def memory(self) -> TaskMemory | None:
        """Return the reading and the writing interface of shared memory. Return None if memory is off."""
        return await self._open_shop().memory(RunOptions())

    async def evidence(self, project: Path) -> EvidenceSource:
        """Return a read-only source of evidence for a directory, as validators use it."""
        from artoo.tools.context.evidence_source import WorkspaceEvidence
        from artoo.workspace.changes.path_class import Places

        shop = self._open_shop()
        roots = shop.roots(RunOptions(project=project))
        workspace = await shop.workspace(self._ids.new(), roots)
        return WorkspaceEvidence(workspace, Places.of(roots, self._config.home))

    async def workspace(self, name: str, places: RunOptions) -> Workspace:
        """Open a workspace under the given name, in which several tasks can work one after another.

        Raises ConfigurationError if the project does not exist, SandboxError if this system cannot confine
        commands.
        """
        shop = self._open_shop()
        return await shop.workspace(name, shop.roots(places))

    async def changes(self, task: FinalResult | str) -> Pending:
        """Return a task's pending changes, which can be reviewed, applied or discarded.

        `task`: the result of the task (`result.changes.waits` is true if changes are pending), or the beginning of
        its id. Raises ConfigurationError if no changes are pending, SandboxError if the task is running.
        """
        from artoo.runtime.changes.find_pending import find_pending

        task_id = task if isinstance(task, str) else task.task_id
        return await asyncio.to_thread(find_pending, self._config, task_id)

    @overload
    async def run(self, text: str, **call: Unpack[CallOptions]) -> RunResult: ...

    @overload
    async def run(self, text: str, *, returns: type[T], **call: Unpack[CallOptions]) -> Returned[T]: ...

    async def run(
        self, text: str, *, returns: type[T] | None = None, **call: Unpack[CallOptions]
    ) -> RunResult | Returned[T]:
        """Run one request to its end. A task that fails returns a FinalResult too. It raises no exception.

        Pending changes can be reviewed, applied and discarded through `changes` of the result. `returns` is the
        type of the wanted value; the result is then a `Returned`. Raises ConfigurationError for a request or an
        option that cannot be run, always before anything is started.
        """
        if returns is None:
            return await self._finish(await self._begin(text, **call))
        from artoo.runtime.app.typed_results import Form

        form = Form(returns)
        return form.of(await self._finish(await self._begin(text, form.schema, **call)))

    async def stream(self, text: str, **call: Unpack[CallOptions]) -> AsyncGenerator[Envelope, None]:
        """Yield all messages of the task, in order and without loss; the last one is its FinalResult."""
        begun = await self._begin(text, **call)
        async with aclosing(self._streams.messages(begun, self._finish)) as messages:
            async for envelope in messages:
                yield envelope

    async def resume(self, task_id: str | None = None) -> RunResult:
        """Resume a task that was interrupted or whose process died, and run it to its end.

        `task_id` may be the beginning of an id. If it is None, the latest task that can be resumed is used. Calls
        that the log contains are not made again. Raises ConfigurationError if it cannot be resumed, TaskRunning if
        it is running.
        """
        return await self._finish(await self._reopen(task_id))

    async def stream_resumed(
        self, task_id: str | None = None, *, behalf: Behalf | None = None, caller: Caller | None = None
    ) -> AsyncGenerator[Envelope, None]:
        """Resume a task and yield its messages. First come the messages of the log that are still valid, then the
        new ones.

        `behalf`: the agent of a team that began the task; only that agent can resume it. `caller`: the program that
        asks for it.
        """
        begun = await self._reopen(task_id, behalf, caller)
        async with aclosing(self._streams.messages(begun, self._finish)) as messages:
            async for envelope in messages:
                yield envelope

    async def pending(self) -> tuple[Pending, ...]:
        """Return all pending changes of this home, including those of earlier processes, oldest first.

        Raises SandboxError if an apply or undo that a crash interrupted can be neither completed nor rolled back.
        """
        from artoo.runtime.changes.find_pending import pendings
        from artoo.runtime.changes.startup_recovery import recover_earlier

        await asyncio.to_thread(recover_earlier, self._config)
        return await asyncio.to_thread(pendings, self._config)

    async def dream_briefly(self) -> None:
        """Run memory's maintenance for at most 200 ms. This is for a process that ends after its task."""
        await self._open_shop().dream_briefly()

    def interrupt(self, task_id: str | None = None) -> None:
        """Ask a running task (None: all running tasks) to end now. Each ends with a truthful FinalResult."""
        for task in tuple(self._running.values()):
            if task_id in (None, task.task_id):
                task.interrupt()

    def send(self, text: str, task_id: str | None = None, *, by: str = "library") -> None:
        """Send a message to a running task. The executors read it before their next turn, and the planner (R2)
        before its next plan.

        An empty text only ends a hold. If `task_id` is None, the message goes to the only running task. Raises
        ConfigurationError if no such task runs in this Artoo.
        """
        self._one_running(task_id).send(UserMessage(text=text, by=by))

    def hold(self, task_id: str | None = None, *, by: str = "library") -> None:
        """Interrupt the current turn of the model in a task. The task then waits for the next `send`. Raises as
        `send` does."""
        self._one_running(task_id).send(UserMessage(hold=True, by=by))

    def _one_running(self, task_id: str | None) -> TaskRun:
        found = [task for task in self._running.values() if task_id in (None, task.task_id)]
        if len(found) != 1:
            running = ", ".join(self._running) or "none"
            raise ConfigurationError(f"name one running task (task_id=…); running here: {running}")
        return found[0]

    async def _finish(self, begun: Begun) -> RunResult:
        from artoo.runtime.approvals.multi_prompt import stoppable
        from artoo.runtime.approvals.prompt_store import TaskDesk
        from artoo.runtime.changes.run_changes import RunResult

        task_id, shop = begun.task.task_id, self._open_shop()
        self._running[task_id] = begun.task
        desk = TaskDesk(self._config.home, task_id)
        desk.begin()
        try:
            with stoppable(desk, begun.task.interrupt, begun.task.send):
                result = await begun.play()
            if begun.ended is not None:
                await begun.ended(result)
            return RunResult.of(result, self._config)
        finally:
            del self._running[task_id]
            # Roles that were cancelled may have published one last message.
            self._bus.close_task(task_id)
            shop.log.let_go(task_id)
            await begun.workspace.close()
            begun.lock.release()
            shop.nudge()

    async def _begin(
        self, text: str, returns: Mapping[str, object] | None = None, **call: Unpack[CallOptions]
    ) -> Begun:
        options = options_of_call(call)
        if returns is not None:
            options = replace(options, returns=returns)
        shop = self._open_shop()
        if not Artoo._loaded:
            await asyncio.to_thread(_load_roles)
            Artoo._loaded = True
        from artoo.runtime.task.start_task import begin

        return await begin(shop, text, call.get("history", ()), options)

    async def _reopen(
        self, task_id: str | None, behalf: Behalf | None = None, caller: Caller | None = None
    ) -> Begun:
        shop = self._open_shop()
        from artoo.runtime.task.resume import reopen

        # The task may have run in this process, so its log may not be written completely yet.
        await shop.log.flush()
        return await reopen(shop, task_id, behalf, caller)

    def _open_shop(self) -> Workshop:
        if self._shop is None:
            raise ConfigurationError("Artoo is not open; use it as `async with Artoo() as artoo:`")
        self._loop.require()
        return self._shop


def _load_roles() -> None:
    """Import the modules for a first task, which takes 0.2 s. This runs in a thread, so that it does not block the
    event loop."""
    import_module("artoo.runtime.task.start_task")
    import_module("artoo.runtime.task.task_tools")


def _config_of_home(environ: Mapping[str, str]) -> Config:
    """Read the configuration from the home and these variables. Raises ConfigurationError."""
    from artoo.runtime.config.loader import load_config

    return load_config({HOME_VARIABLE: os.environ.get(HOME_VARIABLE, ""), **environ})


def _made_tools(functions: Sequence[Callable[..., object]], deps: Sequence[object]) -> tuple[UserTool, ...]:
    """Convert the user's functions to tools. Raises ConfigurationError if one cannot be a tool."""
    given: tuple[Callable[..., object], ...] = listed("tools", functions, cast("type", Callable))
    if not given:
        return ()
    from artoo.tools.core.function_tools import user_tool

    return tuple(user_tool(function, tuple(deps)) for function in given)
