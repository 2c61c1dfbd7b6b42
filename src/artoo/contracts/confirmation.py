"""The approval question of Law 1 and its answers, such as once or discard; labels are in `words/question.py`.

The gate asks these questions, and the user answers them. Reference: SPEC section 8.
"""

from __future__ import annotations

from enum import StrEnum
from typing import Literal

from pydantic import Field

from artoo.contracts.base import Contract
from artoo.contracts.settling import Review

PERSON = "person"
# Values of `by`. The first is for an answer of a user, the second for a refusal because no user could be asked.
NOBODY = "nobody"

# Prefix of `by` if standing permissions gave the answer. The permission lines follow it.
POLICY = "policy: "


class AskedAct(Contract):
    """One operation that needs approval, in the words of the policy language.

    `verb` is a word of this language (create, edits, delete, mode, link, history, network, tool), or another word,
    which no policy covers. `sensitive`: true if only a policy without wildcards can cover the operation."""

    verb: str
    target: str
    sensitive: bool = False


class ConfirmationRequest(Contract):
    """A question about one exact operation. `digest` binds the answer to this operation. `details` is the complete
    list, which is never shortened.

    `acts` are the parts of the operation that need approval, in the form that policies compare. `source` lists the
    parts of the operation that came from data, each with the file, page or message in which it first occurred. It
    is only shown to the user. `language` is the language of the title and the details. `act` names the call that
    waits for the answer (ToolStarted). It is empty if no call waits. `review`: set if the operation applies the
    changes of a task, which it lists. The user may then also choose a part of them, keep them pending, or discard
    them.

    `wants`: the kind of answer. `consent` is the question that Law 1 requires. `words` asks for a text that only
    the user can give. `plan` asks for the approval of a plan, or for a text about what must be changed in it.
    `Words` is the answer to the last two. These are questions of the runtime itself, and are never on the stream as
    a ConfirmationRequest."""

    digest: str
    title: str
    details: tuple[str, ...] = ()
    source: str | None = None
    acts: tuple[AskedAct, ...] = ()
    language: str = "en"
    act: str = ""
    review: Review | None = None
    wants: Literal["consent", "words", "plan"] = "consent"


class Consent(StrEnum):
    """The possible answers to a question: allow once, allow the same operation for the rest of this task, or
    refuse. A review can also be kept pending (which is a refusal) or discarded."""

    ONCE = "once"
    TASK = "task"
    NO = "no"
    KEEP = "keep"
    DISCARD = "discard"

    @property
    def is_yes(self) -> bool:
        """Return whether the answer allows the operation."""
        return self in (Consent.ONCE, Consent.TASK)


class Choice(Contract):
    """An approval of a part of a review. It has the printable paths that were chosen, and includes the changes that
    these need."""

    paths: tuple[str, ...] = Field(min_length=1)


class Words(Contract):
    """A text that answers a question which asks for a text. It is empty if the user has no comment."""

    text: str = ""


class ConfirmationAnswer(Contract):
    """The answer to the request with this digest. `by` says who gave it (a user, or a policy line).

    `paths` are the paths of a review that are to be applied, and no others. If it is empty, all are applied.
    `through` is the program through which the user was asked (AskedBy.label). It is empty for artoo's own user
    interface."""

    digest: str
    consent: Consent
    by: str
    paths: tuple[str, ...] = ()
    through: str = ""
