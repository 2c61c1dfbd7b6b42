"""All settings of `config.yaml` with defaults and ranges (models, control, limits, prices, memory, undo, log).

`loader.load_config` reads the tree and reports every mistake with its line. `endpoints` finds the endpoint of each
tier. The seed's own keys are in `seed_config`, foreign agents in `agents.foreign.settings`.
"""

from __future__ import annotations

import os
from dataclasses import replace
from pathlib import Path
from typing import Annotated, Literal

from pydantic import BeforeValidator, Field, PrivateAttr, field_validator, model_validator

from artoo.agents.foreign.settings import ForeignAgents
from artoo.contracts.errors import ConfigurationError
from artoo.contracts.plan import MOST_SUBTASKS
from artoo.contracts.settling import PENDING_DAYS, PENDING_MEGABYTES, ApplyMode
from artoo.control.hyperparameters import MOST_COST, Hyperparameters
from artoo.llm.prices import Price
from artoo.runtime.app.home import default_home
from artoo.runtime.app.run_options import check_policy_line
from artoo.runtime.config.extensions import Hooks, Notify
from artoo.runtime.config.seed_config import AgentRuntime
from artoo.settings.expanded import HomePath, HomePathText
from artoo.settings.sections import Number, Section, Whole
from artoo.store.address import StoreAddress, parse
from artoo.tools.mcp.servers import McpEntry, Name


def _lines(given: object) -> object:
    """Convert a single line to a list. The environment can thus set a list with one value."""
    return [given] if isinstance(given, str) else given


class ModelEndpoint(Section):
    """A model server for one tier. Settings that are missing here come from the environment.

    `base_url` may be `embedded`, which means the model on this machine. `api_key_env` is the *name* of the
    environment variable with the key. Keys themselves are never in the file. `context` is the size of the model's
    window in tokens (None: as the server or the catalogue says). `timeout` is the limit of one call in seconds.
    `concurrency` is the maximum number of simultaneous calls. `images`: whether the model accepts images. It must
    be configured because no server reports it. `wire`: the format of requests. With `auto` it is chosen by the
    address and the answers of the server. `reasoning`: how much the model shall reason (None: the server's
    default).
    """

    base_url: str | None = Field(default=None, pattern=r"^(embedded|https?://[^\s@]+)$")
    api_key_env: str | None = Field(default=None, pattern=r"^[A-Za-z_][A-Za-z0-9_]*$")
    model: str | None = Field(default=None, min_length=1)
    timeout: Number = Field(default=300.0, gt=0, le=3_600)
    concurrency: Whole = Field(default=8, ge=1, le=256)
    context: Whole | None = Field(default=None, ge=2_048)
    images: bool = False
    wire: Literal["auto", "chat", "responses", "messages", "text"] = "auto"
    reasoning: Literal["off", "low", "medium", "high"] | None = None


class Models(Section):
    """The models of both tiers. `brain` plans and judges whole tasks, and `tool` executes and judges subtasks (SPEC
    section 9)."""

    brain: ModelEndpoint = Field(default_factory=ModelEndpoint.model_construct)
    tool: ModelEndpoint = Field(default_factory=ModelEndpoint.model_construct)


class Embedded(Section):
    """The local model that runs inside this process if no endpoint is set.

    `model` is the name of an installed model, or the path of a GGUF file. If it is None, the model chosen with
    `artoo model use` is loaded, or else the pinned default. `slots` is the number of requests that run in parallel
    and share a `context` of that many tokens. `threads` None means one thread for each physical core.
    """

    model: HomePathText | None = None
    slots: Whole = Field(default=2, ge=1, le=64)
    context: Whole = Field(default=16_384, ge=2_048, le=1_048_576)
    threads: Whole | None = Field(default=None, ge=1, le=1_024)


Share = Annotated[Number, Field(ge=0, le=1)]


MOST_TYPES = 200
"""The maximum number of task types with hyperparameters of their own. All of them are written to the first line of
every task's log."""


class Tuned(Section):
    """The hyperparameters of the control law for one type of task. A number that is not set has the value that it
    has for all other tasks.

    Only numbers that the solver (R7) alone uses can be different for a type.
    """

    alpha: Share | None = None
    beta: Share | None = None
    lambda_: Share | None = Field(default=None, alias="lambda")
    w1: Share | None = None
    w2: Share | None = None
    epsilon: Share | None = None
    delta: Share | None = None
    rho: Share | None = None
    theta: Share | None = None
    kill_after: Whole | None = Field(default=None, ge=1, le=10)


_LAW = Hyperparameters()


class Control(Section):
    """The hyperparameters of the control law, under the names of the paper (SPEC section 4), with its defaults.

    `without` contains the names of heuristics (`artoo.loops.heuristics`) that are switched off, for ablation
    experiments. `by_type` contains hyperparameters for single types of tasks. A type is the slug of a task's intent
    in memory. `artoo config tune` proposes such values. If `time_budget_ms` is None, the effort of the task
    determines it.
    """

    alpha: Share = _LAW.alpha
    beta: Share = _LAW.beta
    lambda_: Share = Field(default=_LAW.lambda_, alias="lambda")
    w1: Share = _LAW.w1
    w2: Share = _LAW.w2
    epsilon: Share = _LAW.epsilon
    delta: Share = _LAW.delta
    rho: Share = _LAW.rho
    theta: Share = _LAW.theta
    time_budget_ms: Whole | None = Field(default=None, ge=1_000, le=7 * 24 * 3_600_000)
    max_replans: Whole = Field(default=_LAW.max_replans, ge=1, le=20)
    max_retries: Whole = Field(default=_LAW.max_retries, ge=0, le=10)
    kill_after: Whole = Field(default=_LAW.kill_after, ge=1, le=10)
    exhausted_after: Whole = Field(default=_LAW.exhausted_after, ge=0, le=10)
    gradient: Literal["equal_cost", "paper"] = _LAW.gradient
    without: Annotated[tuple[str, ...], BeforeValidator(_lines)] = ()
    by_type: dict[str, Tuned] = Field(default_factory=dict[str, Tuned], max_length=MOST_TYPES)

    @field_validator("without")
    @classmethod
    def _known_heuristics(cls, names: tuple[str, ...]) -> tuple[str, ...]:
        if names:
            from artoo.loops.heuristics import without

            without(names)
        return names

    @model_validator(mode="after")
    def _weights(self) -> Control:
        for slug, own in {"": Tuned(), **self.by_type}.items():
            w1 = self.w1 if own.w1 is None else own.w1
            if w1 + (self.w2 if own.w2 is None else own.w2) > MOST_COST:
                place = f"by_type.{slug}: " if slug else ""
                raise ValueError(f"{place}w1 + w2 must be at most 1, or Ω leaves [0, 1]")
        return self

    def tuned(self, general: Hyperparameters, *, strict: bool = False) -> dict[str, Hyperparameters]:
        """Return the complete hyperparameters of each type that has some of its own. `strict` overrides the type's
        own `delta`."""
        own = {slug: each.model_dump(exclude_none=True) for slug, each in self.by_type.items()}
        kept = {
            slug: {k: v for k, v in each.items() if not (strict and k == "delta")} for slug, each in own.items()
        }
        return {slug: replace(general, **each) for slug, each in kept.items() if each}

    def hyperparameters(self, *, strict: bool = False) -> Hyperparameters:
        """Return the hyperparameters for the control law. With `strict`, only D = 0 counts as success.

        The time budget is replaced by that of the task (`Workshop.allowance`).
        """
        numbers = self.model_dump(exclude={"time_budget_ms", "without", "by_type"})
        general = Hyperparameters(**numbers)
        return replace(general, delta=0.0) if strict else general


class Prices(Section):
    """The prices of models, by the names that requests use. `currency` is only a label, because amounts are never
    converted.

    The embedded model costs nothing. Without prices no cost is shown.
    """

    currency: str = Field(default="USD", min_length=1, max_length=12)
    models: dict[str, Price] = Field(default_factory=dict[str, Price])


class Limits(Section):
    """The limits of one task. `tokens` counts the tokens of prompts and completions.

    If `calls` or `tokens` is None, the effort of the task determines it. `money` is in the currency of `prices`,
    and needs a price for every model that is used. None means no limit. `subtasks` is the maximum number of
    subtasks of one plan. `view_megabytes` limits the disk space that the changes of all commands of a task may use
    until they are applied.
    """

    subtasks: Whole = Field(default=MOST_SUBTASKS, ge=1, le=64)
    calls: Whole | None = Field(default=None, ge=1)
    tokens: Whole | None = Field(default=None, ge=1)
    money: Number | None = Field(default=None, gt=0)
    view_megabytes: Whole = Field(default=8_192, ge=16, le=1_048_576)


class Memory(Section):
    """The settings of shared memory. `path`: its directory. None means `memory` in the home, and a relative path
    begins in the home too.

    `wording`: which model may word rules while no task runs. With `endpoint` it is the brain's model unless that is
    the embedded one, which would use a machine that its owner thinks idle. With `any` it may be the embedded model
    too. With `off` no model is asked, so no rules are made. `calls`, `tokens` and `money` (in the currency of
    `prices`) limit these calls, and those of the agents' dream cycles. The limits are for one day (UTC) and all
    processes together.
    """

    enabled: bool = True
    path: HomePath | None = None
    wording: Literal["endpoint", "any", "off"] = "endpoint"
    calls: Whole = Field(default=48, ge=0)
    tokens: Whole = Field(default=200_000, ge=0)
    money: Number | None = Field(default=None, gt=0)


class Undo(Section):
    """For how long changes can be undone. It is the number of `days`, or less if the old contents exceed
    `megabytes`."""

    days: Number = Field(default=30.0, gt=0, le=3_650)
    megabytes: Whole = Field(default=4_096, ge=1, le=1 << 20)


class Pending(Section):
    """For how long changes may be pending. It is the number of `days`, or less if all pending changes exceed
    `megabytes`.

    The user is warned before changes are deleted: `artoo status` lists them with their last day.
    """

    days: Number = Field(default=PENDING_DAYS, gt=0, le=3_650)
    megabytes: Whole = Field(default=PENDING_MEGABYTES, ge=1, le=1 << 20)


class Log(Section):
    """For how long task logs are kept. It is the number of `keep_days`, or less if all logs exceed
    `keep_megabytes`.

    The logs of running tasks, and of tasks that were interrupted recently, are always kept.
    """

    keep_days: Number = Field(default=90.0, gt=0, le=3_650)
    keep_megabytes: Whole = Field(default=4_096, ge=1, le=1 << 20)


class Config(Section):
    """The whole configuration. `Config()` contains the defaults. `load_config` reads the file and the environment.

    `workspace` is the folder for generated output. `apply` decides which changes are applied without approval.
    `allow` are standing permissions, one policy line each. `mcp_servers` maps the names of MCP servers to their
    settings. `store` is the address of the PostgreSQL database that several machines share (`postgresql://…`). If
    it is None, all data stay in the home. `projects`: the directories for whose tasks in the store this machine is
    available. `hooks`: commands that are run at certain moments of a task. `notify`: how the user is notified that
    a task needs a decision or has ended.
    """

    models: Models = Field(default_factory=Models.model_construct)
    embedded: Embedded = Field(default_factory=Embedded.model_construct)
    control: Control = Field(default_factory=Control.model_construct)
    limits: Limits = Field(default_factory=Limits.model_construct)
    prices: Prices = Field(default_factory=Prices.model_construct)
    workspace: HomePath = Path("~/artoo_workspace")
    apply: ApplyMode = ApplyMode.NEW
    allow: Annotated[tuple[str, ...], BeforeValidator(_lines)] = ()
    memory: Memory = Field(default_factory=Memory.model_construct)
    mcp_servers: dict[Name, McpEntry] = Field(default_factory=dict[str, McpEntry])
    pending: Pending = Field(default_factory=Pending.model_construct)
    undo: Undo = Field(default_factory=Undo.model_construct)
    log: Log = Field(default_factory=Log.model_construct)
    runtime: AgentRuntime = Field(default_factory=AgentRuntime.model_construct)
    hooks: Hooks = Field(default_factory=Hooks.model_construct)
    notify: Notify = Field(default_factory=Notify.model_construct)
    a2a: ForeignAgents = Field(default_factory=ForeignAgents.model_construct)
    store: str | None = None
    projects: Annotated[tuple[HomePath, ...], BeforeValidator(_lines)] = ()

    _home: Path = PrivateAttr(default_factory=lambda: default_home(os.environ))

    @field_validator("allow")
    @classmethod
    def _policy_lines(cls, given: tuple[str, ...]) -> tuple[str, ...]:
        for line in given:
            try:
                check_policy_line(line)
            except ConfigurationError as error:
                raise ValueError(str(error)) from error
        return given

    @field_validator("store")
    @classmethod
    def _store_address(cls, given: str | None) -> str | None:
        if given is not None:
            try:
                parse(given)
            except ConfigurationError as error:
                raise ValueError(str(error)) from error
        return given

    @property
    def home(self) -> Path:
        """Return artoo's own directory as an absolute path. It may not exist yet."""
        return self._home

    def at_home(self, home: Path) -> Config:
        """Return the same settings with another home."""
        moved = self.model_copy()
        moved._home = home
        return moved

    @property
    def workspace_path(self) -> Path:
        """Return the output folder as an absolute path. It may not exist yet."""
        return self.workspace.expanduser().absolute()

    @property
    def memory_path(self) -> Path:
        """Return the directory of shared memory as an absolute path. It may not exist yet."""
        return self.home / (self.memory.path or Path("memory")).expanduser()

    @property
    def memory_place(self) -> Path | StoreAddress:
        """Return the place of shared memory, which is the store of several machines or a directory on this
        machine."""
        return parse(self.store) if self.store is not None else self.memory_path

    @property
    def memory_spool(self) -> Path:
        """Return the directory in which memory's entries are stored while the store is not available."""
        return self.home / "spool" / "memory"
