"""The environment that a command sees: the user's, without keys, sockets to services, or places for history."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path

_KEY_LIKE_NAME = re.compile(
    r"(^|_)(API_?KEY|ACCESS_?KEY|PRIVATE_?KEY|SIGNING_?KEY|KEY|TOKEN|SECRETS?|PASS|PASSWD|PASSWORD|PASSPHRASE|PAT|PIN"
    r"|CREDENTIALS?|AUTH|COOKIES?|BEARER|DSN|WEBHOOK|LICENSE_KEY)(_|$|\d)|(KEY|TOKEN|SECRET|PASSWORD|CREDENTIALS)$",
    re.IGNORECASE,
)
_KEY_LIKE_VALUE = re.compile(
    r"^(sk-|sk_|rk_|pk_live|gh[pousr]_|github_pat_|glpat-|xox[abprs]-|AKIA|ASIA|AIza|hf_|npm_|pypi-|eyJ[\w-]+\.eyJ)"
    r"|-----BEGIN [A-Z ]*PRIVATE KEY|://[^/\s:@]+:[^/\s@]+@"
)
_REMOVED = frozenset(
    [
        "DBUS_SESSION_BUS_ADDRESS",
        "DBUS_SYSTEM_BUS_ADDRESS",
        "SSH_AUTH_SOCK",
        "SSH_AGENT_PID",
        "GPG_AGENT_INFO",
        "GNOME_KEYRING_CONTROL",
        "DISPLAY",
        "WAYLAND_DISPLAY",
        "WAYLAND_SOCKET",
        "XAUTHORITY",
        "XDG_RUNTIME_DIR",
        "DOCKER_HOST",
        "CONTAINER_HOST",
        "NOTIFY_SOCKET",
        "LD_PRELOAD",
        "LD_AUDIT",
        "BASH_ENV",
        "ENV",
        "PROMPT_COMMAND",
        "SHELLOPTS",
        "BASHOPTS",
        "TMUX",
        "STY",
        "INVOCATION_ID",
        "HTTP_PROXY",
        "HTTPS_PROXY",
        "ALL_PROXY",
        "http_proxy",
        "https_proxy",
        "all_proxy",
    ]
)
_REMOVED_PREFIXES = ("ARTOO_", "BRAIN_", "TOOL_", "BASH_FUNC_", "DYLD_", "LISTEN_")

QUIET: Mapping[str, str] = {
    "HISTFILE": "/dev/null",
    "LESSHISTFILE": "-",
    "PYTHON_HISTORY": "/dev/null",
    "NODE_REPL_HISTORY": "",
    "SQLITE_HISTORY": "/dev/null",
    "XDG_CACHE_HOME": "/tmp/.cache",
    "TMPDIR": "/tmp",
    "npm_config_logs_max": "0",
    "npm_config_update_notifier": "false",
    "GIT_OPTIONAL_LOCKS": "0",
    "GIT_TERMINAL_PROMPT": "0",
    "PAGER": "cat",
    "GIT_PAGER": "cat",
    "TERM": "dumb",
}
"""Settings under which ordinary programs leave no history and no cache behind, and ask nothing."""


def is_key_like(name: str, value: str) -> bool:
    """Whether a variable looks like a credential, by its name or by the shape of its value."""
    return bool(_KEY_LIKE_NAME.search(name) or _KEY_LIKE_VALUE.search(value))


def cleaned(
    outer: Mapping[str, str], *, home: Path, extra: Mapping[str, str], keep: frozenset[str] = frozenset()
) -> dict[str, str]:
    """The environment for a command: `outer` cleaned, quiet settings, then `extra` (cleaned as well)."""
    merged = {name: value for name, value in outer.items() if _passes(name, value, keep)}
    merged.update(QUIET)
    merged["HOME"] = str(home)
    merged.update({name: value for name, value in extra.items() if _passes(name, value, keep)})
    return merged


def _passes(name: str, value: str, keep: frozenset[str]) -> bool:
    if name in keep:
        return True
    return not (name in _REMOVED or name.startswith(_REMOVED_PREFIXES) or is_key_like(name, value))
