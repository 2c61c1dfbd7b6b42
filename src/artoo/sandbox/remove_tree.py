"""Delete a directory tree of any depth and any mode, without following links."""

from __future__ import annotations

import errno
import os
import shutil
import subprocess
from pathlib import Path

from artoo.sandbox.reading.programs import find_program


def remove_tree(path: Path) -> None:
    """Delete a file or directory tree without following links. A missing path is no error.

    Raises OSError. After an error or a crash, the call can be repeated.
    """
    if path.is_symlink() or not path.is_dir():
        path.unlink(missing_ok=True)
        return
    try:
        # Python's own function is tried first, because it starts no process and works for most trees.
        shutil.rmtree(path)
    # the owner has no permission, or the tree is too deep for Python's recursion or for a path
    except (OSError, RecursionError):
        _remove_stubborn(path)


def _remove_stubborn(path: Path) -> None:
    for program, *options in (("chmod", "-R", "u+rwx"), ("rm", "-rf")):
        subprocess.run(
            (find_program(program) or program, *options, "--", path),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            check=False,
        )
    if os.path.lexists(path):
        raise OSError(errno.EACCES, os.strerror(errno.EACCES), str(path))
