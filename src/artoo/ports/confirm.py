"""How Law 1's questions reach whoever may answer them."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Protocol

from artoo.contracts.confirmation import ConfirmationAnswer, ConfirmationRequest, Consent

Confirm = Callable[[ConfirmationRequest], Awaitable[Consent]]
"""Asks a person: a dialogue of the terminal, a page, a test. Cancelled when the answer is no longer wanted."""


class Questions(Protocol):
    """Where a gate puts its questions."""

    async def ask(self, request: ConfirmationRequest) -> ConfirmationAnswer:
        """The answer to exactly this request. Where nobody can be asked it is no, at once."""
        ...
