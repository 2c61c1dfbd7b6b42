"""Compute the cost of calls from configured prices per million tokens.

Reference: SPEC section 9.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from artoo.contracts.errors import ConfigurationError
from artoo.contracts.events import Usage

# The number of tokens that a price refers to, as in vendors' price lists.
PER = 1_000_000


@dataclass(frozen=True, slots=True)
class Price:
    """Price of a million tokens: of the prompt, of its cached part, and of the completion. Each is ≥ 0."""

    prompt: float
    cached: float
    completion: float

    def of(self, usage: Usage) -> float:
        """Compute the cost of a call with this usage. The prompt tokens include the cached ones."""
        cached = min(usage.cached_tokens, usage.prompt_tokens)
        fresh = usage.prompt_tokens - cached
        return (fresh * self.prompt + cached * self.cached + usage.completion_tokens * self.completion) / PER

    def at_most(self, prompt_tokens: int, completion_tokens: int) -> float:
        """Compute the most that a call with at most these tokens can cost, whatever part of it is cached."""
        dearest = max(self.prompt, self.cached)
        return (prompt_tokens * dearest + completion_tokens * self.completion) / PER


FREE = Price(0.0, 0.0, 0.0)


@dataclass(frozen=True, slots=True)
class PriceList:
    """Prices by the requested name of a model. `currency` is only a label; amounts are not converted."""

    currency: str
    models: Mapping[str, Price] = field(default_factory=dict[str, Price])

    def price(self, model: str) -> Price | None:
        """Return the price of a model; None if it is unknown."""
        return self.models.get(model)

    def demand_all(self, models: tuple[str, ...]) -> None:
        """Require a price for each of `models`. Raises a ConfigurationError that lists the models without one."""
        unknown = [name for name in dict.fromkeys(models) if name not in self.models]
        if unknown:
            raise ConfigurationError(
                f"a budget of money needs the price of every model, and {', '.join(unknown)} has none; "
                f"write it below prices.models in the configuration, as in `{unknown[0]}: "
                "{prompt: 0.5, cached: 0.1, completion: 1.5}` (per million tokens; 0 for a model of your own)"
            )
