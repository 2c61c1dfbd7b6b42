"""Decide which values are secret because of their place: in the environment, under a name that says so."""

from __future__ import annotations

from collections.abc import Collection, Mapping

from artoo.redaction.redactor import holds_secret

_ENDINGS = ("_KEY", "_TOKEN", "_SECRET", "PASSWORD", "_PWD", "_PASS", "PASSWD", "_AUTH")
_DIRECTORIES = frozenset({"PWD", "OLDPWD"})
"""Where a shell is and was (POSIX): their names look like a password's, and the value is in every path."""


def secret_values(environ: Mapping[str, str], named: Collection[str] = ()) -> list[str]:
    """Return the values of variables with names of secrets, that look like one, or are `named`."""
    return [
        value
        for name, value in environ.items()
        if value and (name in named or (name not in _DIRECTORIES and _says_secret(name, value)))
    ]


def _says_secret(name: str, value: str) -> bool:
    return name.endswith(_ENDINGS) or holds_secret(f"{name}={value}")
