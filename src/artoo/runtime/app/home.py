"""artoo's own directory. A module of its own, because every command needs it at once."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from artoo.contracts.errors import ConfigurationError

HOME_VARIABLE = "ARTOO_HOME"
CONFIG_NAME = "config.yaml"


def default_home(environ: Mapping[str, str]) -> Path:
    """Return artoo's own directory: `ARTOO_HOME`, else `~/.artoo`. Absolute; not created. Raises
    ConfigurationError.
    """
    named = environ.get(HOME_VARIABLE, "").strip()
    try:
        return Path(named).expanduser().absolute() if named else Path("~/.artoo").expanduser()
    except RuntimeError as error:
        raise ConfigurationError(f"{HOME_VARIABLE} is {named!r}, a home that nobody here has") from error
