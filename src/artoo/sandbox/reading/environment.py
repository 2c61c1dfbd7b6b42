"""Select the environment variables of commands by `passed_variables.txt`, and set quiet defaults.

A list of the names of secrets is never complete (`MYSQL_PWD`, `SSHPASS`, a connection string under any name).
Therefore a variable is passed only if two conditions hold. Its name is in `passed_variables.txt`, because it says
where programs are or how they behave. Its value contains no credential.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Set
from functools import cache, lru_cache
from pathlib import Path

from artoo.ports.sandbox import Roots
from artoo.redaction import holds_secret

_WITH_CREDENTIALS = re.compile(r"://[^/\s]*@")
_ADDRESS_PATH = re.compile(r"://[^/\s\"',]*/([^\s\"',]*)")
_PLAIN_PART = re.compile(r"(?:[a-z]{1,16}\d{0,2}|\d{1,4})(?:[._-](?:[a-z]{1,16}\d{0,2}|\d{1,4})){0,4}")
"""Matches words with at most two digits at the end, and versions. They are joined by `.`, `_` or `-`. Tokens do not
have this form."""

QUIET: Mapping[str, str] = {
    "HISTFILE": "/dev/null",
    "LESSHISTFILE": "-",
    "PYTHON_HISTORY": "/dev/null",
    "NODE_REPL_HISTORY": "",
    "SQLITE_HISTORY": "/dev/null",
    "XDG_CACHE_HOME": "/tmp/.cache",
    "npm_config_cache": "/tmp/.cache/npm",
    "TMPDIR": "/tmp",
    "npm_config_logs_max": "0",
    "npm_config_update_notifier": "false",
    "GIT_DISCOVERY_ACROSS_FILESYSTEM": "1",
    "GIT_OPTIONAL_LOCKS": "0",
    "GIT_TERMINAL_PROMPT": "0",
    "PAGER": "cat",
    "GIT_PAGER": "cat",
    "TERM": "dumb",
    "LSAN_OPTIONS": "detect_leaks=0",
    "RUFF_CACHE_DIR": "/tmp/.cache/ruff",
    "MYPY_CACHE_DIR": "/tmp/.cache/mypy",
    "HYPOTHESIS_STORAGE_DIRECTORY": "/tmp/.cache/hypothesis",
    "NUMBA_CACHE_DIR": "/tmp/.cache/numba",
}
"""Settings with which programs write no history, keep caches out of the user's folders, and do not ask questions.
Python's byte code stays in place, because with PYTHONPYCACHEPREFIX no program finds existing byte code, and `import
pytest` takes 600 ms instead of 130. git by default does not search above a file system's top, and each overlay is a
separate file system. git does not search above the top of a file system by default, and each overlay is a file
system of its own."""


@cache
def _passed() -> re.Pattern[str]:
    lines = Path(__file__).with_name("passed_variables.txt").read_text("ascii").splitlines()
    return re.compile("|".join(name for line in lines if not line.startswith("#") for name in line.split()))


@lru_cache(maxsize=512)
def passes(name: str, value: str) -> bool:
    """True if commands may see a variable of the user's environment."""
    # Both the name and the value must be harmless, because the value may be an address with a password.
    if not _passed().fullmatch(name) or _WITH_CREDENTIALS.search(value):
        return False
    return not _may_hold_token(value) and not holds_secret(value)


def _may_hold_token(text: str) -> bool:
    """True if an address may contain a token in its path, as the addresses of package indexes do
    (`/t/TOKEN/main`)."""
    paths = (found.strip("/").split("/") for found in _ADDRESS_PATH.findall(text))
    return any(part and (part == "t" or not _PLAIN_PART.fullmatch(part)) for path in paths for part in path)


def cleaned(outer: Mapping[str, str], roots: Roots, approved: Set[str] = frozenset()) -> dict[str, str]:
    """Return the environment for commands. It consists of the allowed variables in `outer` and of the quiet
    settings.

    If a policy line opens a variable, or the user approved its name, it is passed with any value.
    """
    named = approved | roots.opened.variables
    merged = {name: value for name, value in outer.items() if name in named or passes(name, value)}
    return {**merged, **QUIET, "HOME": str(roots.home)}
