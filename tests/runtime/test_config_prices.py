"""Prices and log retention in the configuration: read, checked, and mistakes named."""

from __future__ import annotations

from pathlib import Path

import pytest

from artoo import ConfigurationError
from artoo.contracts.events import Usage
from artoo.runtime.app.budgets import price_list
from artoo.runtime.config.loader import read_config


def test_prices_are_read(tmp_path: Path) -> None:
    """A price without `cached` charges cached tokens like the others; the embedded model is free."""
    path = tmp_path / "config.yaml"
    path.write_text("prices:\n  currency: EUR\n  models:\n    a: {prompt: 2, completion: 8}\n")
    prices = price_list(read_config(path, {}))
    assert prices is not None
    price, own = prices.price("a"), prices.price("embedded")
    assert prices.currency == "EUR" and price is not None and own is not None
    assert price.of(Usage(prompt_tokens=1_000_000, cached_tokens=500_000)) == 2.0
    assert own.of(Usage(prompt_tokens=10)) == 0
    assert prices.price("b") is None


def test_no_prices_no_list(tmp_path: Path) -> None:
    """Without prices there is nothing to show."""
    assert price_list(read_config(tmp_path / "absent.yaml", {})) is None


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("prices: {models: {a: {promt: 1, prompt: 1, completion: 1}}}", "did you mean prompt?"),
        (
            "prices: {models: {a: {prompt: -1, completion: 1}}}",
            "prices.models.a.prompt is -1, but must be at least 0",
        ),
        ("prices: {models: {a: {prompt: 1}}}", "prices.models.a.completion is missing"),
        ("limits: {money: 0}", "limits.money is 0, but must be above 0"),
        ("log: {keep_days: 0}", "log.keep_days is 0, but must be above 0"),
        ("mcp_servers: {notes: {comand: x}}", "did you mean command?"),
    ],
)
def test_mistakes_are_named(tmp_path: Path, text: str, complaint: str) -> None:
    """Each mistake stands at its place, with what was probably meant."""
    path = tmp_path / "config.yaml"
    path.write_text(text)
    with pytest.raises(ConfigurationError) as caught:
        read_config(path, {})
    assert complaint in str(caught.value)


def test_a_limit_of_money_can_come_from_the_environment(tmp_path: Path) -> None:
    """Like every other setting."""
    config = read_config(tmp_path / "absent.yaml", {"ARTOO_LIMITS__MONEY": "0.25", "ARTOO_LOG__KEEP_DAYS": "3"})
    assert (config.limits.money, config.log.keep_days) == (0.25, 3)
