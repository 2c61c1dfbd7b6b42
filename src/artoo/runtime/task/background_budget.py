"""The daily budget of memory's own model calls, in `upkeep.json`, shared by all processes.

The Dreamer and the agents' dream cycles ask models while no user waits. The cost of these calls is counted in an
account of its own, the file `<home>/upkeep.json`. It contains the day (UTC) and the cost of that day. If two
processes ask at the same moment, each may make one call more than the budget allows.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Callable, Mapping
from contextlib import asynccontextmanager
from datetime import date
from pathlib import Path
from typing import TypeVar

from pydantic import BaseModel, ValidationError

from artoo.contracts.base import Contract
from artoo.contracts.errors import BudgetExhausted
from artoo.contracts.solution import Cost
from artoo.disk.whole import read_text, write_durably
from artoo.llm.budget import Budget, BudgetedModel, MeteredModel
from artoo.llm.prices import FREE, PriceList
from artoo.ports.clock import Clock
from artoo.ports.model import Answer, Conversation, OnText, Question, Spoken
from artoo.runtime.app.budgets import EMBEDDED, model_names, price_list
from artoo.runtime.config.model import Config

T = TypeVar("T", bound=BaseModel)


class Account(Contract):
    """The cost of the calls on one day."""

    day: date
    cost: Cost = Cost()


def account_file(home: Path) -> Path:
    """Return the file of the account. It need not exist."""
    return home / "upkeep.json"


def spent_on(home: Path, day: date) -> Cost:
    """Return the cost of memory's own calls on a day. It is zero if the account is that of another day, or cannot
    be read.

    Blocks.
    """
    # If the account is damaged, memory spends at most one more daily budget.
    try:
        account = Account.model_validate_json(read_text(account_file(home)) or "null")
    except (OSError, UnicodeDecodeError, ValidationError):
        return Cost()
    return account.cost if account.day == day else Cost()


class UpkeepModel:
    """Implements `ports.model.Model` over the models of the process, one question at a time."""

    def __init__(self, model: MeteredModel, home: Path, clock: Clock, budget: Callable[[Cost], Budget]) -> None:
        """Create the model. `budget` takes the cost of a day so far and returns the budget that is left for the
        day."""
        self._model = model
        self._home = home
        self._clock = clock
        self._budget = budget
        self._turn = asyncio.Lock()

    async def ask(self, question: Question[T]) -> Answer[T]:
        """Ask the model within the day's budget. Raises BudgetExhausted if the budget is used up, or if the account
        cannot be written."""
        async with self._account() as model:
            return await model.ask(question)

    async def converse(self, conversation: Conversation, on_text: OnText | None = None) -> Spoken:
        """Converse within the day's budget. Raises BudgetExhausted in the same cases as `ask`."""
        async with self._account() as model:
            return await model.converse(conversation, on_text)

    @asynccontextmanager
    async def _account(self) -> AsyncGenerator[BudgetedModel]:
        """Yield the models with what is left of the day's budget as their limit. Write the cost at the end."""
        async with self._turn:
            day = self._clock.now().date()
            budget = self._budget(await asyncio.to_thread(spent_on, self._home, day))
            try:
                yield BudgetedModel(self._model, budget)
            finally:
                await asyncio.to_thread(_keep, self._home, Account(day=day, cost=budget.cost()))


def _keep(home: Path, account: Account) -> None:
    """Write the account. Raises BudgetExhausted if it cannot be written, because then nothing would limit the
    cost."""
    try:
        account_file(home).parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        write_durably(account_file(home), account.model_dump_json().encode())
    except OSError as error:
        raise BudgetExhausted(
            f"{account_file(home)} cannot be written ({error.strerror}), so memory asks no model; mend that",
            budget="calls",
        ) from error


def upkeep_model(
    model: MeteredModel, config: Config, environ: Mapping[str, str], clock: Clock, *, given_model: bool = False
) -> UpkeepModel:
    """Return the model for the work that memory does by itself.

    Raises ConfigurationError if money is limited and a configured model has no price.
    """
    limits, prices = config.memory, price_list(config, None if given_model else environ)
    if limits.money is not None:
        prices = prices or PriceList(config.prices.currency, {EMBEDDED: FREE})
        if not given_model:
            prices.demand_all(model_names(config, environ))

    def budget(spent: Cost) -> Budget:
        return Budget(
            max_calls=limits.calls,
            max_tokens=limits.tokens,
            max_money=limits.money,
            prices=prices,
            spent=spent,
            whose="memory's own daily",
            raised_by="memory.{} in the configuration",
        )

    return UpkeepModel(model, config.home, clock, budget)
