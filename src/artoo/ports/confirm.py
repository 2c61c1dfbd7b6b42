"""The interface of questions to the user, and the conversion of answers to consent.

The questions are the approval questions of Law 1.
"""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable, Iterable
from typing import Protocol

from artoo.contracts.confirmation import Choice, ConfirmationAnswer, ConfirmationRequest, Consent, Words

logger = logging.getLogger(__name__)

Said = Consent | Choice | Words | bool | Iterable[str]
"""The possible answers: a Consent; True for once, False for no; some paths of a review, as a Choice or an
iterable; Words, if the question asks for words."""

Confirm = Callable[[ConfirmationRequest], Awaitable[Said]]
"""A function that asks a user: a terminal dialogue, a page, a test. It is cancelled when the answer is not
needed. It raises TimeoutError if no user answered in time; this counts as a refusal, but not as the user's.

A choice of paths approves a part of a review; for any other question it counts as a refusal."""


def consent_of(said: Said) -> Consent | Choice | Words:
    """Convert an answer to a Consent, a Choice or Words. Any other value counts as a refusal."""
    if isinstance(said, (Consent, Choice, Words)):
        return said
    if isinstance(said, bool):
        return Consent.ONCE if said else Consent.NO
    if isinstance(said, str):
        logger.warning("confirm said %r, which is no answer and counts as no; paths are said in a list", said)
    # A text is iterable too: its characters must not become paths.
    paths = () if isinstance(said, str) else tuple(said)
    return Choice(paths=paths) if paths else Consent.NO


def answer_of(request: ConfirmationRequest, answered: Said, by: str) -> ConfirmationAnswer:
    """Return the answer, bound to its question. A choice of paths for a question without a review is a refusal."""
    said = consent_of(answered)
    if isinstance(said, Words):  # words are no approval
        said = Consent.NO
    if isinstance(said, Consent):
        return ConfirmationAnswer(digest=request.digest, consent=said, by=by)
    consent = Consent.ONCE if request.review is not None else Consent.NO
    paths = said.paths if request.review is not None else ()
    return ConfirmationAnswer(digest=request.digest, consent=consent, by=by, paths=paths)


class Questions(Protocol):
    """The receiver of a gate's questions."""

    async def ask(self, request: ConfirmationRequest) -> ConfirmationAnswer:
        """Return the answer to exactly this request; if no user can be asked, refuse at once."""
        ...
