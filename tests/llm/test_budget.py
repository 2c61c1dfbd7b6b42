from __future__ import annotations

import asyncio

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from artoo.contracts.errors import BudgetExhausted, ModelAnswerInvalid, ModelRefused, ModelUnreachable
from artoo.contracts.events import Usage
from artoo.contracts.solution import Cost
from artoo.llm.budget import Budget, BudgetedModel, Demand
from artoo.llm.client import EndpointModel
from artoo.llm.http import HttpTransport
from artoo.testing import (
    Asked,
    FakeClock,
    Reply,
    ScriptedModel,
    ScriptedServer,
    cut,
    forbid_real_models,
    server_error,
    slow,
    stall,
)

from .asking import STEP, client_of, question


def endless(asked: Asked) -> dict[str, str]:
    return STEP


async def test_calls_and_tokens_are_counted():
    """The budget's cost is what the answers cost, in the contract's own form."""
    budget = Budget(max_calls=5)
    answer = await BudgetedModel(ScriptedModel(endless, leftover=True), budget).ask(question())
    cost = budget.cost()
    assert cost.llm_calls == 1
    assert cost.prompt_tokens == answer.usage.prompt_tokens > 0
    assert cost.completion_tokens == answer.usage.completion_tokens > 0


async def test_no_call_beyond_the_limit_however_parallel():
    """Of many questions at once exactly as many reach the server as the budget has calls."""
    budget = Budget(max_calls=7)
    async with ScriptedServer(lambda asked: slow(STEP, 0.02)) as server, client_of(server) as shared:
        models = [BudgetedModel(shared, budget) for _ in range(3)]
        results = await asyncio.gather(
            *(models[number % 3].ask(question()) for number in range(20)), return_exceptions=True
        )
    refused = [result for result in results if isinstance(result, BudgetExhausted)]
    assert (len(refused), len(server.player.requests), budget.cost().llm_calls) == (13, 7, 7)
    assert refused[0].budget == "calls"
    assert "7 model calls" in str(refused[0])


async def test_the_repair_is_a_call_of_its_own():
    """With one call left, a bad answer cannot be repaired: the budget says so instead of overshooting."""
    budget = Budget(max_calls=1)
    with ScriptedModel({"Step": [cut(STEP)]}) as model, pytest.raises(BudgetExhausted):
        await BudgetedModel(model, budget).ask(question())
    assert budget.cost().llm_calls == 1


async def test_refused_requests_are_free_and_lost_ones_count():
    """A 4xx or 5xx cost nothing; each request that never came back may have cost its prompt, and counts."""
    budget = Budget(max_calls=10)
    script = {"Step": [server_error(403, "no"), *[server_error(503)] * 4, stall(), stall(), stall(), STEP]}
    model = BudgetedModel(ScriptedModel(script, leftover=True), budget)
    with pytest.raises(ModelRefused):
        await model.ask(question())
    with pytest.raises(ModelUnreachable):
        await model.ask(question())
    assert budget.cost() == Cost()
    answer = await model.ask(question())
    cost = budget.cost()
    assert (cost.llm_calls, answer.requests, answer.billed) == (4, 4, 4)
    assert answer.usage.estimated
    assert cost.prompt_tokens == answer.usage.prompt_tokens > 0


async def test_retries_stop_at_the_budget():
    """Lost answers are asked for again only while the budget has calls; the error says what was used."""
    budget = Budget(max_calls=2)
    with ScriptedModel({"Step": [stall(), stall()]}) as model, pytest.raises(BudgetExhausted) as caught:
        await BudgetedModel(model, budget).ask(question())
    assert budget.cost().llm_calls == 2
    assert caught.value.spent is not None
    assert (caught.value.spent.billed, caught.value.spent.requests) == (2, 2)


async def test_a_server_that_is_not_there_costs_nothing():
    """Where no connection came about, nothing was sent: the error is the server's, not the budget's."""
    budget = Budget(max_calls=1)
    transport = HttpTransport("http://127.0.0.1:9/v1")
    shared = EndpointModel(transport, "absent", FakeClock(auto_advance=True))
    with forbid_real_models(allow=True), pytest.raises(ModelUnreachable, match="cannot connect"):
        await BudgetedModel(shared, budget).ask(question())
    await shared.close()
    assert budget.cost() == Cost()


async def test_bad_answers_cost_too():
    """Tokens of answers that could not be used are on the bill."""
    budget = Budget()
    with ScriptedModel({"Step": [cut(STEP), cut(STEP)]}) as model, pytest.raises(ModelAnswerInvalid):
        await BudgetedModel(model, budget).ask(question())
    assert budget.cost().llm_calls == 2
    assert budget.cost().prompt_tokens > 0


async def test_a_cancelled_call_frees_its_reservation():
    """Cancelling does not leave room reserved for ever."""
    budget, arrived = Budget(max_calls=2, max_tokens=10_000), asyncio.Event()

    def answering(asked: Asked) -> Reply:
        arrived.set()
        return slow(STEP, 30)

    async with ScriptedServer(answering) as server, client_of(server) as shared:
        asking = asyncio.ensure_future(BudgetedModel(shared, budget).ask(question(max_tokens=9_000)))
        await arrived.wait()
        asking.cancel()
        with pytest.raises(asyncio.CancelledError):
            await asking
    assert budget.cost().llm_calls == 1
    await asyncio.wait_for(budget.reserve(Demand(9_000)), 1)


async def test_a_resumed_task_starts_with_what_it_spent():
    """Calls before the resume count against the limit."""
    budget = Budget(max_calls=3, spent=Cost(llm_calls=3, tool_calls=4))
    with pytest.raises(BudgetExhausted):
        await budget.reserve(Demand(1))
    assert budget.cost().tool_calls == 4


async def test_waiting_for_tokens_ends_when_calls_turn_out_cheap():
    """A call that would not fit beside one under way gets its turn when that one used less than it reserved."""
    budget = Budget(max_tokens=1_000)
    first = await budget.reserve(Demand(900))
    second = asyncio.ensure_future(budget.reserve(Demand(900)))
    await asyncio.sleep(0)
    assert not second.done()
    budget.settle(first, Usage(prompt_tokens=50, completion_tokens=10))
    assert (await second).demand.tokens == 900
    budget.settle(await second, Usage(prompt_tokens=900, completion_tokens=500))
    with pytest.raises(BudgetExhausted, match="1000 tokens") as caught:
        await budget.reserve(Demand(1))
    assert caught.value.budget == "tokens"


@given(
    limit=st.integers(1, 3_000),
    calls=st.lists(st.tuples(st.integers(1, 800), st.integers(0, 100), st.integers(0, 5)), max_size=30),
)
@settings(max_examples=60, deadline=None)
def test_tokens_overshoot_by_one_call_at_most(limit: int, calls: list[tuple[int, int, int]]):
    """Whatever runs in parallel and in whatever order it ends, without the last call the limit would have held."""
    used: list[int] = []

    async def one(budget: Budget, most: int, share: int, turns: int) -> None:
        try:
            reservation = await budget.reserve(Demand(most))
        except BudgetExhausted:
            return
        for _ in range(turns):
            await asyncio.sleep(0)
        tokens = most * share // 100
        used.append(tokens)
        budget.settle(reservation, Usage(prompt_tokens=tokens))

    async def run() -> None:
        budget = Budget(max_tokens=limit)
        async with asyncio.timeout(10), asyncio.TaskGroup() as group:
            for call in calls:
                group.create_task(one(budget, *call))

    asyncio.run(run())
    assert sum(used) <= limit or sum(used) - max(used) < limit


async def test_unlimited_budgets_only_count():
    """Without limits nothing waits and nothing is refused."""
    budget = Budget()
    model = BudgetedModel(ScriptedModel(lambda asked: Reply(text='{"tool": "a"}'), leftover=True), budget)
    await asyncio.gather(*(model.ask(question(max_tokens=10**9)) for _ in range(20)))
    assert budget.cost().llm_calls == 20
