"""Normalise a server's base URL from the settings, and explain a malformed address."""

from __future__ import annotations

from urllib.parse import SplitResult, urlsplit

from artoo.contracts.errors import ConfigurationError


def normalise_base_url(base_url: str) -> str:
    """Return the URL without a final slash and without the path of a wire. Raises ConfigurationError."""
    url = base_url.strip().rstrip("/")
    for path in ("/chat/completions", "/responses", "/messages"):
        url = url.removesuffix(path)
    parts = _parts(url)
    if parts is None or parts.scheme not in ("http", "https") or not parts.hostname:
        raise ConfigurationError(
            f"the base URL {_without_credentials(url)!r} is no http(s) address; {_as_it_should_be(url)}"
        )
    if parts.username or parts.password:
        raise ConfigurationError(
            f"the base URL of {parts.hostname} contains a user or password; put the key into *_API_KEY instead"
        )
    if parts.hostname == "api.anthropic.com" and not parts.path:
        return f"{url}/v1"  # its users write this address without the version
    return url


def _parts(url: str) -> SplitResult | None:
    """Return the parts of an address. Return None if a bracket is not closed, the port is invalid, or the name is
    no valid host name.
    """
    try:
        parts = urlsplit(url)
        _ = parts.port  # the port is only validated when it is read
        # the resolver has the same limits: a label is not empty and has at most 63 characters
        (parts.hostname or "").encode("idna")
    except ValueError:
        return None
    return parts if url.isprintable() else None


def _as_it_should_be(url: str) -> str:
    if "://" in url or not url:
        return "write it like https://api.openai.com/v1 or http://127.0.0.1:8080/v1"
    return f"begin it with http:// or https://, as in http://{_without_credentials(url)}"


def _without_credentials(url: str) -> str:
    return url.rpartition("@")[2]
