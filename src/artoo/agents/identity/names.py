"""What an agent may be called."""

from __future__ import annotations

import re

from artoo.contracts.agents import RESERVED_NAMES

DEFAULT_AGENT = "artoo"
"""The name of the agent of `runtime.memory.procedural.path` when its file names none."""

_NAME = re.compile(r"[a-z][a-z0-9_-]{0,31}")


def name_problem(name: str) -> str | None:
    """Why an agent cannot be called so; None when it can."""
    if name in RESERVED_NAMES:
        return f"an agent cannot be called {name!r}: artoo itself uses that name"
    if _NAME.fullmatch(name) is None:
        return (
            f"an agent cannot be called {name!r}: a name has 1 to 32 characters, begins with a lower-case letter,"
            " and has lower-case letters, digits, - and _ only"
        )
    return None
