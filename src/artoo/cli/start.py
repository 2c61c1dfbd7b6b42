"""The first of artoo that a command line runs: it takes modules only from what is installed.

Python looks for a module first where its script lies (`bin` of an environment) or, with `-m`, where the person
stands, which an empty entry of PYTHONPATH means too. Neither holds modules of artoo, and a task may have written
there. Nothing is imported before that is put right: `from __future__` would read a file too.
"""

import atexit
import gc
import sys

_NEW_OBJECTS = 200_000
"""Before the collector looks for cycles. A command makes more than a hundred thousand objects by importing, and all
of them stay: at Python's own 700 it would look at them two hundred times, and find nothing."""


def main() -> int:
    """Runs the command line (`cli.main`)."""
    _leave_out_what_is_not_installed()
    collect_seldom()
    # Without this the collector goes through all objects once more at exit.
    atexit.register(gc.freeze)
    try:
        from artoo.cli import main as command_line

        return command_line.main()
    except KeyboardInterrupt:
        # No other handler exists while modules are loaded.
        return 130


def collect_seldom() -> None:
    """Sets how often this process looks for cycles of objects."""
    gc.set_threshold(_NEW_OBJECTS)


def _leave_out_what_is_not_installed() -> None:
    # Sources that are not installed run from their own directory.
    here = __file__.removesuffix("/artoo/cli/start.py")
    if not sys.flags.safe_path and sys.path[:1] != [here]:
        del sys.path[:1]
    import os  # loaded with Python itself

    try:
        current = os.getcwd()  # noqa: PTH109 (pathlib is not loaded yet)
    except OSError:
        # The directory was removed.
        return
    sys.path[:] = [one for one in sys.path if one == here or one not in ("", current)]
