"""Define how a TaskSpec becomes work: R2 → dispatcher → R3, R4a, R4b."""

from __future__ import annotations

from datetime import datetime
from typing import Literal

from pydantic import Field, JsonValue

from artoo.contracts.base import Contract
from artoo.contracts.changes import Clash
from artoo.contracts.criteria import CriterionLike
from artoo.contracts.images import AttachedImage


class MustNot(Contract):
    """Name the tools (identities: `glob`, `shell:find`) and targets (blocked inputs) that a subtask may not use. A
    target is blocked for the identity that failed on it: each is a pair (identity, target)."""

    tools: tuple[str, ...] = ()
    targets: tuple[tuple[str, str], ...] = ()


class Caution(Contract):
    """A pair with which memory has mixed experience: a person is asked before `identity` is used on `target`."""

    identity: str
    target: str
    reason: str = ""


Effort = Literal["quick", "normal", "long"]
"""How large a task is; each has its own budgets (SPEC section 3.5)."""


class FirstCall(Contract):
    """Describe a read-only call that an executor's tools make before its first turn."""

    tool: str
    arguments: dict[str, JsonValue] = Field(default_factory=dict[str, JsonValue])


class PlannedSubTask(Contract):
    """Describe one subtask as the planner writes it; the dispatcher gives it its id.

    Equal `sequence` numbers run in parallel; a higher one starts when all lower ones are done. `request` is the
    user's, whole. `part`: the subtask is not all of it.
    """

    sequence: int = Field(default=1, ge=1, le=99)
    intent: str
    request: str = ""
    context: str = ""
    success_criteria: tuple[CriterionLike, ...] = ()
    tool: str | None = None
    part: bool = False
    first_calls: tuple[FirstCall, ...] = ()


class Plan(Contract):
    """A validated plan for one round: subtasks, or a `reply`, which is the answer, or a `question` to the person,
    which ends the task. R2 → dispatcher, R7.

    `task_criteria` speak about the combined result of all subtasks. `label` is the kind of request, under which
    memory keeps what the task teaches. `deadline` and `scope` are limits that the request itself states,
    `effort` is how large the task is (None: a log of version 0.1). `surroundings` is what is on disk as R2 saw
    it, `heads` what that shows of files, `whole` the files shown whole, `named_files` the part about the files
    that the request names, if it says enough by itself, `guide` the standing instructions there; `images` those
    of the request. `heard` are the ids of the user's messages that R2 has read.
    """

    task_criteria: tuple[CriterionLike, ...] = ()
    subtasks: tuple[PlannedSubTask, ...] = ()
    label: str = ""
    reply: str = ""
    question: str = ""
    deadline: datetime | None = None
    scope: str | None = None
    effort: Effort | None = None
    surroundings: str = ""
    heads: str = ""
    whole: tuple[str, ...] = ()
    named_files: str = ""
    guide: str = ""
    images: tuple[AttachedImage, ...] = ()
    must_not: MustNot = Field(default_factory=MustNot)
    cautions: tuple[Caution, ...] = ()
    carried: tuple[str, ...] = ()
    heard: tuple[str, ...] = ()
    round: int = Field(default=1, ge=1)


class PlanRefused(Contract):
    """Report that the planner's draft was refused twice.

    Counts as D = 1, P = 1 for the round. `label` as in Plan. R2 → R7.
    """

    reasons: tuple[str, ...]
    label: str = ""
    round: int = Field(ge=1)


class Glance(Contract):
    """The files on disk where a subtask begins (`surroundings`), and what that shows of them (`heads`)."""

    surroundings: str = ""
    heads: str = ""


class SubTask(Contract):
    """Work for one ephemeral executor. dispatcher → R3, R4a.

    `surroundings` is what was on disk when it was planned; `heads`, `named_files` and `guide` as in the plan,
    `images` those of the request. `deadline` is that of the plan. `begun`: other parts of the
    task, in this round or before, may have changed files. `request`, `part`, `first_calls` as in PlannedSubTask.
    `said` are messages that the user wrote to the running task before this subtask began, `said_ids` their ids.
    """

    subtask_id: str
    parent_task_id: str
    sequence: int
    intent: str
    request: str = ""
    context: str = ""
    surroundings: str = ""
    heads: str = ""
    named_files: str = ""
    guide: str = ""
    images: tuple[AttachedImage, ...] = ()
    success_criteria: tuple[CriterionLike, ...] = ()
    must_not: MustNot = Field(default_factory=MustNot)
    cautions: tuple[Caution, ...] = ()
    preferred_tool: str | None = None
    deadline: datetime | None = None
    begun: bool = False
    part: bool = False
    first_calls: tuple[FirstCall, ...] = ()
    said: tuple[str, ...] = ()
    said_ids: tuple[str, ...] = ()

    @property
    def given(self) -> str:
        """Return the request where the intent says something else, then the context."""
        whole = "The whole request, of which your subtask is a part" if self.part else "The request"
        request = "" if self.request in ("", self.intent) else f"{whole}: {self.request}"
        return "\n".join(filter(None, (request, self.context)))


class ManifestEntry(Contract):
    """Describe one subtask of this round as the fan-in gate needs to know it."""

    subtask_id: str
    sequence: int
    intent: str
    success_criteria: tuple[CriterionLike, ...] = ()


class DispatchManifest(Contract):
    """Name the subtasks that R4b waits for in this round, and the earlier matched ones that still stand
    (`carried`).

    With a `reply` or a `question` there is nothing to wait for. `heads`: what a reply may say of files.
    """

    task_id: str
    round: int = Field(ge=1)
    subtasks: tuple[ManifestEntry, ...]
    carried: tuple[str, ...] = ()
    task_criteria: tuple[CriterionLike, ...] = ()
    reply: str = ""
    question: str = ""
    heads: str = ""

    @property
    def intents(self) -> dict[str, str]:
        """Return what each subtask is to do, by its id."""
        return {entry.subtask_id: entry.intent for entry in self.subtasks}


class SharedPath(Contract):
    """Name a path that several subtasks changed which ran at the same time. `subtasks` are their ids."""

    path: str
    subtasks: tuple[str, ...]


class Joined(Contract):
    """Report the end of all subtasks of one group, matched ones first in this order. dispatcher → R4b.

    `shared`: paths that two of them certainly changed (contracts.shared_paths): a fact, no failure.
    `conflicts` is in logs of earlier versions, whose subtasks worked apart, and means nothing now.
    """

    round: int = Field(ge=1)
    subtask_ids: tuple[str, ...]
    shared: tuple[SharedPath, ...] = ()
    conflicts: tuple[Clash, ...] = ()
