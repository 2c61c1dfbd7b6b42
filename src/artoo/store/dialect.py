"""Turns SQL that SQLite and PostgreSQL have in common into what the PostgreSQL driver takes."""

from __future__ import annotations

import re
from functools import lru_cache

_TOKENS = re.compile(r"'(?:[^']|'')*'|\?|:([a-z][a-z0-9_]*)|%")


@lru_cache(maxsize=1_024)
def for_psycopg(sql: str) -> bytes:
    """Return SQL as psycopg takes it: `?` becomes `%s` and `:name` becomes `%(name)s`; what stands between quotes
    stays, except that a percent sign is doubled.
    """
    return _TOKENS.sub(_token, sql).encode()


def _token(match: re.Match[str]) -> str:
    text = match[0]
    if text == "?":
        return "%s"
    if match[1]:
        return f"%({match[1]})s"
    return text.replace("%", "%%")
