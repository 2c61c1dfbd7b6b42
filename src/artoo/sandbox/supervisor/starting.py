"""Pack and start the supervisor's Python modules from a file in memory, with its list of modules.

They are passed in a file, because the directory of the modules may not be visible in the sandbox.
"""

from __future__ import annotations

import marshal
import os
import tempfile
from functools import lru_cache
from importlib.machinery import SourceFileLoader
from pathlib import Path
from typing import BinaryIO

from artoo.sandbox.reading.programs import this_python

SUPERVISOR = ("restricting", "processes", "supervisor")
CONFINING_SUPERVISOR = ("restricting", "confinement", *SUPERVISOR[1:])
REFRESH = ("refresh",)
"""The modules of which each program consists. A module comes after the modules that it imports. The last module has
the function `main`."""

_RUN = """
import marshal, sys
for name, code in marshal.load(open({}, "rb")):
    module = sys.modules[name] = type(sys)(name)
    exec(code, module.__dict__)
module.main()
"""
_TO_START = ("LD_LIBRARY_PATH",)
"""The variables that Python may need to start."""


def starting_environment() -> dict[str, str]:
    """Return the environment variables for artoo's own programs."""
    return {name: os.environ[name] for name in _TO_START if name in os.environ}


def program_file(modules: tuple[str, ...]) -> BinaryIO:
    """Return a file with a program that consists of these modules, for `python_running`."""
    return file_of(_compiled(modules))


def python_running(program: int, *arguments: str) -> tuple[str, ...]:
    """Return the arguments that make Python run a program from the descriptor of its file."""
    return (this_python(), "-I", "-S", "-c", _RUN.format(program), *arguments)


def file_of(data: bytes) -> BinaryIO:
    """Return an unnamed file with this content, positioned at its start. It is in memory if the system allows
    that."""
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
def _compiled(modules: tuple[str, ...]) -> bytes:
    """Return modules as byte code. It is taken from Python's cache if possible, because compiling takes 10 ms."""
    names = {f"{__package__}.{name}": Path(__file__).with_name(f"{name}.py") for name in modules}
    return marshal.dumps([(name, SourceFileLoader(name, str(file)).get_code(name)) for name, file in names.items()])
