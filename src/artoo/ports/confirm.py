"""How Law 1's questions reach whoever may answer them."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Protocol

from artoo.contracts.confirmation import Choice, ConfirmationAnswer, ConfirmationRequest, Consent

Confirm = Callable[[ConfirmationRequest], Awaitable[Consent | Choice]]
"""Asks a person: a dialogue of the terminal, a page, a test. Cancelled when the answer is no longer wanted.

A Choice is a yes to a part of a review; to any other question it is no.
"""


def answer_of(request: ConfirmationRequest, said: Consent | Choice, by: str) -> ConfirmationAnswer:
    """What was said, bound to the question. A choice where none was offered has agreed to nothing."""
    if isinstance(said, Consent):
        return ConfirmationAnswer(digest=request.digest, consent=said, by=by)
    consent = Consent.ONCE if request.review is not None else Consent.NO
    paths = said.paths if request.review is not None else ()
    return ConfirmationAnswer(digest=request.digest, consent=consent, by=by, paths=paths)


class Questions(Protocol):
    """Where a gate puts its questions."""

    async def ask(self, request: ConfirmationRequest) -> ConfirmationAnswer:
        """The answer to exactly this request. Where nobody can be asked it is no, at once."""
        ...
