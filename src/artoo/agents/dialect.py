"""The books' SQL as psycopg takes it: other signs for parameters, nothing else."""

from __future__ import annotations

import re
from functools import lru_cache

_TOKENS = re.compile(r"'(?:[^']|'')*'|\?|:([a-z][a-z0-9_]*)|%")


@lru_cache(maxsize=1_024)
def for_psycopg(sql: str) -> bytes:
    """`?` becomes `%s`, `:name` becomes `%(name)s`; what stands between quotes stays, but for the percent sign."""
    return _TOKENS.sub(_token, sql).encode()


def _token(match: re.Match[str]) -> str:
    text = match[0]
    if text == "?":
        return "%s"
    if match[1]:
        return f"%({match[1]})s"
    return text.replace("%", "%%")
