"""Define Law 1's question and its answer (SPEC section 8): gate ⇄ user."""

from __future__ import annotations

from enum import StrEnum
from typing import Literal

from pydantic import Field

from artoo.contracts.base import Contract
from artoo.contracts.settling import Review

PERSON = "person"
# `by` of an answer that a person gave, and of a refusal because no user could be asked.
NOBODY = "nobody"

# How `by` begins where standing permissions answered; their lines follow.
POLICY = "policy: "


class AskedAct(Contract):
    """Describe one operation that needs approval, as policies name it.

    `verb` is a word of the policy language (create, edits, delete, mode, link, history, network, tool) or another,
    which no policy covers. `sensitive`: only a policy without wildcards covers it.
    """

    verb: str
    target: str
    sensitive: bool = False


class ConfirmationRequest(Contract):
    """Ask about one exact act. `digest` binds the answer to it; `details` is the complete list, never cut.

    `acts` are the parts that need approval, for policies. `source` says what of the operation came from data, each
    with the file, page or message that said it first; it is shown, and decides nothing. `language` is that of title
    and details. `act` names the call that waits for the answer (ToolStarted); empty when no call does. `review`:
    the operation is to apply a task's difference, which is shown here; then a part may be chosen, and keeping and
    discarding are answers too.

    `wants`: `consent` is Law 1's question. `words` asks for a text that only the user can give, `plan` for approval
    of a plan, where words say what must be different; both are answered with `Words` (the runtime's own questions,
    which are never on the stream as a ConfirmationRequest).
    """

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
    """Once, for the rest of this task (the same act only), or no. To a review also: keep it for later (what a no
    means there, too), or discard it."""

    ONCE = "once"
    TASK = "task"
    NO = "no"
    KEEP = "keep"
    DISCARD = "discard"

    @property
    def is_yes(self) -> bool:
        """Check whether the operation may happen."""
        return self in (Consent.ONCE, Consent.TASK)


class Choice(Contract):
    """An approval of a part of a review: these paths (printable, as the review names them), and what they need."""

    paths: tuple[str, ...] = Field(min_length=1)


class Words(Contract):
    """Carry a text as the answer to a question that wants words. Empty: the user has nothing to say."""

    text: str = ""


class ConfirmationAnswer(Contract):
    """Carry the answer to the request with this digest; `by` says who or what answered (a person, a policy line).

    `paths`: of a review only these are to be applied; empty: all. `through`: the program by which a person was
    asked (AskedBy.label); empty: artoo's own.
    """

    digest: str
    consent: Consent
    by: str
    paths: tuple[str, ...] = ()
    through: str = ""
