"""Carry a user's words to a TaskSpec: user → R1 → R2, R7."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from artoo.contracts.base import Contract
from artoo.contracts.criteria import Criterion
from artoo.contracts.images import AttachedImage

Act = Literal["applied", "discarded", "expired", "undone"]
"""What can be done with changes of a task, after it or at its end."""


def _nothing(found: object) -> bool:
    return not found


class Turn(Contract):
    """Carry one earlier exchange of this conversation. `task_id` tells memory which task "that was wrong" is about;
    `project`: where it was, empty in older records.

    Of what it changed, when the next request is made: `waits` are the paths that wait for the person's yes,
    `became` what was done with others, oldest first: the operation and the paths. `here`: the task works on what is
    pending of it.
    """

    input: str
    summary: str
    task_id: str | None = None
    project: str = Field(default="", exclude_if=_nothing)
    waits: tuple[str, ...] = Field(default=(), exclude_if=_nothing)
    became: tuple[tuple[Act, tuple[str, ...]], ...] = Field(default=(), exclude_if=_nothing)
    here: bool = Field(default=False, exclude_if=_nothing)


class UserRequest(Contract):
    """Carry the request of a user, word for word, with at most the last five turns.

    `project` is the directory in which commands run, `workspace` the one for generated output; both absolute.
    `checks` are the person's own criteria: verifiable, never dropped or amended. `returns`: the JSON schema of the
    value that a program wants with the text. `images` are attached to this request alone, not to later turns.
    `east`: by how many minutes the person's clock is ahead of UTC.
    """

    text: str
    project: str
    workspace: str
    history: tuple[Turn, ...] = ()
    checks: tuple[Criterion, ...] = ()
    returns: dict[str, object] | None = None
    images: tuple[AttachedImage, ...] = ()
    east: int = Field(default=0, exclude_if=_nothing)


class TaskSpec(Contract):
    """Carry the request, faithfully restated. R1 adds nothing: no criteria, no tools, no interpretation.

    `task_id` is a short name in snake case for people and tags (the envelope's task_id is the unique one).
    `language` is the BCP 47 primary tag of the language of artoo's own sentences, chosen by the request's script.
    `corrects` is true when the person says that the last result was wrong. `waiting`: the turns of which something
    still waits for approval; `last`: the last one, whose result the request may be about. `checks`, `images`,
    `east`: as in UserRequest.
    """

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
    """Report that the person asked to stop (Ctrl-C). user → R7."""

    reason: str = "interrupted"
