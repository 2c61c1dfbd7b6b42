"""Which machine a home is, for the others that share its store."""

from __future__ import annotations

import os
import socket
import uuid
from dataclasses import dataclass
from pathlib import Path

from artoo.contracts.errors import ConfigurationError

FILE = "machine"


@dataclass(frozen=True, slots=True)
class Machine:
    """`id` never changes; `name` is for people, and may be that of another one."""

    id: str
    name: str


def this_machine(home: Path) -> Machine:
    """The machine of this home; its id is made when it is first asked for. Raises ConfigurationError, OSError.

    A home that is copied is the same machine twice, and the store refuses what they say differently.
    """
    file = home / FILE
    home.mkdir(mode=0o700, parents=True, exist_ok=True)
    unfinished = home / f".{FILE}-{uuid.uuid4().hex}"
    if not file.exists():
        unfinished.write_text(f"{uuid.uuid4().hex}\n")
        try:
            os.link(unfinished, file)  # whole, and the first one stays
        except FileExistsError:
            pass
        finally:
            unfinished.unlink()
    found = file.read_text().strip()
    if len(found) != 32 or not found.isalnum():
        raise ConfigurationError(f"{file} holds no machine's id; restore it, or remove it to be a new machine.")
    return Machine(found, socket.gethostname())
