"""Look up context windows and prices of vendors' models in `genai-prices`.

Reference: SPEC section 9.

Loading the data takes half a second, so it is loaded only for a vendor's model without a known window or price.
Private servers are never looked up. These are servers on this machine, with a bare IP address, or in a local
network.
"""

from __future__ import annotations

from datetime import UTC, datetime
from decimal import Decimal
from functools import lru_cache
from ipaddress import ip_address
from typing import NamedTuple
from urllib.parse import urlsplit

from artoo.llm.prices import Price

CURRENCY = "USD"


class Listed(NamedTuple):
    """The entry of a model in the catalogue. It has the tokens of the model's window, and the prices of a million
    tokens in `CURRENCY`.

    If long prompts have a higher price, the entry has the price of shorter ones.
    """

    window: int | None = None
    price: Price | None = None


@lru_cache(maxsize=256)
def listed(base_url: str, model: str) -> Listed:
    """Return the entry of a vendor's model. Return an empty entry if the model is not listed. The first call blocks
    while the data are loaded."""
    if not _is_vendors(base_url):
        return Listed()
    # Imported here, because it loads an HTTP client and a large table.
    from genai_prices.data_snapshot import get_snapshot

    try:
        _, found = get_snapshot().find_provider_model(model, None, None, base_url)
    except LookupError:
        return Listed()
    prices = found.get_prices(datetime.now(UTC))
    prompt, completion = _number(prices.input_mtok), _number(prices.output_mtok)
    if prompt is None or completion is None:
        return Listed(found.context_window)
    price = Price(prompt=prompt, cached=_number(prices.cache_read_mtok), completion=completion)
    return Listed(found.context_window, price)


def _number(price: object) -> float | None:
    base = getattr(price, "base", price)
    return float(base) if isinstance(base, Decimal | int | float) else None


def _is_vendors(base_url: str) -> bool:
    host = urlsplit(base_url).hostname or ""
    try:
        ip_address(host)
    except ValueError:
        return "." in host
    return False
