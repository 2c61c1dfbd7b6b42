"""How a tool looks at the files of its workspace: anew for every call, for they change from call to call."""

from __future__ import annotations

from collections.abc import Callable

from artoo.ports.workspace import Files
from artoo.workspace.files.rooted import real_files

__all__ = ["Look", "real_files"]

Look = Callable[[], Files]
"""Returns the files as they are at this moment. Quick."""
