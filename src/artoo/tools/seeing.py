"""How a tool looks at the files of its view: anew for every call, for what is there changes from call to call."""

from __future__ import annotations

from collections.abc import Callable

from artoo.ports.workspace import Files

Look = Callable[[], Files]
"""The files as they are at this moment. Quick."""
