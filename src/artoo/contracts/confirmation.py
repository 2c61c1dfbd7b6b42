"""The approval question of Law 1 and its answers, such as once or discard; labels are in `words/question.py`.

The exchange is between gate and user. Reference: SPEC section 8.
"""

from __future__ import annotations

from enum import StrEnum
from typing import Literal

from pydantic import Field

from artoo.contracts.base import Contract
from artoo.contracts.settling import Review

PERSON = "person"
# Values of `by` for an answer of a user, and for a refusal because no user could be asked.
NOBODY = "nobody"

# Prefix of `by` if standing permissions answered; their lines follow.
POLICY = "policy: "


class AskedAct(Contract):
    """One operation that needs approval, in the terms of policies.

    `verb` is a word of the policy language (create, edits, delete, mode, link, history, network, tool), or
    another word, which no policy covers. `sensitive`: only a policy without wildcards covers the operation."""

    verb: str
    target: str
    sensitive: bool = False


class ConfirmationRequest(Contract):
    """A question about one exact operation. `digest` binds the answer to it; `details` is the complete list,
    never cut.

    `acts` are the parts that need approval, for policies. `source` lists the parts of the operation that came
    from data, each with the file, page or message in which it first occurred; it is only shown. `language` is the
    language of title and details. `act` names the call that waits for the answer (ToolStarted); it is empty if no
    call waits. `review`: the operation applies a task's changes, which are listed there; the user may then choose
    a part of them, keep them pending or discard them.

    `wants`: `consent` is the question that Law 1 requires. `words` asks for a text that only the user can give.
    `plan` asks for approval of a plan, or for text about the necessary changes. `Words` answers the last two,
    which are the runtime's own questions and never on the stream as a ConfirmationRequest."""

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
    """The possible answers: allow once, allow for the rest of this task (the same operation only), or refuse. A
    review may also be kept pending (as with a refusal) or discarded."""

    ONCE = "once"
    TASK = "task"
    NO = "no"
    KEEP = "keep"
    DISCARD = "discard"

    @property
    def is_yes(self) -> bool:
        """Check whether the answer allows the operation."""
        return self in (Consent.ONCE, Consent.TASK)


class Choice(Contract):
    """An approval of a part of a review: these printable paths of the review, and the changes that they need."""

    paths: tuple[str, ...] = Field(min_length=1)


class Words(Contract):
    """A text that answers a question for a text. It is empty if the user has no comment."""

    text: str = ""


class ConfirmationAnswer(Contract):
    """The answer to the request with this digest; `by` says who or what answered (a user, a policy line).

    `paths` are the only paths of a review that are to be applied; empty means all. `through` is the program
    through which the user was asked (AskedBy.label); empty means artoo's own interface."""

    digest: str
    consent: Consent
    by: str
    paths: tuple[str, ...] = ()
    through: str = ""
