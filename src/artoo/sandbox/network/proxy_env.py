"""The environment variables that lead programs to the egress proxy, or say plainly that there is no network.

Ordinary programs (pip, uv, npm, git over http, curl, wget, Python's and Go's clients) find a proxy in the
environment. A command without a network finds one too, whose name cannot exist and says what to do: a program that
tries to reach something then names it in its own error message, where "temporary failure in name resolution" would
send a model looking for a mistake elsewhere. That needs no process and no socket.
"""

from __future__ import annotations

from artoo.sandbox.network.allowlist import Permits, plain_host

NO_NETWORK = "commands-have-no-network.call-again-with-hosts.invalid"
"""The name of a proxy that does not exist (RFC 6761: `invalid` is never resolved)."""

_NAMES = ("http_proxy", "https_proxy", "all_proxy")
_LOCAL = ("localhost", "127.0.0.1", "::1")
"""Reached without the proxy: a server that the task itself started, in the sandbox's own network."""


def no_network_environment() -> dict[str, str]:
    """Return the variables for a command that may reach nothing outside the sandbox."""
    return {**_proxies(f"http://{NO_NETWORK}:9", _LOCAL), "PIP_RETRIES": "1", "npm_config_fetch_retries": "0"}


def proxy_environment(permits: Permits, port: int) -> dict[str, str]:
    """Return the variables for a command whose proxy listens on `port`.

    A local name that a permission covers leads to the proxy, because it means the user's machine.
    """
    proxy = f"http://127.0.0.1:{port}"
    own = tuple(name for name in _LOCAL if not any(one.covers_host(plain_host(name)) for one in permits.listed))
    return {**_proxies(proxy, own), "PIP_PROXY": proxy, "NODE_USE_ENV_PROXY": "1"}


def _proxies(proxy: str, not_for: tuple[str, ...]) -> dict[str, str]:
    variables = dict.fromkeys(_NAMES, proxy) | {"no_proxy": ",".join(not_for)}
    return variables | {name.upper(): value for name, value in variables.items()}
