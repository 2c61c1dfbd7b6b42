"""The shared services of one `Artoo` (sandbox, tools, memory, models), and the MCP tools' share of the window."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from artoo.bus.inprocess import InProcessBus
from artoo.contracts.errors import ConfigurationError
from artoo.contracts.settling import ApplyMode
from artoo.contracts.text import well_formed
from artoo.ports.bus import Port
from artoo.ports.clock import Clock
from artoo.ports.ids import Ids
from artoo.ports.model import Tier
from artoo.runtime.app.run_options import RunOptions
from artoo.runtime.app.skill_paths import opened_for_skills
from artoo.runtime.config.endpoints import with_model
from artoo.runtime.config.model import Config
from artoo.tasklog.lock import TaskLock

if TYPE_CHECKING:
    # Imported inside the methods instead, because opening an Artoo needs none of these classes, and building them
    # takes a tenth of that time.
    import asyncio
    from collections.abc import Sequence
    from contextlib import AsyncExitStack

    from artoo.contracts.solution import Cost
    from artoo.llm.budget import Budget, MeteredModel
    from artoo.ports.confirm import Confirm
    from artoo.ports.printing import OnOutput
    from artoo.ports.sandbox import Roots
    from artoo.ports.settling import Settling
    from artoo.ports.workspace import OpenWorkspace, Workspace
    from artoo.runtime.approvals.consent import Answers
    from artoo.runtime.extensions.hooks import TaskHooks
    from artoo.runtime.memory.shared_memory import Memories
    from artoo.runtime.task.auditor import Auditing
    from artoo.runtime.task.background_budget import UpkeepModel
    from artoo.runtime.task.role_context import Hands, TaskMemory
    from artoo.runtime.task.task_run import TaskSettings
    from artoo.tasklog.writer import TaskLog
    from artoo.tools.approval.policy import Policies
    from artoo.tools.core.function_tools import UserTool
    from artoo.tools.core.live_output import Printing
    from artoo.tools.core.middleware import Middleware
    from artoo.tools.mcp.servers import McpServer
    from artoo.tools.mcp.tool import McpPool
    from artoo.tools.resume.earlier_runs import Past


MCP_SHARE = 10
"""The descriptions of MCP tools may take one part in this number of a model's window. If they need more, the tools
are found by search instead."""


@dataclass(slots=True)
class Workshop:
    """The services that all tasks of one Artoo share. A service is opened when it is first needed and kept for
    later tasks. `resources` closes it. `busy` returns whether a task is running.

    `given_model`: true if the caller passed its own model, so that the configured one is not used. `on_output`
    receives what commands print, after `redacted` has removed the secrets.
    """

    config: Config
    environ: Mapping[str, str]
    bus: InProcessBus
    clock: Clock
    ids: Ids
    model: MeteredModel
    given_model: bool
    own_tools: tuple[UserTool, ...]
    confirm: Confirm | None
    group: asyncio.TaskGroup
    resources: AsyncExitStack
    log: TaskLog
    auditing: Auditing
    busy: Callable[[], bool]
    on_output: OnOutput | None
    redacted: Callable[[str], str]
    middleware: tuple[Middleware, ...] = ()
    _mcp: McpPool | None = None
    _workspaces: OpenWorkspace | None = None
    _memories: Memories | None = None
    _upkeep: UpkeepModel | None = None
    _named: dict[str, MeteredModel] = field(default_factory=dict[str, "MeteredModel"])

    def locked(self, task_id: str) -> TaskLock:
        """Acquire the lock of a task, and return it. Raises TaskRunning."""
        lock = TaskLock(self.config.home, task_id)
        lock.take()
        return lock

    def budget(self, options: RunOptions, spent: Cost | None = None) -> Budget:
        """Return the budget of one task. `spent` is what the task has already spent in earlier runs. Raises
        ConfigurationError."""
        from artoo.runtime.app.budgets import open_budget

        environ = self.environ_of(options)
        return open_budget(self.config, options, environ, given_model=self.given_model, spent=spent)

    def environ_of(self, options: RunOptions) -> Mapping[str, str]:
        """Return the environment in which the models of a task are chosen."""
        return with_model(self.environ, options.model)

    def model_of(self, options: RunOptions) -> MeteredModel:
        """Return the models that a task asks. Raises ConfigurationError for settings that cannot work.

        A model that the options name is opened once and closed together with the others.
        """
        if options.model is None or self.given_model:
            return self.model
        if options.model not in self._named:
            from artoo.runtime.app.models import open_models

            opened = open_models(self.config, self.environ_of(options), self.clock)
            self.resources.push_async_callback(opened.close)
            self._named[options.model] = opened
        return self._named[options.model]

    def answers(self, options: RunOptions, roots: Roots, task_id: str) -> Answers:
        """Return the object that answers the gate's questions, by policies and by asking the user. Raises
        ConfigurationError for a permission line that cannot be parsed.
        """
        # If a user can be asked here, the user's other windows may answer too.
        from artoo.runtime.approvals.consent import Answers
        from artoo.runtime.approvals.multi_prompt import HERE, AskedEverywhere
        from artoo.runtime.approvals.prompt_store import TaskDesk

        policies = self._policies(options, roots.project, roots.home)
        mode, caller = options.mode(self.config.apply), options.caller

        def everywhere(confirm: Confirm | None, here: str) -> AskedEverywhere | None:
            return None if confirm is None else AskedEverywhere(confirm, TaskDesk(self.config.home, task_id), here)

        if caller is not None:
            by = caller.asked_by
            return Answers(policies, everywhere(caller.confirm, by.protocol), mode, through=by.label, roots=roots)
        return Answers(policies, everywhere(self.confirm, HERE), mode, roots=roots)

    def _policies(self, options: RunOptions, project: Path, home: Path) -> Policies:
        from artoo.tools.approval.policy import Policies

        return Policies.parse((*self.config.allow, *options.allow), project, home)

    async def workspace(self, task_id: str, roots: Roots) -> Workspace:
        """Return the task's workspace in its present state. Before that, applies that a crash interrupted are
        rolled back.

        Raises SandboxError if nothing on this machine can confine commands.
        """
        if self._workspaces is None:
            from artoo.runtime.changes.startup_recovery import forget_old_logs, settle_earlier

            await settle_earlier(self.config)
            self.group.create_task(forget_old_logs(self.config, self.auditing.note_forgotten))
            # Choosing a backend tests the kernel, so this is done only for a task.
            from artoo.ports.workspace import MIB, SandboxLimits
            from artoo.sandbox.backends.select import open_backend
            from artoo.workspace.workspace import workspaces_in

            limits = SandboxLimits(disk_bytes=self.config.limits.view_megabytes * MIB)
            self._workspaces = workspaces_in(await open_backend(self.config.home), self.config.home, limits=limits)
        return self._workspaces(task_id, roots)

    async def hands(
        self,
        port: Port,
        workspace: Workspace,
        text: str,
        mode: ApplyMode,
        past: Past | None = None,
        settling: Settling | None = None,
        servers: Sequence[McpServer] = (),
        *,
        permitted: Policies,
        verify: bool = False,
    ) -> Hands:
        """Make the tools of one task. `port`: the port through which the gate publishes its questions. `past`: the
        past of a task that is resumed, else None.

        `mode`: which of the task's changes may be applied without approval. `permitted`: further changes that
        permission lines allow. If `settling` is given, it decides instead. `servers`: MCP servers in addition to
        the user's own. If two have the same name, the user's own is used. `verify`: true if results need a second
        way. Raises ConfigurationError.
        """
        from artoo.runtime.app.mcp import own_servers
        from artoo.runtime.changes.startup_recovery import keeping_of
        from artoo.runtime.task.task_tools import Outfit, open_hands
        from artoo.tools.core.truncate import room_for_output
        from artoo.tools.settlement.settler import Settler

        listed, pool = own_servers(self.config, servers), self._mcp_pool()
        home, keeping = self.config.home, keeping_of(self.config)
        known = await self.model.known(Tier.TOOL)
        durable = partial(self.log.keep, port.task_id)

        hooks = self._hooks(port.task_id, workspace.roots.project, text)

        def settle(went_out: Callable[[], tuple[str, ...]]) -> Settling:
            again = past is not None
            given = (workspace, home, text, mode, keeping, went_out, durable, again)
            return settling or Settler(*given, before_apply=hooks.before_apply if hooks is not None else None)

        outfit = Outfit(
            *(workspace, home, text, self.clock, self.own_tools, self.environ, listed, pool, durable, past, settle),
            printing=self._printing(port.task_id),
            whole_files=not known.small,
            read_kept=room_for_output(known.window),
            second_ways=verify or known.small,
            permitted=replace(permitted, listed=()) if mode is ApplyMode.ASK else permitted,
            middleware=self.middleware,
            hooks=hooks,
            mcp_tokens=known.window // MCP_SHARE,
        )
        return open_hands(outfit, port)

    def _hooks(self, task_id: str, project: Path, text: str) -> TaskHooks | None:
        """Return the hooks of a task. Return None if neither the user nor the project has any."""
        mine = self.config.hooks
        if mine == type(mine)() and not os.path.lexists(project / ".artoo" / "hooks.yaml"):
            return None
        from artoo.runtime.extensions.hooks import TaskHooks

        return TaskHooks(mine, self.config.home, project, task_id, text)

    def _printing(self, task_id: str) -> Printing | None:
        if self.on_output is None:
            return None
        from artoo.tools.core.live_output import Printing

        return Printing(task_id, self.on_output, self.redacted)

    async def memory(self, options: RunOptions) -> TaskMemory | None:
        """Return the reading and the writing interface of shared memory. Return None if the configuration or the
        run has switched it off."""
        if not (self.config.memory.enabled and options.memory):
            return None
        if self._memories is None:
            # The store is opened only if memory is used.
            from artoo.runtime.memory.shared_memory import Memories

            self._memories = Memories(
                self.config.memory_place,
                self.config.memory_spool,
                self.bus,
                self.clock,
                self.ids,
                busy=self.busy,
                model=self.upkeep(),
                home=self.config.home,
            )
            self.resources.push_async_callback(self._memories.close)
        from artoo.runtime.memory.unlearning import WithoutSecrets

        found = await self._memories.open()
        return replace(found, remember=WithoutSecrets(found.remember, self.redacted))

    def upkeep(self) -> UpkeepModel | None:
        """Return the model for memory's own work, with its own budget. Return None if no model may be asked.

        Raises ConfigurationError when money is limited and a model has no price.
        """
        from artoo.runtime.memory.shared_memory import words_rules
        from artoo.runtime.task.background_budget import upkeep_model

        if not (self.given_model or words_rules(self.config, self.environ)):
            return None
        if self._upkeep is None:
            given = self.given_model
            self._upkeep = upkeep_model(self.model, self.config, self.environ, self.clock, given_model=given)
        return self._upkeep

    def _mcp_pool(self) -> McpPool:
        """Return the pool of connections to MCP servers. It is made when a task first needs it."""
        if self._mcp is None:
            from artoo.tools.mcp.tool import McpPool

            self._mcp = McpPool(self.group)
            self.resources.push_async_callback(self._mcp.close)
        return self._mcp

    def roots(self, options: RunOptions) -> Roots:
        """Return the directories in which a task works. Raises ConfigurationError for a directory that cannot be
        used."""
        from artoo.ports.sandbox import Roots

        project = _real(options.project or Path.cwd())
        workspace = _real(options.workspace or self.config.workspace_path)
        # A task without a project uses the output folder as its project, so this folder must exist.
        if not workspace.is_dir():
            try:
                workspace.mkdir(parents=True, exist_ok=True)
            except OSError as error:
                raise ConfigurationError(f"the workspace {workspace} cannot be made: {error.strerror}") from error
        if not project.is_dir():
            raise ConfigurationError(f"the project directory {project} does not exist")
        home = _real(Path("~"))
        opened = self._policies(options, project, home).opened()
        opened = replace(opened, paths=(*opened.paths, *opened_for_skills(self.config.home, home)))
        return Roots(home, workspace, project, opened=opened)

    def settings(self, options: RunOptions, persona: str) -> TaskSettings:
        """Return the settings with which a task runs. Its options override the configuration."""
        from artoo.loops.fast.agreement import SecondLook
        from artoo.loops.heuristics import without
        from artoo.runtime.app.budgets import allowance
        from artoo.runtime.task.task_run import TaskSettings

        allowed = allowance(self.config, options)
        hyperparameters = self.config.control.hyperparameters(strict=options.strict)
        first = max(1, round(allowed.first.seconds * 1_000))
        hyperparameters = replace(hyperparameters, time_budget_ms=first)
        settings = TaskSettings(
            hyperparameters=hyperparameters,
            tuned=self.config.control.tuned(hyperparameters, strict=options.strict),
            allowance=allowed,
            approve=options.plan,
            most_subtasks=self.config.limits.subtasks,
            strict_roles=options.strict_roles,
            second_look=SecondLook.ALWAYS if options.verify else SecondLook.AUTO,
            persona=persona,
            heuristics=without(self.config.control.without),
        )
        return settings if options.behalf is None else replace(settings, standing=options.behalf.standing)

    def nudge(self) -> None:
        """Tell memory's Dreamer that a task has ended."""
        if self._memories is not None:
            self._memories.nudge()

    async def dream_briefly(self) -> None:
        """Run a short pass of memory's Dreamer, if one is due."""
        if self._memories is not None:
            await self._memories.dream_briefly()


def _real(path: Path) -> Path:
    """Return the resolved form of a path. A path in the printable form that artoo shows is converted back.

    Raises ConfigurationError for a text that cannot be a path, such as the home of an unknown user or a text with a
    null character.
    """
    text = str(path)
    try:
        found = os.path.realpath(path.expanduser())
    except (RuntimeError, ValueError) as error:
        raise ConfigurationError(f"{well_formed(text)!r} is no place for a task: {error}") from error
    if "\\" in text and not os.path.lexists(found):
        from artoo.contracts.changes import path_bytes

        found = os.fsdecode(path_bytes(well_formed(found)))
    return Path(found)
