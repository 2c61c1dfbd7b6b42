from __future__ import annotations

import asyncio

import pytest

from artoo.contracts.errors import BudgetExhausted, ModelRefused, ModelUnreachable
from artoo.contracts.events import Usage
from artoo.contracts.solution import Cost
from artoo.llm.budget import Budget, BudgetedModel, Demand
from artoo.testing import Asked, ScriptedModel, ScriptedServer, server_error, slow, stall

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
    assert (await second).tokens == 900
    budget.settle(await second, Usage(prompt_tokens=900, completion_tokens=500))
    with pytest.raises(BudgetExhausted, match="1000 tokens") as caught:
        await budget.reserve(Demand(1))
    assert caught.value.budget == "tokens"
