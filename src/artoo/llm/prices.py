"""The fields of a model's price (`prices.models` of the configuration), and the cost of a call.

Reference: SPEC section 9.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from pydantic import Field

from artoo.contracts.errors import ConfigurationError
from artoo.contracts.events import Usage
from artoo.settings.sections import Number, Section

# The number of tokens to which a price refers, as in the price lists of vendors.
PER = 1_000_000


class Price(Section):
    """Price of a million tokens: of the prompt, of its cached part (None: the same), and of the completion."""

    prompt: Number = Field(ge=0)
    cached: Number | None = Field(default=None, ge=0)
    completion: Number = Field(ge=0)

    @property
    def _of_cached(self) -> float:
        return self.prompt if self.cached is None else self.cached

    def of(self, usage: Usage) -> float:
        """Compute the cost of a call with this usage. The tokens of the prompt include the cached ones."""
        cached = min(usage.cached_tokens, usage.prompt_tokens)
        fresh = usage.prompt_tokens - cached
        return (fresh * self.prompt + cached * self._of_cached + usage.completion_tokens * self.completion) / PER

    def at_most(self, prompt_tokens: int, completion_tokens: int) -> float:
        """Compute the maximum cost of a call with at most these tokens, whichever part of the prompt is cached."""
        dearest = max(self.prompt, self._of_cached)
        return (prompt_tokens * dearest + completion_tokens * self.completion) / PER


FREE = Price.model_construct(prompt=0.0, completion=0.0)


@dataclass(frozen=True, slots=True)
class PriceList:
    """The prices of models, by the name in requests. `currency` is only a label, because amounts are never
    converted."""

    currency: str
    models: Mapping[str, Price] = field(default_factory=dict[str, Price])

    def price(self, model: str) -> Price | None:
        """Return the price of a model. Return None if it is not known."""
        return self.models.get(model)

    def demand_all(self, models: tuple[str, ...]) -> None:
        """Raise ConfigurationError unless each of `models` has a price. The error lists the models without a
        price."""
        unknown = [name for name in dict.fromkeys(models) if name not in self.models]
        if unknown:
            raise ConfigurationError(
                f"a budget of money needs the price of every model, and {', '.join(unknown)} has none; "
                f"write it below prices.models in the configuration, as in `{unknown[0]}: "
                "{prompt: 0.5, cached: 0.1, completion: 1.5}` (per million tokens; 0 for a model of your own)"
            )
