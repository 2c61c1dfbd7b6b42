"""What the page adds up."""

from __future__ import annotations

from artoo.contracts.solution import Money
from artoo.web.books import Sum


def test_amounts_of_two_currencies_are_not_added() -> None:
    """After the operator's prices changed their currency, old and new amounts stand beside each other."""
    found = Sum()
    for amount, currency in ((1.0, "EUR"), (2.0, "USD"), (0.5, "EUR")):
        found.pay(Money(amount=amount, currency=currency))
    assert found.spent == "1.50 EUR + 2.00 USD"
    assert Sum().spent == ""
