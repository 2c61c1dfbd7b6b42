"""Budgets of money, and what holds for every budget however many askers share it."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from artoo.contracts.errors import BudgetExhausted, ConfigurationError
from artoo.contracts.events import ModelCalled, Usage
from artoo.contracts.roles import Role
from artoo.contracts.solution import Cost, Money
from artoo.llm.budget import Budget, BudgetedModel, Demand, cost_of
from artoo.llm.prices import FREE, Price, PriceList
from artoo.testing import Asked, Reply, ScriptedModel, ScriptedServer, cut, slow

from .asking import STEP, client_of, question

PRICE = Price(prompt=2.0, cached=0.5, completion=10.0)
PRICES = PriceList("EUR", {"m": PRICE, "scripted": PRICE, "own": FREE})


def money_of(budget: Budget) -> Money:
    money = budget.cost().money
    assert money is not None
    return money


async def test_money_is_counted_and_labelled() -> None:
    """With prices and no limit, the cost of answer, repair and all stands in the cost and with the answer."""
    budget = Budget(prices=PRICES)
    with ScriptedModel({"Step": [cut(STEP), STEP]}) as model:
        answer = await BudgetedModel(model, budget).ask(question())
    money = money_of(budget)
    expected = PRICES.models["scripted"].of(answer.usage)
    assert (money.currency, money.unpriced_calls, answer.billed) == ("EUR", 0, 2)
    assert money.amount == pytest.approx(expected)
    assert answer.money == pytest.approx(expected)


async def test_a_limit_needs_the_price() -> None:
    """With a limit, a model that nobody priced is an error that says what to write."""
    budget = Budget(max_money=1.0, prices=PriceList("EUR", {}))
    with pytest.raises(ConfigurationError, match=r"scripted has none.*prices\.models"):
        await BudgetedModel(ScriptedModel(lambda asked: STEP, leftover=True), budget).ask(question())
    with pytest.raises(ValueError, match="prices"):
        Budget(max_money=1.0)


async def test_spent_money_ends_paid_calls_only() -> None:
    """When the money is gone, a model that costs nothing may still be asked."""
    budget = Budget(max_money=0.001, prices=PRICES)
    budget.settle(await budget.reserve(Demand(1_000, 0, "m")), Usage(prompt_tokens=1_000))
    with pytest.raises(
        BudgetExhausted, match=r"0\.001 EUR is spent.*raise it with `money` of its limits"
    ) as caught:
        await budget.reserve(Demand(10, 10, "m"))
    assert caught.value.budget == "money"
    await budget.reserve(Demand(10_000, 10, "own"))


async def test_a_resumed_task_goes_on_with_its_bill() -> None:
    """What the log says was paid counts against the limit, and is added to."""
    calls = [
        ModelCalled(
            role=Role.EXECUTOR,
            contract="Step",
            tier="tool",
            model="m",
            system="",
            user="",
            money=amount,
            billed=billed,
        )
        for amount, billed in ((0.25, 1), (0.5, 2), (None, 0))
    ]
    spent = cost_of(calls, PRICES)
    assert spent == Cost(llm_calls=3, money=Money(amount=0.75, currency="EUR"))
    assert cost_of(calls).money is None
    budget = Budget(max_money=0.75, prices=PRICES, spent=spent)
    with pytest.raises(BudgetExhausted):
        await budget.reserve(Demand(1, 1, "m"))


async def test_the_first_to_wait_is_the_first_to_go() -> None:
    """A large request is not overtaken for ever by small ones that would still fit."""
    budget, order = Budget(max_tokens=1_000), list[str]()
    first = await budget.reserve(Demand(600))

    async def ask(name: str, tokens: int) -> None:
        reservation = await budget.reserve(Demand(tokens))
        order.append(name)
        budget.release(reservation)

    async with asyncio.timeout(5), asyncio.TaskGroup() as group:
        group.create_task(ask("large", 900))
        await asyncio.sleep(0)
        group.create_task(ask("small", 10))
        await asyncio.sleep(0)
        assert order == []
        budget.release(first)
    assert order == ["large", "small"]


async def refused(budget: Budget, tokens: int) -> str:
    with pytest.raises(BudgetExhausted) as caught:
        await budget.reserve(Demand(tokens))
    return caught.value.budget


@dataclass(slots=True)
class Bill:
    """What a fake server charged, and how much of it for the dearest call."""

    prices: list[float] = field(default_factory=list[float])
    tokens: list[int] = field(default_factory=list[int])
    cancelled: int = 0


CALLS = st.lists(
    st.tuples(
        st.integers(1, 400),  # prompt tokens at most
        st.integers(1, 400),  # completion tokens at most
        st.integers(0, 100),  # how much of that is really used, in percent
        st.integers(0, 100),  # how much of the prompt was cached
        st.integers(0, 4),  # turns of the loop that it takes
        st.sampled_from(["ok", "ok", "ok", "refused", "cancelled"]),
    ),
    max_size=40,
)


@given(
    calls=CALLS,
    money=st.one_of(st.none(), st.floats(0.0001, 0.02)),
    tokens=st.one_of(st.none(), st.integers(1, 4_000)),
    most_calls=st.one_of(st.none(), st.integers(1, 30)),
)
@settings(max_examples=150, deadline=None)
def test_no_budget_is_overshot_by_more_than_one_call(
    calls: list[tuple[int, int, int, int, int, str]],
    money: float | None,
    tokens: int | None,
    most_calls: int | None,
) -> None:
    """Many askers, random costs, refusals and cancellations: without its last call every limit would have held,
    calls are never exceeded, nobody waits for ever, and nothing stays reserved."""
    bill = Bill()

    async def one(budget: Budget, call: tuple[int, int, int, int, int, str]) -> None:
        prompt, completion, share, cached, turns, ending = call
        try:
            reservation = await budget.reserve(Demand(prompt, completion, "m"))
        except BudgetExhausted:
            return
        used: Usage | None = Usage(
            prompt_tokens=prompt * share // 100,
            cached_tokens=prompt * share * cached // 10_000,
            completion_tokens=completion * share // 100,
        )
        try:
            for _ in range(turns):
                await asyncio.sleep(0)
            if ending == "cancelled":
                raise asyncio.CancelledError
            used = None if ending == "refused" else used
        finally:
            if used is None:
                budget.release(reservation)
            else:
                bill.prices.append(budget.settle(reservation, used) or 0.0)
                bill.tokens.append(used.prompt_tokens + used.completion_tokens)

    async def run() -> Budget:
        budget = Budget(max_calls=most_calls, max_tokens=tokens, max_money=money, prices=PRICES)
        async with asyncio.timeout(20):
            await asyncio.gather(*(one(budget, call) for call in calls), return_exceptions=True)
            if most_calls is None and tokens is None and money is None:
                assert len(bill.prices) == sum(call[-1] != "refused" for call in calls)
        return budget

    budget = asyncio.run(run())
    assert budget.cost().llm_calls == len(bill.prices)
    assert money_of(budget).amount == pytest.approx(sum(bill.prices))
    assert most_calls is None or len(bill.prices) <= most_calls
    for limit, used in ((tokens, bill.tokens), (money, bill.prices)):
        assert limit is None or sum(used) <= limit or sum(used) - max(used) < limit
    assert budget.idle


async def test_a_cancelled_question_pays_for_its_prompt() -> None:
    """A server that is left alone may still charge: the prompt counts, by estimate, and its room is free again."""
    budget, arrived = Budget(prices=PRICES), asyncio.Event()

    def answering(asked: Asked) -> Reply:
        arrived.set()
        return slow(STEP, 30)

    async with ScriptedServer(answering) as server, client_of(server) as shared:
        asking = asyncio.ensure_future(BudgetedModel(shared, budget).ask(question()))
        await arrived.wait()
        asking.cancel()
        with pytest.raises(asyncio.CancelledError):
            await asking
    assert budget.cost().prompt_tokens > 0
    assert money_of(budget).amount > 0
    assert budget.idle
