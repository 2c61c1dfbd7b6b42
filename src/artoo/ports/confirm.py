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
"""The values that a function of type `Confirm` may return: a Consent; True for "allow once" or False for "no"; a
Choice or an iterable with some of the paths of a review; or Words, if the question asks for words."""

Confirm = Callable[[ConfirmationRequest], Awaitable[Said]]
"""A function that asks a user, for example in a terminal dialogue, on a page of the web UI or in a test. It is
cancelled when the answer is no longer needed. It raises TimeoutError if no user answered in time. This counts as a
refusal, but not as a refusal by the user.

A choice of paths approves a part of a review; for any other question it counts as a refusal."""


def consent_of(said: Said) -> Consent | Choice | Words:
    """Convert what a `Confirm` function returned to a Consent, a Choice or Words. Any value of another type counts
    as a refusal."""
    if isinstance(said, (Consent, Choice, Words)):
        return said
    if isinstance(said, bool):
        return Consent.ONCE if said else Consent.NO
    if isinstance(said, str):
        logger.warning("confirm said %r, which is no answer and counts as no; paths are said in a list", said)
    # A text is an iterable of characters, and these characters must not be taken for paths.
    paths = () if isinstance(said, str) else tuple(said)
    return Choice(paths=paths) if paths else Consent.NO


def answer_of(request: ConfirmationRequest, answered: Said, by: str) -> ConfirmationAnswer:
    """Return the answer as a message that belongs to this question. If the user chose paths although the question
    is no review, the answer is a refusal."""
    said = consent_of(answered)
    if isinstance(said, Words):  # Words alone do not approve anything.
        said = Consent.NO
    if isinstance(said, Consent):
        return ConfirmationAnswer(digest=request.digest, consent=said, by=by)
    consent = Consent.ONCE if request.review is not None else Consent.NO
    paths = said.paths if request.review is not None else ()
    return ConfirmationAnswer(digest=request.digest, consent=consent, by=by, paths=paths)


class Questions(Protocol):
    """The receiver of the questions that a gate asks."""

    async def ask(self, request: ConfirmationRequest) -> ConfirmationAnswer:
        """Return the answer to exactly this request. If no user can be asked, return a refusal at once."""
        ...
