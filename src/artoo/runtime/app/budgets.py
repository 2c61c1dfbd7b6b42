"""Build a task's budget from configuration and options, and its price list from settings and catalogue."""

from __future__ import annotations

from collections.abc import Mapping

from artoo.contracts.solution import Cost
from artoo.llm.budget import Budget
from artoo.llm.catalogue import CURRENCY, listed
from artoo.llm.prices import FREE, PriceList
from artoo.loops.medium.allowance import Allowance
from artoo.runtime.app.run_options import RunOptions
from artoo.runtime.config.endpoints import TIERS, endpoint
from artoo.runtime.config.model import Config

EMBEDDED = "embedded"
"""The name under which price lists contain the model on this machine. Its calls cost nothing."""


def open_budget(
    config: Config,
    options: RunOptions,
    environ: Mapping[str, str],
    *,
    given_model: bool = False,
    spent: Cost | None = None,
) -> Budget:
    """Return the budget that a task has until its plan is made. `spent` is the cost of its earlier runs.

    Raises ConfigurationError if money is limited and a configured model has no price.
    """
    # The models of a `given_model` are known only when it asks them. A call of a model without a price then raises
    # the same error.
    first = allowance(config, options).first
    money = options.budgets.over(config.limits).money
    prices = price_list(config, None if given_model else environ)
    if money is not None:
        prices = prices or PriceList(config.prices.currency, {EMBEDDED: FREE})
        if not given_model:
            prices.demand_all(model_names(config, environ))
    return Budget(
        max_calls=first.calls,
        max_tokens=first.tokens,
        max_money=money,
        prices=prices,
        spent=spent,
    )


def allowance(config: Config, options: RunOptions) -> Allowance:
    """Return the budgets of a task that the user fixed. Options override the configuration. The effort determines
    the budgets that neither fixes."""
    wanted = options.budgets.over(config.limits)
    milliseconds = config.control.time_budget_ms
    seconds = wanted.seconds if wanted.seconds is not None or milliseconds is None else milliseconds / 1_000
    return Allowance(options.effort, seconds, wanted.calls, wanted.tokens)


def price_list(config: Config, environ: Mapping[str, str] | None = None) -> PriceList | None:
    """Return the configured prices. For models of `environ` without a configured price, add the catalogue's prices.

    Returns None if there are no prices, and then no cost is shown. The first call reads the catalogue from disk and
    blocks.
    """
    priced = dict(config.prices.models)
    if config.prices.currency == CURRENCY and environ is not None:
        chosen = (endpoint(config, tier, environ) for tier in TIERS)
        for each in chosen:
            if each is not None and each.model not in priced:
                found = listed(each.base_url, each.model).price
                priced |= {each.model: found} if found is not None else {}
    return PriceList(config.prices.currency, {EMBEDDED: FREE, **priced}) if priced else None


def model_names(config: Config, environ: Mapping[str, str]) -> tuple[str, ...]:
    """Return the names of the models that the two tiers use. Raises ConfigurationError for incomplete endpoints."""
    chosen = (endpoint(config, tier, environ) for tier in TIERS)
    return tuple(dict.fromkeys(EMBEDDED if each is None else each.model for each in chosen))
