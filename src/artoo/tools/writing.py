"""How tools write files: one small interface over the task's workspace."""

from __future__ import annotations

from pathlib import Path
from typing import Protocol

from artoo.tools.tool import Outcome


class FileWriter(Protocol):
    """Whole files in the task's workspace."""

    async def write(
        self, path: Path, content: bytes, shows: str = "", remark: str = "", *, anew: bool = False
    ) -> Outcome:
        """`changes` names what was made or replaced; `shows` is the output when it was, or else a line of what was
        done that ends with `remark`. `anew`: the content was not made from what `read` gave.

        Raises ToolError when it cannot be written, or, `anew`, when somebody saved the file after it was shown, or
        only a part of it was shown.
        """
        ...

    async def read(self, path: Path) -> bytes | None:
        """The content of a file that is to be edited; None when nothing is there. Raises ToolError."""
        ...
