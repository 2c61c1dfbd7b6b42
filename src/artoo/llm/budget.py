"""What a task may still spend on its language models, shared by all its agents (SPEC section 9)."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from typing import Protocol, TypeVar

from pydantic import BaseModel

from artoo.contracts.errors import BudgetExhausted
from artoo.contracts.events import Usage
from artoo.contracts.solution import Cost
from artoo.ports.model import Answer, Question

T = TypeVar("T", bound=BaseModel)


@dataclass(frozen=True, slots=True)
class Reservation:
    """Room for one call: at most this many tokens, prompt and answer together."""

    tokens: int


class Meter(Protocol):
    """Is asked before every call to a model, the repair included, and told afterwards what it used."""

    async def reserve(self, tokens: int) -> Reservation:
        """Makes room for one call. Raises BudgetExhausted."""
        ...

    def settle(self, reservation: Reservation, usage: Usage) -> None:
        """The call was made and used this much."""
        ...

    def release(self, reservation: Reservation) -> None:
        """The server refused the call; it cost nothing."""
        ...


class Unmetered:
    """Lets every call pass."""

    async def reserve(self, tokens: int) -> Reservation:
        """Always room."""
        return Reservation(tokens)

    def settle(self, reservation: Reservation, usage: Usage) -> None:
        """Nothing to count."""

    def release(self, reservation: Reservation) -> None:
        """Nothing to give back."""


class Budget:
    """Limits of one task; None: no limit. `spent` is what it used before (a resumed task).

    Calls never exceed their limit. Tokens are known only after a call, so each call reserves the most that it can
    use; a call that does not fit waits for those under way, which mostly use less, and the last one that starts
    with anything left may overshoot, alone.
    """

    def __init__(
        self, *, max_calls: int | None = None, max_tokens: int | None = None, spent: Cost | None = None
    ) -> None:
        self._max_calls = max_calls
        self._max_tokens = max_tokens
        self._spent = spent or Cost()
        self._reserved_calls = 0
        self._reserved_tokens = 0
        self._freed = asyncio.Event()

    def cost(self) -> Cost:
        """Model calls and tokens used so far (the other figures of Cost stay as they were given)."""
        return self._spent

    async def reserve(self, tokens: int) -> Reservation:
        """See Meter. Waits only for calls that are under way."""
        while not self._fits(tokens):
            self._freed.clear()
            await self._freed.wait()
        self._reserved_calls += 1
        self._reserved_tokens += tokens
        return Reservation(tokens)

    def settle(self, reservation: Reservation, usage: Usage) -> None:
        """See Meter."""
        spent = self._spent
        self._spent = spent.model_copy(
            update={
                "llm_calls": spent.llm_calls + 1,
                "prompt_tokens": spent.prompt_tokens + usage.prompt_tokens,
                "cached_tokens": spent.cached_tokens + usage.cached_tokens,
                "completion_tokens": spent.completion_tokens + usage.completion_tokens,
            }
        )
        self.release(reservation)

    def release(self, reservation: Reservation) -> None:
        """See Meter."""
        self._reserved_calls -= 1
        self._reserved_tokens -= reservation.tokens
        self._freed.set()

    def _fits(self, tokens: int) -> bool:
        """True: go; False: wait for a call under way. Raises BudgetExhausted when waiting cannot help."""
        used = self._spent.prompt_tokens + self._spent.completion_tokens
        if self._max_calls is not None and self._spent.llm_calls >= self._max_calls:
            raise BudgetExhausted(
                f"the task's budget of {self._max_calls} model calls is spent; raise it with --budget",
                budget="calls",
            )
        if self._max_tokens is not None and used >= self._max_tokens:
            raise BudgetExhausted(
                f"the task's budget of {self._max_tokens} tokens is spent ({used} used); raise it with --budget",
                budget="tokens",
            )
        if self._reserved_calls == 0:
            return True
        calls_fit = self._max_calls is None or self._spent.llm_calls + self._reserved_calls < self._max_calls
        tokens_fit = self._max_tokens is None or used + self._reserved_tokens + tokens <= self._max_tokens
        return calls_fit and tokens_fit


class MeteredModel(Protocol):
    """A model whose every call can be metered."""

    async def ask(self, question: Question[T], *, meter: Meter | None = None) -> Answer[T]:
        """As `Model.ask`; `meter` is asked before each call to the server."""
        ...


class BudgetedModel:
    """A task's model: the shared one, on this task's budget."""

    def __init__(self, model: MeteredModel, budget: Budget) -> None:
        self._model = model
        self._budget = budget

    async def ask(self, question: Question[T]) -> Answer[T]:
        """See Model. Raises BudgetExhausted before the call that the budget has no room for."""
        return await self._model.ask(question, meter=self._budget)
