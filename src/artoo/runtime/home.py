"""Where artoo keeps its own files. Apart from everything else, because every command needs it at once."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

HOME_VARIABLE = "ARTOO_HOME"
CONFIG_NAME = "config.yaml"


def default_home(environ: Mapping[str, str]) -> Path:
    """artoo's own directory: `ARTOO_HOME`, else `~/.artoo`. Absolute; not created."""
    named = environ.get(HOME_VARIABLE, "").strip()
    return Path(named).expanduser().absolute() if named else Path("~/.artoo").expanduser()
