"""Plan with the most subtasks, directive, prohibited tools and dispatch, from planner to executors and validators.

The route is R2 → dispatcher → R3, R4a, R4b.
"""

from __future__ import annotations

from datetime import datetime
from typing import Literal

from pydantic import Field, JsonValue

from artoo.contracts.base import Contract
from artoo.contracts.changes import Clash
from artoo.contracts.criteria import CriterionLike
from artoo.contracts.request import AttachedImage


class MustNot(Contract):
    """The tools and targets that a subtask may not use. Tools are given by identities such as `glob` or
    `shell:find`. A target is blocked only for the identity that failed on it, so each entry of `targets` is a pair
    (identity, target)."""

    tools: tuple[str, ...] = ()
    targets: tuple[tuple[str, str], ...] = ()


class Caution(Contract):
    """A pair with which memory has good and bad experience. The user is asked before `identity` is used on
    `target`."""

    identity: str
    target: str
    reason: str = ""


Effort = Literal["quick", "normal", "long"]
"""The size of a task. Each size has budgets of its own (SPEC section 3.5)."""


class FirstCall(Contract):
    """A read-only call that is made before an executor's first turn."""

    tool: str
    arguments: dict[str, JsonValue] = Field(default_factory=dict[str, JsonValue])


MOST_SUBTASKS = 8
"""Maximum number of subtasks in one plan, unless `limits.subtasks` says otherwise."""


class PlannedSubTask(Contract):
    """One subtask as the planner writes it. The dispatcher then gives it an id.

    Subtasks with the same `sequence` run in parallel. Those with a higher number start when all those with lower
    numbers are done. `request` is the user's whole request. `part`: true if the subtask is only a part of the
    request."""

    sequence: int = Field(default=1, ge=1, le=99)
    intent: str
    request: str = ""
    context: str = ""
    success_criteria: tuple[CriterionLike, ...] = ()
    tool: str | None = None
    part: bool = False
    first_calls: tuple[FirstCall, ...] = ()


class Plan(Contract):
    """A valid plan for one round. It has subtasks, or a `reply` that is the answer, or a `question` to the user
    that ends the task. R2 → dispatcher, R7.

    `task_criteria` are about the result of all subtasks together. `label` is the kind of request. Memory stores the
    experience of the task under it. `deadline` and `scope` are limits that the request itself contains. `effort` is
    the size of the task (None in logs of version 0.1). `surroundings` is the listing of the directory that R2 was
    shown, and `heads` are the parts of files in it. `whole` are the files that were shown completely. `named_files`
    is the part of the listing about files that the request names. It is set if this part is sufficient alone.
    `guide` contains the standing instructions of the project. `images` are the images of the request. `heard` are
    the ids of the user's messages that R2 has read."""

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
    """A record that two drafts of the planner were refused. R2 → R7.

    It counts as D = 1, P = 1 for the round. `label` has the same meaning as in Plan."""

    reasons: tuple[str, ...]
    label: str = ""
    round: int = Field(ge=1)


class Glance(Contract):
    """The listing of the directory when a subtask begins (`surroundings`), and the parts of files in it
    (`heads`)."""

    surroundings: str = ""
    heads: str = ""


class SubTask(Contract):
    """The work of one executor, which exists only for this subtask. dispatcher → R3, R4a.

    `surroundings` is the listing of the directory at the time of the plan. `heads`, `named_files`, `guide` and
    `deadline` are those of the plan, and `images` those of the request. `begun`: true if other subtasks, in this
    round or before, may have changed files. `request`, `part` and `first_calls` have the same meaning as in
    PlannedSubTask. `said` are the messages that the user wrote to the running task before this subtask began, and
    `said_ids` are their ids."""

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
        """Return the request, if it differs from the intent, followed by the context."""
        whole = "The whole request, of which your subtask is a part" if self.part else "The request"
        request = "" if self.request in ("", self.intent) else f"{whole}: {self.request}"
        return "\n".join(filter(None, (request, self.context)))


class ManifestEntry(Contract):
    """One subtask of this round, with the fields that are needed to collect the outcomes."""

    subtask_id: str
    sequence: int
    intent: str
    success_criteria: tuple[CriterionLike, ...] = ()


class DispatchManifest(Contract):
    """The subtasks for which R4b waits in this round, and the matched subtasks of earlier rounds that remain valid
    (`carried`).

    With a `reply` or a `question` there are no subtasks. `heads` are parts of files that a reply may quote."""

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
        """Return the intent of each subtask, by its id."""
        return {entry.subtask_id: entry.intent for entry in self.subtasks}


class SharedPath(Contract):
    """A path that several subtasks changed at the same time. `subtasks` are their ids."""

    path: str
    subtasks: tuple[str, ...]


class Joined(Contract):
    """A record that all subtasks of one group have ended. The ids of matched subtasks come first. dispatcher → R4b.

    `shared` are paths that at least two of them certainly changed (loops.medium.dispatcher); this is no failure.
    `conflicts` occurs only in logs of earlier versions, whose subtasks had separate workspaces."""

    round: int = Field(ge=1)
    subtask_ids: tuple[str, ...]
    shared: tuple[SharedPath, ...] = ()
    conflicts: tuple[Clash, ...] = ()
