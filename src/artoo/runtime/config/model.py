"""All settings of `config.yaml` with defaults and ranges (models, control, limits, prices, memory, undo, log).

`loader.load_config` reads the tree and reports every mistake with its line. `endpoints` finds the endpoint of each
tier. The seed's own keys are in `seed_config`, foreign agents in `foreign_agents`.
"""

from __future__ import annotations

import os
from dataclasses import replace
from pathlib import Path
from typing import Annotated, Literal

from pydantic import BeforeValidator, Field, PrivateAttr, field_validator, model_validator

from artoo.contracts.errors import ConfigurationError
from artoo.contracts.plan import MOST_SUBTASKS
from artoo.contracts.settling import PENDING_DAYS, PENDING_MEGABYTES, ApplyMode
from artoo.control.hyperparameters import MOST_COST, Hyperparameters
from artoo.llm.prices import Price
from artoo.runtime.app.home import default_home
from artoo.runtime.app.run_options import check_policy_line
from artoo.runtime.config.extensions import Hooks, Notify
from artoo.runtime.config.foreign_agents import ForeignAgents
from artoo.runtime.config.seed_config import AgentRuntime
from artoo.settings.expanded import HomePath, HomePathText
from artoo.settings.sections import Number, Section, Whole
from artoo.store.address import StoreAddress, parse
from artoo.tools.mcp.servers import McpEntry, Name


def _lines(given: object) -> object:
    """Convert a single line to a list, so that the environment can set it."""
    return [given] if isinstance(given, str) else given


class ModelEndpoint(Section):
    """A model server for one tier. Settings that are missing here come from the environment.

    `base_url` may be `embedded`: the model on this machine. `api_key_env` is the *name* of the variable that holds
    the key; keys themselves are never in the file. `context` is the model's window in tokens (None: as the server
    or the catalogue says), `timeout` seconds for one call, `concurrency` calls at a time. `images`: whether the
    model accepts images, which no server reports. `wire`: the format of requests; `auto` chooses it by the address
    and the server's answers. `reasoning`: how much the model should reason (None: the server's default).
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
    """`brain` plans and judges whole tasks, `tool` executes and judges subtasks (SPEC section 9)."""

    brain: ModelEndpoint = Field(default_factory=ModelEndpoint.model_construct)
    tool: ModelEndpoint = Field(default_factory=ModelEndpoint.model_construct)


class Embedded(Section):
    """The local model that runs in-process when no endpoint is set.

    `model` is the name of an installed model or the path of a GGUF file (None: the model chosen with `artoo model
    use`, or else the pinned default). `slots` requests run in parallel and share a `context` of that many tokens;
    `threads` None: one per physical core.
    """

    model: HomePathText | None = None
    slots: Whole = Field(default=2, ge=1, le=64)
    context: Whole = Field(default=16_384, ge=2_048, le=1_048_576)
    threads: Whole | None = Field(default=None, ge=1, le=1_024)


Share = Annotated[Number, Field(ge=0, le=1)]


MOST_TYPES = 200
"""The most task types with their own numbers. All are in the first line of every task's log."""


class Tuned(Section):
    """The control law's numbers for one type of task. Numbers that are not set are those of all other tasks.

    Only numbers that R7 alone uses can differ between types.
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

    `without` names heuristics (artoo.loops.heuristics) to be switched off, for ablations. `by_type` has numbers for
    one type of task (the slug of its intent in memory); `artoo config tune` proposes them. If `time_budget_ms` is
    None, the task's effort decides.
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
        """Return all numbers for each type that has its own. `strict` overrides the type's own `delta`."""
        own = {slug: each.model_dump(exclude_none=True) for slug, each in self.by_type.items()}
        kept = {
            slug: {k: v for k, v in each.items() if not (strict and k == "delta")} for slug, each in own.items()
        }
        return {slug: replace(general, **each) for slug, each in kept.items() if each}

    def hyperparameters(self, *, strict: bool = False) -> Hyperparameters:
        """Return the numbers for the control law. With `strict`, only D = 0 is a success.

        The time budget is the task's own (`Workshop.allowance`).
        """
        numbers = self.model_dump(exclude={"time_budget_ms", "without", "by_type"})
        general = Hyperparameters(**numbers)
        return replace(general, delta=0.0) if strict else general


class Prices(Section):
    """The prices of models, by the name in requests. `currency` is only a label, because nothing is converted.

    The embedded model costs nothing. Without prices no cost is shown.
    """

    currency: str = Field(default="USD", min_length=1, max_length=12)
    models: dict[str, Price] = Field(default_factory=dict[str, Price])


class Limits(Section):
    """The limits of one task. Tokens count prompt and completion.

    `calls` and `tokens` None: the task's effort decides. `money` is in the currency of `prices`, and needs a price
    for every model that is used; None: unlimited. `subtasks` limits one plan. `view_megabytes` limits the disk
    space of a task's changes until they are applied, for all commands together.
    """

    subtasks: Whole = Field(default=MOST_SUBTASKS, ge=1, le=64)
    calls: Whole | None = Field(default=None, ge=1)
    tokens: Whole | None = Field(default=None, ge=1)
    money: Number | None = Field(default=None, gt=0)
    view_megabytes: Whole = Field(default=8_192, ge=16, le=1_048_576)


class Memory(Section):
    """Shared memory. `path` None: `memory` in the home; a relative path also starts in the home.

    `wording`: which model words rules while no task runs. `endpoint`: the brain's model, but not the embedded one,
    which would load a machine that its owner thinks idle; `any`: the embedded one too; `off`: none, so no rules are
    made. `calls`, `tokens` and `money` (in the currency of `prices`) limit such calls, and those of the agents'
    dream cycles, per day (UTC) for all processes together.
    """

    enabled: bool = True
    path: HomePath | None = None
    wording: Literal["endpoint", "any", "off"] = "endpoint"
    calls: Whole = Field(default=48, ge=0)
    tokens: Whole = Field(default=200_000, ge=0)
    money: Number | None = Field(default=None, gt=0)


class Undo(Section):
    """The time for which changes can be undone: `days`, or until their old content exceeds `megabytes`."""

    days: Number = Field(default=30.0, gt=0, le=3_650)
    megabytes: Whole = Field(default=4_096, ge=1, le=1 << 20)


class Pending(Section):
    """The time for which changes may be pending: `days`, or until all pending changes exceed `megabytes`.

    The user is warned before changes are deleted: `artoo status` lists them with their last day.
    """

    days: Number = Field(default=PENDING_DAYS, gt=0, le=3_650)
    megabytes: Whole = Field(default=PENDING_MEGABYTES, ge=1, le=1 << 20)


class Log(Section):
    """The time for which task logs are kept: `keep_days`, or until all logs exceed `keep_megabytes`.

    Logs of running tasks, and of tasks that were cut off recently, are kept.
    """

    keep_days: Number = Field(default=90.0, gt=0, le=3_650)
    keep_megabytes: Whole = Field(default=4_096, ge=1, le=1 << 20)


class Config(Section):
    """The whole configuration. `Config()` has the defaults; `load_config` reads file and environment.

    `workspace` is the folder for generated output. `apply` says which changes are applied without approval; `allow`
    are permissions, one policy line each. `mcp_servers` maps names to servers. `store` is the PostgreSQL that
    several machines share (`postgresql://…`); None: all data stays in the home. `projects`: directories whose tasks
    this machine takes from the store. `hooks`: commands that run at certain moments of a task. `notify`: how the
    user is notified that a task needs them or has ended.
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
        """Return artoo's own directory, absolute; it need not exist yet."""
        return self._home

    def at_home(self, home: Path) -> Config:
        """Return the same settings with another home."""
        moved = self.model_copy()
        moved._home = home
        return moved

    @property
    def workspace_path(self) -> Path:
        """Return the output folder, absolute; it need not exist yet."""
        return self.workspace.expanduser().absolute()

    @property
    def memory_path(self) -> Path:
        """Return the directory of shared memory, absolute; it need not exist yet."""
        return self.home / (self.memory.path or Path("memory")).expanduser()

    @property
    def memory_place(self) -> Path | StoreAddress:
        """Return the place of shared memory: the store of several machines, or a directory on this machine."""
        return parse(self.store) if self.store is not None else self.memory_path

    @property
    def memory_spool(self) -> Path:
        """Return the directory for memory's entries while the store is unavailable."""
        return self.home / "spool" / "memory"
