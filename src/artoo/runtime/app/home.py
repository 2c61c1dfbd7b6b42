"""Find artoo's home directory (`ARTOO_HOME`, or else `~/.artoo`), and the path of its configuration file.

This is a module of its own, because every command imports it at startup.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from artoo.contracts.errors import ConfigurationError

HOME_VARIABLE = "ARTOO_HOME"


def config_file(home: Path) -> Path:
    """Return the path of the configuration file of artoo's home."""
    return home / "config.yaml"


def default_home(environ: Mapping[str, str]) -> Path:
    """Return artoo's own directory: `ARTOO_HOME`, or else `~/.artoo`. The path is absolute. The directory need not
    exist. Raises ConfigurationError.
    """
    named = environ.get(HOME_VARIABLE, "").strip()
    try:
        return Path(named).expanduser().absolute() if named else Path("~/.artoo").expanduser()
    except RuntimeError as error:
        raise ConfigurationError(f"{HOME_VARIABLE} is {named!r}, but there is no such user") from error
