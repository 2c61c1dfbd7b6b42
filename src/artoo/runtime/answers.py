"""The user's side of Law 1: standing permissions answer first, then a person, and where there is none it is no."""

from __future__ import annotations

import asyncio
import logging
from dataclasses import dataclass, field

from artoo.contracts.confirmation import (
    NOBODY,
    PERSON,
    POLICY,
    ConfirmationAnswer,
    ConfirmationRequest,
    Consent,
)
from artoo.ports.confirm import Confirm, answer_of
from artoo.tools.policy import Policies

logger = logging.getLogger(__name__)


@dataclass(slots=True)
class Answers:
    """Answers the questions of one task; one person is asked one thing at a time."""

    policies: Policies = field(default_factory=Policies)
    confirm: Confirm | None = None
    _turn: asyncio.Lock = field(default_factory=asyncio.Lock)

    async def answer(self, request: ConfirmationRequest) -> ConfirmationAnswer:
        """The answer and who gave it. A `confirm` that breaks has not agreed to anything."""
        lines = self.policies.covering(request.acts)
        if lines:
            permitted = f"{POLICY}{'; '.join(lines)}"
            logger.info("%s permits %s", permitted, request.title)
            return ConfirmationAnswer(digest=request.digest, consent=Consent.ONCE, by=permitted)
        if self.confirm is None:
            return ConfirmationAnswer(digest=request.digest, consent=Consent.NO, by=NOBODY)
        async with self._turn:
            try:
                said = await self.confirm(request)
            except Exception:  # the caller's own code: when it fails, nobody has said yes
                logger.exception("the confirmation dialogue failed; the answer is no")
                return ConfirmationAnswer(digest=request.digest, consent=Consent.NO, by=NOBODY)
        return answer_of(request, said, PERSON)
