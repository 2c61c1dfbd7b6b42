"""What programs must be told so that they go through the edge, or say plainly that there is no network.

Ordinary programs (pip, uv, npm, git over http, curl, wget, Python's and Go's clients) find a proxy in the
environment. A command without a network finds one too, whose name cannot exist and says what to do: a program that
tries to reach something then names it in its own error message, where "temporary failure in name resolution" would
send a model looking for a mistake elsewhere. That costs nothing: no process, no socket.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from artoo.world.edge.hosts import Permits, plain_host
from artoo.world.edge.inside import PORT
from artoo.world.environment import passes

NO_NETWORK = "commands-have-no-network.call-again-with-hosts.invalid"
"""The name of a proxy that is none (RFC 6761: `invalid` is never resolved)."""

_EDGE = f"http://127.0.0.1:{PORT}"
_NAMES = ("http_proxy", "https_proxy", "all_proxy")
_LOCAL = ("localhost", "127.0.0.1", "::1")
_NPM_SETTINGS = ("registry", "cafile")
_MOST_SETTINGS = 64 * 1024


def network_environment(hosts: tuple[str, ...], home: Path) -> dict[str, str]:
    """Variables for a command that may reach `hosts`, or, without any, for one that reaches nothing."""
    if not hosts:
        return {**_proxies(f"http://{NO_NETWORK}:9", _LOCAL), "PIP_RETRIES": "1", "npm_config_fetch_retries": "0"}
    permits = Permits.given(hosts)
    own = tuple(name for name in _LOCAL if not any(one.covers_host(plain_host(name)) for one in permits.listed))
    return {
        **_proxies(_EDGE, own),
        "PIP_PROXY": _EDGE,
        "NODE_USE_ENV_PROXY": "1",
        **npm_settings(home),
    }


def _proxies(proxy: str, not_for: tuple[str, ...]) -> dict[str, str]:
    exempt = ",".join(not_for)
    said = dict.fromkeys(_NAMES, proxy) | {"no_proxy": exempt}
    return said | {name.upper(): value for name, value in said.items()}


def npm_settings(home: Path) -> Mapping[str, str]:
    """The person's own registry from `.npmrc`, which commands cannot see because it may hold tokens."""
    try:
        with (home / ".npmrc").open(encoding="utf-8", errors="replace") as file:
            lines = file.read(_MOST_SETTINGS).splitlines()
    except OSError:
        return {}
    pairs = (line.partition("=") for line in lines if "=" in line)
    found = {name.strip(): value.strip().strip("\"'") for name, _, value in pairs}
    return {
        f"npm_config_{name}": found[name]
        for name in _NPM_SETTINGS
        if name in found and passes(f"npm_config_{name}", found[name])
    }
