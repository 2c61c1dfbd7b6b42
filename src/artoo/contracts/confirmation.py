"""Law 1's question and its answer (SPEC section 8): gate ⇄ user."""

from __future__ import annotations

from enum import StrEnum

from artoo.contracts.base import Contract


class ConfirmationRequest(Contract):
    """Asks about one exact act. `digest` binds the answer to it; `details` is the complete list, never cut.

    `source` names the file, page or message in which the act's target first appeared, if it came from data.
    """

    digest: str
    title: str
    details: tuple[str, ...] = ()
    source: str | None = None


class Consent(StrEnum):
    """Once, for the rest of this task (the same act only), or no."""

    ONCE = "once"
    TASK = "task"
    NO = "no"


class ConfirmationAnswer(Contract):
    """The answer to the request with this digest; `by` says who or what answered (a person, a policy line)."""

    digest: str
    consent: Consent
    by: str
