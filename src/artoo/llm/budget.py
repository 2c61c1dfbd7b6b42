"""The budget of a task for model calls, tokens and money, reserved before each request.

All roles and subtasks of the task use the same budget. Reference: SPEC section 9.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable
from typing import NamedTuple, Protocol, TypeVar

from pydantic import BaseModel

from artoo.contracts.errors import BudgetExhausted
from artoo.contracts.events import ModelCalled, Usage
from artoo.contracts.solution import Cost, Money
from artoo.llm.prices import PriceList
from artoo.ports.model import Answer, Conversation, Known, OnText, Question, Spoken, Tier

T = TypeVar("T", bound=BaseModel)


class Demand(NamedTuple):
    """The maximum amounts that one request can use. `model` is the name in the request, by which the price is
    found.

    `money` is the maximum cost of the request. The budget computes it. It is 0 if the price is unknown.
    """

    prompt_tokens: int
    completion_tokens: int = 0
    model: str = ""
    money: float = 0.0

    @property
    def tokens(self) -> int:
        """Return the sum of prompt and completion tokens."""
        return self.prompt_tokens + self.completion_tokens


class Budget:
    """The limits of one task. A limit of None means no limit. `spent`: what the task had used before it was
    resumed.

    The number of calls never exceeds its limit. The tokens and the money of a call are known only afterwards, so
    each request reserves the maximum that it can use. A request that does not fit waits, in order of arrival, for
    the requests that are running. These mostly use less than they have reserved. The last request that is sent
    while anything is left may exceed the limit, if no other request is running. `max_money` requires `prices`. With
    prices and without a limit, the cost is only counted.
    """

    def __init__(
        self,
        *,
        max_calls: int | None = None,
        max_tokens: int | None = None,
        max_money: float | None = None,
        prices: PriceList | None = None,
        spent: Cost | None = None,
        whose: str = "the task's",
        raised_by: str = "`{}` of its limits",
    ) -> None:
        """Create the budget. `whose` and `raised_by` are parts of the text of its error, in which `{}` stands for
        the name of the limit."""
        if max_money is not None and prices is None:
            raise ValueError("a budget of money needs prices")
        self._max_calls = max_calls
        self._max_tokens = max_tokens
        self._max_money = max_money
        self._prices = prices
        self._whose, self._raised_by = whose, raised_by
        spent = spent or Cost()
        if prices is not None and spent.money is None:
            spent = spent.model_copy(update={"money": Money(currency=prices.currency)})
        self._before = spent
        self._llm_calls, self._prompt = spent.llm_calls, spent.prompt_tokens
        self._cached, self._completion = spent.cached_tokens, spent.completion_tokens
        self._paid = spent.money
        self._calls = 0
        self._tokens = 0
        self._money = 0.0
        self._queue = asyncio.Lock()
        self._changed = asyncio.Event()

    def cost(self) -> Cost:
        """Return the calls, tokens and money used so far. The other fields of Cost are those that were given at the
        start."""
        return self._before.model_copy(
            update={
                "llm_calls": self._llm_calls,
                "prompt_tokens": self._prompt,
                "cached_tokens": self._cached,
                "completion_tokens": self._completion,
                "money": self._paid,
            }
        )

    @property
    def idle(self) -> bool:
        """Return whether nothing is reserved and no request waits."""
        return self._calls == 0 and self._tokens == 0 and not self._queue.locked()

    def raise_limits(self, calls: int, tokens: int) -> None:
        """Raise both limits, and wake the requests that wait. A limit that is already higher is not changed."""
        if self._max_calls is not None:
            self._max_calls = max(self._max_calls, calls)
        if self._max_tokens is not None:
            self._max_tokens = max(self._max_tokens, tokens)
        self._changed.set()

    async def reserve(self, demand: Demand) -> Demand:
        """Reserve budget for one request, which may also be a retry or a repair. Return the demand with its money
        computed.

        It waits only while other requests are running. Raises BudgetExhausted.
        """
        demand = demand._replace(money=self._most_money(demand))
        async with self._queue:  # the first request waits for the budget, and all others wait for the first
            while not self._fits(demand):
                self._changed.clear()
                await self._changed.wait()
            self._calls += 1
            self._tokens += demand.tokens
            self._money += demand.money
        return demand

    def settle(self, reserved: Demand, usage: Usage) -> float | None:
        """Count a finished request by its usage. Returns its cost, or None if its model has no price."""
        cost = self._price_of(reserved, usage)
        self._llm_calls += 1
        self._prompt += usage.prompt_tokens
        self._cached += usage.cached_tokens
        self._completion += usage.completion_tokens
        self._paid = self._paid.plus(cost) if self._paid is not None else None
        self.release(reserved)
        return cost

    def release(self, reserved: Demand) -> None:
        """Release what was reserved for a request that was refused or never sent, because it cost nothing."""
        self._calls -= 1
        self._tokens -= reserved.tokens
        # If nothing is reserved, any remaining amount is a rounding error of the sums.
        self._money = self._money - reserved.money if self._calls else 0.0
        self._changed.set()

    def _fits(self, wanted: Demand) -> bool:
        """Return whether a request may be sent now. If not, it must wait. Raises BudgetExhausted if waiting cannot
        help.
        """
        paid = self._paid or Money(currency="")
        tokens = self._prompt + self._completion
        accounts = (  # name, unit, limit, used, reserved, wanted
            ("calls", "model calls", self._max_calls, self._llm_calls, self._calls, 1),
            ("tokens", "tokens", self._max_tokens, tokens, self._tokens, wanted.tokens),
            ("money", paid.currency, self._max_money, paid.amount, self._money, wanted.money),
        )
        for name, unit, limit, used, _, more in accounts:
            if limit is not None and more > 0 and used >= limit:
                raise BudgetExhausted(
                    f"{self._whose} budget of {limit:g} {unit} is spent ({used:g} used); "
                    f"raise it with {self._raised_by.format(name)}",
                    budget=name,
                )
        # The last request that is sent while anything is left may exceed the limit, if no other request is running.
        return self._calls == 0 or all(
            limit is None or used + reserved + more <= limit for _, _, limit, used, reserved, more in accounts
        )

    def _most_money(self, demand: Demand) -> float:
        """Return the maximum cost of a request. Raises ConfigurationError if money is limited and the price is
        unknown.
        """
        if self._prices is not None and self._max_money is not None:
            self._prices.demand_all((demand.model,))
        price = self._prices.price(demand.model) if self._prices is not None else None
        return price.at_most(demand.prompt_tokens, demand.completion_tokens) if price is not None else 0.0

    def _price_of(self, reserved: Demand, usage: Usage) -> float | None:
        price = self._prices.price(reserved.model) if self._prices is not None else None
        return price.of(usage) if price is not None else None


class MeteredModel(Protocol):
    """A model whose questions each have their own budget."""

    async def ask(self, question: Question[T], *, meter: Budget | None = None) -> Answer[T]:
        """Ask a question, like `Model.ask`. `meter` is the budget, which is asked before each request to the
        server."""
        ...

    async def converse(
        self, conversation: Conversation, on_text: OnText | None = None, *, meter: Budget | None = None
    ) -> Spoken:
        """Take a turn, like `Model.converse`. `meter` has the same meaning as in `ask`."""
        ...

    async def known(self, tier: Tier) -> Known:
        """Return what is known about the model of a tier before the model is asked. A server is contacted at most
        once. This never raises.
        """
        ...


class BudgetedModel:
    """The models of the process, used with the budget of one task."""

    def __init__(self, model: MeteredModel, budget: Budget) -> None:
        self._model = model
        self._budget = budget

    async def ask(self, question: Question[T]) -> Answer[T]:
        """Ask within the budget, like Model. Raises BudgetExhausted before a request that does not fit."""
        return await self._model.ask(question, meter=self._budget)

    async def converse(self, conversation: Conversation, on_text: OnText | None = None) -> Spoken:
        """Take a turn within the budget, like Converses. Raises BudgetExhausted in the same cases as `ask`."""
        return await self._model.converse(conversation, on_text, meter=self._budget)


def cost_of(calls: Iterable[ModelCalled], prices: PriceList | None = None) -> Cost:
    """Sum the usage of the calls in a log. A resumed task passes the sum to its budget as `spent`.

    `prices`: the present price list. It gives only the currency of the sum. The amounts are those in the log.
    """
    cost, money = Cost(), Money(currency=prices.currency) if prices is not None else None
    for call in calls:
        usage = call.usage
        cost = Cost(
            llm_calls=cost.llm_calls + call.billed,
            prompt_tokens=cost.prompt_tokens + usage.prompt_tokens,
            cached_tokens=cost.cached_tokens + usage.cached_tokens,
            completion_tokens=cost.completion_tokens + usage.completion_tokens,
        )
        if money is not None and call.billed:
            money = money.plus(call.money)
    return cost.model_copy(update={"money": money})
