"""What a task may still spend on its language models, shared by all its agents (SPEC section 9)."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable
from dataclasses import dataclass
from typing import NamedTuple, Protocol, TypeVar

from pydantic import BaseModel

from artoo.contracts.errors import BudgetExhausted
from artoo.contracts.events import ModelCalled, Usage
from artoo.contracts.solution import Cost, Money
from artoo.llm.prices import PriceList
from artoo.ports.model import Answer, Conversation, Known, OnText, Question, Spoken, Tier

T = TypeVar("T", bound=BaseModel)


class Demand(NamedTuple):
    """The most that one request can use. `model` is the name that it is asked by: prices go by that."""

    prompt_tokens: int
    completion_tokens: int = 0
    model: str = ""

    @property
    def tokens(self) -> int:
        """Prompt and completion together."""
        return self.prompt_tokens + self.completion_tokens


class Reservation(NamedTuple):
    """Room for one request. `money` is the most that it can cost; 0 where its price is not known."""

    demand: Demand
    money: float = 0.0


@dataclass(frozen=True, slots=True)
class _Account:
    """One thing that is limited, as it looks to one request."""

    name: str
    unit: str
    limit: float | None
    used: float
    reserved: float
    wanted: float

    @property
    def spent(self) -> bool:
        """Waiting cannot help: it is used up, and the request wants some of it."""
        return self.limit is not None and self.wanted > 0 and self.used >= self.limit

    @property
    def fits(self) -> bool:
        """The limit holds even if everything under way uses all that it may."""
        return self.limit is None or self.used + self.reserved + self.wanted <= self.limit


class Budget:
    """Limits of one task; None: no limit. `spent` is what it used before (a resumed task).

    Calls never exceed their limit. Tokens and money are known only after a call, so each reserves the most that
    it can use; one that does not fit waits, first come, first served, for those under way, which mostly use
    less, and the last one that starts with anything left may overshoot, alone. `max_money` needs `prices`; with
    prices and no limit the cost is only counted.
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
        """`whose` it is, and what raises a limit of it (its name goes into the braces): for its error."""
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
        """Calls, tokens and money used so far (the other figures of Cost stay as they were given)."""
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
        """True when nothing is reserved and nobody waits."""
        return self._calls == 0 and self._tokens == 0 and not self._queue.locked()

    def raise_limits(self, calls: int, tokens: int) -> None:
        """Raise both limits, and admit the requests that wait for room; a limit that is higher already stays."""
        if self._max_calls is not None:
            self._max_calls = max(self._max_calls, calls)
        if self._max_tokens is not None:
            self._max_tokens = max(self._max_tokens, tokens)
        self._changed.set()

    async def reserve(self, demand: Demand) -> Reservation:
        """Make room for one request, retries and the repair included. Waits only for requests that are under way.

        Raises BudgetExhausted.
        """
        reservation = Reservation(demand, self._most_money(demand))
        async with self._queue:  # the first to come waits for room, all others for the first
            while not self._fits(reservation):
                self._changed.clear()
                await self._changed.wait()
            self._calls += 1
            self._tokens += reservation.demand.tokens
            self._money += reservation.money
        return reservation

    def settle(self, reservation: Reservation, usage: Usage) -> float | None:
        """Count a request that was made and used this much. Returns what it cost; None: it has no price."""
        cost = self._price_of(reservation, usage)
        self._llm_calls += 1
        self._prompt += usage.prompt_tokens
        self._cached += usage.cached_tokens
        self._completion += usage.completion_tokens
        self._paid = self._paid.plus(cost) if self._paid is not None else None
        self.release(reservation)
        return cost

    def release(self, reservation: Reservation) -> None:
        """Give back the room of a request that was refused, or never left; it cost nothing."""
        self._calls -= 1
        self._tokens -= reservation.demand.tokens
        # Sums of fractions: what is left over when nothing is reserved is rounding, not money.
        self._money = self._money - reservation.money if self._calls else 0.0
        self._changed.set()

    def _fits(self, reservation: Reservation) -> bool:
        """True: go; False: wait for a request under way. Raises BudgetExhausted when waiting cannot help."""
        accounts = self._accounts(reservation)
        for account in accounts:
            if account.spent:
                raise BudgetExhausted(
                    f"{self._whose} budget of {account.limit:g} {account.unit} is spent ({account.used:g} used); "
                    f"raise it with {self._raised_by.format(account.name)}",
                    budget=account.name,
                )
        return self._calls == 0 or all(account.fits for account in accounts)

    def _accounts(self, reservation: Reservation) -> tuple[_Account, ...]:
        money, tokens = self._paid, self._prompt + self._completion
        return (
            _Account("calls", "model calls", self._max_calls, self._llm_calls, self._calls, 1),
            _Account("tokens", "tokens", self._max_tokens, tokens, self._tokens, reservation.demand.tokens),
            _Account(
                "money",
                money.currency if money is not None else "",
                self._max_money,
                money.amount if money is not None else 0.0,
                self._money,
                reservation.money,
            ),
        )

    def _most_money(self, demand: Demand) -> float:
        """Raises ConfigurationError when money is limited and nobody said what the model costs."""
        if self._prices is not None and self._max_money is not None:
            self._prices.demand_all((demand.model,))
        price = self._prices.price(demand.model) if self._prices is not None else None
        return price.at_most(demand.prompt_tokens, demand.completion_tokens) if price is not None else 0.0

    def _price_of(self, reservation: Reservation, usage: Usage) -> float | None:
        price = self._prices.price(reservation.demand.model) if self._prices is not None else None
        return price.of(usage) if price is not None else None


class MeteredModel(Protocol):
    """A model whose every request can be metered."""

    async def ask(self, question: Question[T], *, meter: Budget | None = None) -> Answer[T]:
        """As `Model.ask`; `meter` is asked before each request to the server."""
        ...

    async def converse(
        self, conversation: Conversation, on_text: OnText | None = None, *, meter: Budget | None = None
    ) -> Spoken:
        """As `Model.converse`; `meter` as in `ask`."""
        ...

    async def known(self, tier: Tier) -> Known:
        """What is known of a tier's model before it is asked. Contacts a server at most once; never raises."""
        ...


class BudgetedModel:
    """A task's model: the shared one, on this task's budget."""

    def __init__(self, model: MeteredModel, budget: Budget) -> None:
        self._model = model
        self._budget = budget

    async def ask(self, question: Question[T]) -> Answer[T]:
        """See Model. Raises BudgetExhausted before the request that the budget has no room for."""
        return await self._model.ask(question, meter=self._budget)

    async def converse(self, conversation: Conversation, on_text: OnText | None = None) -> Spoken:
        """See Converses. Raises BudgetExhausted before the request that the budget has no room for."""
        return await self._model.converse(conversation, on_text, meter=self._budget)


def cost_of(calls: Iterable[ModelCalled], prices: PriceList | None = None) -> Cost:
    """What these logged calls took out of a budget: the `spent` with which a resumed task begins.

    `prices`: those of now; their currency labels the sum. Amounts are those that were paid then.
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
