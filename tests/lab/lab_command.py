"""Run `python -m lab` in this process."""

from __future__ import annotations

from lab.__main__ import lab


def run_lab(arguments: list[str]) -> int:
    """Return the exit code of `python -m lab ARGUMENTS`."""
    try:
        lab(arguments, prog_name="python -m lab")
    except SystemExit as ended:
        return int(ended.code or 0)
    return 0
