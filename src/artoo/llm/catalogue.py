"""Windows and prices of vendors' models, from the data that `genai-prices` ships (SPEC section 9).

Loading it takes half a second, so it is loaded when a vendor's model is used whose window or price is not known.
Servers of one's own are in no catalogue: those on this machine, with a bare address, or in a local network.
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
    """The catalogue's entry of a model: tokens of its window, and the price of a million tokens in `CURRENCY`.

    Where long prompts cost more, the price is that of shorter ones.
    """

    window: int | None = None
    price: Price | None = None


@lru_cache(maxsize=256)
def listed(base_url: str, model: str) -> Listed:
    """Return the entry of a vendor's model, or an empty entry. Blocks at its first call."""
    if not _is_vendors(base_url):
        return Listed()
    # Imported here: it brings an HTTP client and a large table with it.
    from genai_prices.data_snapshot import get_snapshot

    try:
        _, found = get_snapshot().find_provider_model(model, None, None, base_url)
    except LookupError:
        return Listed()
    prices = found.get_prices(datetime.now(UTC))
    prompt, completion = _number(prices.input_mtok), _number(prices.output_mtok)
    if prompt is None or completion is None:
        return Listed(found.context_window)
    cached = _number(prices.cache_read_mtok)
    return Listed(found.context_window, Price(prompt, prompt if cached is None else cached, completion))


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
