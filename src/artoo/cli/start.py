"""The first module of the command line, which cleans `sys.path` and tunes the garbage collector.

Python first searches for modules in the directory of the script (`bin` of an environment). With `-m`, or with an
empty entry in PYTHONPATH, it first searches the current directory. Neither directory contains modules of artoo, and
a task may have written files there. So sys.path is corrected before any other import, because even `from
__future__` would read a file.
"""

import atexit
import gc
import sys

_NEW_OBJECTS = 200_000
"""Number of new objects after which the garbage collector runs. Imports create more than a hundred thousand objects
that are never freed. With Python's default of 700, the collector would run two hundred times and free nothing."""


def main() -> int:
    """Run the command line (`cli.main`) and return its exit code."""
    _leave_out_what_is_not_installed()
    collect_seldom()
    # If the objects were not frozen, the collector would examine all of them once more at exit.
    atexit.register(gc.freeze)
    try:
        from artoo.cli import main as command_line

        return command_line.main()
    except KeyboardInterrupt:
        # while modules are being imported, this is the only handler
        return 130


def collect_seldom() -> None:
    """Make the garbage collector of this process run less often."""
    gc.set_threshold(_NEW_OBJECTS)


def _leave_out_what_is_not_installed() -> None:
    # If artoo runs from a source tree, this tree is the first entry and must be kept.
    here = __file__.removesuffix("/artoo/cli/start.py")
    if not sys.flags.safe_path and sys.path[:1] != [here]:
        del sys.path[:1]
    import os  # Python itself has already loaded it

    try:
        current = os.getcwd()  # noqa: PTH109 (pathlib is not loaded yet)
    except OSError:
        # the directory was removed
        return
    sys.path[:] = [one for one in sys.path if one == here or one not in ("", current)]
