"""Create and read the name of this home among machines that share a store (`<host>-<key>`)."""

from __future__ import annotations

import re
import secrets
import socket
from pathlib import Path

from artoo.contracts.errors import ConfigurationError
from artoo.disk.whole import made_once

FILE = "machine"

_KEY = re.compile(r"[0-9a-f]{8}")


def machine_name(home: Path) -> str:
    """Return `<host>-<key>`. The key belongs to the home and is created at the first call. Blocks.

    If a home is copied to another host, it counts as another machine, because the host is part of the name. Raises
    ConfigurationError if the key cannot be read.
    """
    path = home / FILE
    try:
        key = made_once(path, _new_key).decode("ascii").strip()
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigurationError(
            f"{path} cannot be read: {error}; it holds this machine's name in the store"
        ) from error
    if not _KEY.fullmatch(key):
        raise ConfigurationError(f"{path} holds no key of a machine; remove it, and a new one is made")
    host = re.sub(r"[^A-Za-z0-9.-]", "-", socket.gethostname())[:48] or "host"
    return f"{host}-{key}"


def _new_key() -> bytes:
    return secrets.token_hex(4).encode()
