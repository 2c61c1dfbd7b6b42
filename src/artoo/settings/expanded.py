"""Expand paths as a person writes them, `~` and `~name` included."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, TypeVar

from pydantic import AfterValidator, Field

from artoo.contracts.errors import ConfigurationError

_P = TypeVar("_P", str, Path)


def expanded(path: str | Path) -> Path:
    """Return the path with its home written out. Raises ConfigurationError for the home of an unknown user."""
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
"""A path of the settings; that of an unknown person is a mistake where it stands."""

HomePathText = Annotated[str, Field(min_length=1), AfterValidator(_somebodys)]
"""The same, kept as it is written."""
