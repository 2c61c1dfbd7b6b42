"""What a task cost, and the records of older versions that knew less."""

from __future__ import annotations

import json

from artoo.contracts import codec, errors
from artoo.contracts.events import Spent
from artoo.contracts.solution import Cost, Directive, FinalResult, Money, StoppedBy


def test_money_adds_what_is_known_and_counts_what_is_not() -> None:
    """A call without a price changes no amount, and is not forgotten."""
    money = Money(currency="EUR").plus(0.25).plus(None).plus(0.5)
    assert money == Money(amount=0.75, currency="EUR", unpriced_calls=1)


def test_results_of_older_logs_are_read() -> None:
    """A result without money, stopped by `calls` (which then stood for tokens too), is what it was."""
    line = {
        "v": codec.SCHEMA_VERSION,
        "id": "1",
        "kind": "FinalResult",
        "sender": "solver",
        "task_id": "t",
        "at": "2026-01-01T00:00:00+00:00",
        "payload": {
            "task_id": "t",
            "summary": "",
            "directive": "abandon",
            "stopped_by": "calls",
            "cost": {"llm_calls": 3, "prompt_tokens": 5},
        },
    }
    read = codec.decode(json.dumps(line)).payload
    assert read == FinalResult(
        task_id="t",
        summary="",
        directive=Directive.ABANDON,
        stopped_by=StoppedBy.CALLS,
        cost=Cost(llm_calls=3, prompt_tokens=5),
    )


def test_errors_say_what_they_cost() -> None:
    """What reached no server is marked, and a spent budget can say what the question had used before."""
    assert errors.ModelUnreachable("x").sent
    assert not errors.ModelUnreachable("x", sent=False).sent
    spent = errors.BudgetExhausted("x", budget="money")
    assert spent.spent is None
    spent.spent = Spent(billed=1, money=0.5)
    assert spent.spent.money == 0.5
