"""Deletes a directory tree of artoo's own, however deep it is and whatever modes a command left in it."""

from __future__ import annotations

import errno
import os
import shutil
import subprocess
from pathlib import Path

from artoo.sandbox.reading.programs import find_program


def remove_tree(path: Path) -> None:
    """Delete what is at `path` without following links. Nothing there is no error.

    Raises OSError; the call can be repeated then, and after a crash.
    """
    if path.is_symlink() or not path.is_dir():
        path.unlink(missing_ok=True)
        return
    try:
        # Python's own way first: it starts no process, and trees of tests and tasks are mostly plain.
        shutil.rmtree(path)
    except (OSError, RecursionError):  # closed to its owner, or deeper than Python recurses and a path may be long
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
