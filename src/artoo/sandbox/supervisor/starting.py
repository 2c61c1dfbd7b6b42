"""What the sandbox's own programs are started with: files in memory, scripts without a path, few variables.

The sandbox may not show the directory in which the scripts lie.
"""

from __future__ import annotations

import importlib.util
import marshal
import os
import tempfile
from functools import lru_cache
from importlib.machinery import SourceFileLoader
from pathlib import Path
from typing import BinaryIO

_FOLDER = Path(__file__).parent
_TO_START = ("LD_LIBRARY_PATH",)
"""What a Python may need to start."""


def starting_environment() -> dict[str, str]:
    """Return the variables for programs of artoo's own."""
    return {name: os.environ[name] for name in _TO_START if name in os.environ}


def script_file(name: str) -> BinaryIO:
    """Return a file from which Python can run a script of this folder, as `/proc/self/fd/N`."""
    return file_of(_compiled(name))


def file_of(data: bytes) -> BinaryIO:
    """Return an unnamed file with this content, at its start; in memory where the system can do that."""
    if hasattr(os, "memfd_create"):
        file = os.fdopen(os.memfd_create("artoo"), "w+b", buffering=0)
    else:
        file = tempfile.TemporaryFile(buffering=0)  # noqa: SIM115 - the caller closes it
    left = memoryview(data)
    while left:
        left = left[file.write(left) :]
    file.seek(0)
    return file


@lru_cache(maxsize=4)
def _compiled(name: str) -> bytes:
    """Return a script as byte code, from Python's cache if it is there: to compile it takes 10 ms."""
    code = SourceFileLoader(name, str(_FOLDER / f"{name}.py")).get_code(name)
    return importlib.util.MAGIC_NUMBER + bytes(12) + marshal.dumps(code)
