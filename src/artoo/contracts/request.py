"""The user's request with earlier turns and attached images, the restated TaskSpec, and the interrupt.

The route is user → R1 → R2, R7.
"""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from artoo.contracts.base import Contract
from artoo.contracts.criteria import Criterion

MediaType = Literal["image/png", "image/jpeg", "image/gif", "image/webp"]


class AttachedImage(Contract):
    """One image. `name` is the user's name for it, `size` is in bytes; `sha256` names the stored bytes near the
    log."""

    name: str
    media_type: MediaType
    size: int = Field(ge=1)
    sha256: str = Field(pattern=r"^[0-9a-f]{64}$")


Act = Literal["applied", "discarded", "expired", "undone"]
"""What can happen to the changes of a task, at its end or later."""


def _nothing(found: object) -> bool:
    return not found


class Turn(Contract):
    """One earlier exchange of the conversation. `task_id` identifies the task to which "that was wrong" refers in
    memory. `project` is its directory, which is empty in older records.

    The state of its changes is that at the time of the next request. `waits` are the paths that need approval.
    `became` lists what happened to the other changes, with their paths, oldest first. `here`: true if the workspace
    of the new task includes the pending changes of this turn."""

    input: str
    summary: str
    task_id: str | None = None
    project: str = Field(default="", exclude_if=_nothing)
    waits: tuple[str, ...] = Field(default=(), exclude_if=_nothing)
    became: tuple[tuple[Act, tuple[str, ...]], ...] = Field(default=(), exclude_if=_nothing)
    here: bool = Field(default=False, exclude_if=_nothing)


class UserRequest(Contract):
    """The request of a user, word for word, with at most the last five turns.

    `project` is the directory in which commands are run, and `workspace` the directory for generated output. Both
    are absolute. `checks` are the user's own criteria. They are verifiable, and never dropped or changed. `returns`
    is the JSON schema of the value that a program wants in addition to the text. `images` are attached to this
    request only, not to later turns. `east` is the number of minutes by which the user's clock is ahead of UTC."""

    text: str
    project: str
    workspace: str
    history: tuple[Turn, ...] = ()
    checks: tuple[Criterion, ...] = ()
    returns: dict[str, object] | None = None
    images: tuple[AttachedImage, ...] = ()
    east: int = Field(default=0, exclude_if=_nothing)


class TaskSpec(Contract):
    """The request, restated without changing its meaning. R1 (perceiver) adds no criteria, no tools and no
    interpretation.

    `task_id` is a short name in snake case for people and tags. The unique id is the task_id of the envelope.
    `language` is the language of artoo's own sentences (a BCP 47 primary tag). It is chosen by the script of the
    request. `corrects` is true if the user says that the last result was wrong. `waiting` are the turns whose
    changes still need approval. `last` is the last turn, to whose result the request may refer. `checks`, `images`
    and `east` have the same meaning as in UserRequest."""

    task_id: str
    intent: str
    raw_input: str
    language: str = "en"
    corrects: bool = False
    waiting: tuple[Turn, ...] = Field(default=(), exclude_if=_nothing)
    last: Turn | None = Field(default=None, exclude_if=_nothing)
    checks: tuple[Criterion, ...] = ()
    images: tuple[AttachedImage, ...] = ()
    east: int = Field(default=0, exclude_if=_nothing)


class Interrupt(Contract):
    """The order of the user to stop (Ctrl-C). user → R7."""

    reason: str = "interrupted"
