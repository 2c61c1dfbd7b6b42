"""A person who answers by a list."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from artoo.contracts.confirmation import ConfirmationRequest, Consent


@dataclass
class Person:
    """Answers in order, then always no; `meanwhile` happens while the question is open."""

    answers: list[Consent] = field(default_factory=list[Consent])
    asked: list[ConfirmationRequest] = field(default_factory=list[ConfirmationRequest])
    meanwhile: Callable[[], object] = bool

    async def __call__(self, request: ConfirmationRequest) -> Consent:
        self.asked.append(request)
        self.meanwhile()
        return self.answers.pop(0) if self.answers else Consent.NO
