"""Expand `~` and `~name` in paths that a user wrote."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, TypeVar

from pydantic import AfterValidator, Field

from artoo.contracts.errors import ConfigurationError

_P = TypeVar("_P", str, Path)


def expanded(path: str | Path) -> Path:
    """Return the path with `~` expanded. Raises ConfigurationError for the home directory of an unknown user."""
    try:
        return Path(path).expanduser()
    except RuntimeError as error:
        raise ConfigurationError(f"{str(path)!r} begins with a home that nobody here has; write it out") from error


def _somebodys(given: _P) -> _P:
    try:
        expanded(given)
    except ConfigurationError as error:
        raise ValueError(str(error)) from error
    return given


HomePath = Annotated[Path, AfterValidator(_somebodys)]
"""The type of a path in the settings. If the path names the home directory of an unknown user, this is reported as
a problem at its line."""

HomePathText = Annotated[str, Field(min_length=1), AfterValidator(_somebodys)]
"""A type like HomePath, but the text is stored without expanding it."""
