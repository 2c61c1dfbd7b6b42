"""Find the proxy (`HTTPS_PROXY`, `NO_PROXY`) for a URL, for model requests and web search."""

from __future__ import annotations

import urllib.request
from ipaddress import ip_address
from urllib.parse import urlsplit

from yarl import URL

from artoo.contracts.errors import ConfigurationError


def is_loopback(url: str) -> bool:
    """Return whether the host of the URL is this machine, according to its name (localhost) or its IP address."""
    host = urlsplit(url).hostname or ""
    if host == "localhost" or host.endswith(".localhost"):
        return True
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return False


def proxy_for(url: str) -> str | None:
    """Return the proxy for this URL according to the environment. Return None for a loopback address. (The option
    `trust_env` of the HTTP client is not used, because it would also read netrc.)

    A proxy without a scheme (`HOST:PORT`) is taken for an HTTP proxy, as curl does. Raises ConfigurationError if
    the proxy cannot be used, because a request must never bypass it."""
    parts = urlsplit(url)
    if is_loopback(url) or urllib.request.proxy_bypass(parts.netloc):
        return None
    proxies = urllib.request.getproxies()
    proxy = proxies.get(parts.scheme) or proxies.get("all")
    if not proxy:
        return None
    address = _address_of(proxy if "://" in proxy else f"http://{proxy}")
    if address is None:
        raise ConfigurationError(
            f"the environment names the proxy {proxy.rpartition('@')[2]!r} for {url}, which artoo cannot use: "
            "it speaks to http:// and https:// proxies; set HTTPS_PROXY or HTTP_PROXY to one, "
            "or name the host in NO_PROXY"
        )
    return str(address)


def _address_of(proxy: str) -> URL | None:
    """Return the address of an HTTP proxy. Return None if the text is anything else."""
    try:
        address = URL(proxy)
    except ValueError:
        return None
    return address if address.scheme in ("http", "https") and address.host else None
