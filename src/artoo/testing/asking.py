"""A double of questions to the user, which are answered by a function without a stream."""

from __future__ import annotations

from dataclasses import dataclass

from artoo.contracts.confirmation import PERSON, ConfirmationAnswer, ConfirmationRequest
from artoo.ports.confirm import Confirm, answer_of


@dataclass(frozen=True, slots=True)
class AskPerson:
    """An implementation of `ports.confirm.Questions` that asks a function `confirm`."""

    confirm: Confirm

    async def ask(self, request: ConfirmationRequest) -> ConfirmationAnswer:
        """Return the answer of `confirm`."""
        return answer_of(request, await self.confirm(request), PERSON)
