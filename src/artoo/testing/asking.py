"""A person who is asked without a stream."""

from __future__ import annotations

from dataclasses import dataclass

from artoo.contracts.confirmation import PERSON, ConfirmationAnswer, ConfirmationRequest
from artoo.ports.confirm import Confirm, answer_of


@dataclass(frozen=True, slots=True)
class AskPerson:
    """Implements `ports.confirm.Questions` with what `confirm` says."""

    confirm: Confirm

    async def ask(self, request: ConfirmationRequest) -> ConfirmationAnswer:
        """What `confirm` says."""
        return answer_of(request, await self.confirm(request), PERSON)
