"""Define the way of Law 1's questions to the user who may answer them."""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable, Iterable
from typing import Protocol

from artoo.contracts.confirmation import Choice, ConfirmationAnswer, ConfirmationRequest, Consent, Words

logger = logging.getLogger(__name__)

Said = Consent | Choice | Words | bool | Iterable[str]
"""The possible answers: a consent; True for once, False for no; some paths of a review as a Choice or by
themselves; words, if the question asks for words.
"""

Confirm = Callable[[ConfirmationRequest], Awaitable[Said]]
"""Asks a user: a dialogue of the terminal, a page, a test. Cancelled when the answer is no longer wanted.
Raises TimeoutError when no user has answered in time: then the answer is no, and not the user's.

A choice of paths approves a part of a review; to any other question it is no.
"""


def consent_of(said: Said) -> Consent | Choice | Words:
    """Return an answer in one of its three forms. Anything else is no."""
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
    """Return the answer, bound to its question. A choice where none was offered agrees to nothing."""
    said = consent_of(answered)
    if isinstance(said, Words):  # words agree to nothing
        said = Consent.NO
    if isinstance(said, Consent):
        return ConfirmationAnswer(digest=request.digest, consent=said, by=by)
    consent = Consent.ONCE if request.review is not None else Consent.NO
    paths = said.paths if request.review is not None else ()
    return ConfirmationAnswer(digest=request.digest, consent=consent, by=by, paths=paths)


class Questions(Protocol):
    """The receiver of a gate's questions."""

    async def ask(self, request: ConfirmationRequest) -> ConfirmationAnswer:
        """Return the answer to exactly this request; no, at once, where no user can be asked."""
        ...
