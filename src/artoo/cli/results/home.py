"""The home directory (`ARTOO_HOME`) and the shared store of this process, for all commands."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pathlib import Path

    from artoo.store.address import StoreAddress


def current_home() -> Path:
    """Return artoo's own directory, which is `ARTOO_HOME` if that is set, or else `~/.artoo`."""
    from artoo.runtime.app.home import default_home

    return default_home(os.environ)


def current_store() -> StoreAddress | None:
    """Return the address of the shared store. Return None if none is configured. Raises ConfigurationError."""
    from artoo.runtime.config.loader import load_config
    from artoo.store.address import parse

    store = load_config().store
    return None if store is None else parse(store)
