"""Confine commands with macOS's `sandbox-exec`."""

from __future__ import annotations

from pathlib import Path

from artoo.contracts.errors import SandboxError
from artoo.sandbox.reading.programs import find_program

_DEVICES = ("/dev/null", "/dev/zero", "/dev/full", "/dev/tty")


def prefix(hidden: tuple[Path, ...], writable: tuple[Path, ...], apart: tuple[str, ...]) -> list[str]:
    """Return the words before a program that runs it confined. Raises SandboxError if `sandbox-exec` is missing."""
    program = find_program("sandbox-exec", apart)
    if program is None:
        raise SandboxError("cannot start the sandbox: sandbox-exec is not on your PATH; run: artoo doctor")
    return [program, "-p", profile(writable, hidden)]


def profile(writable: tuple[Path, ...], hidden: tuple[Path, ...]) -> str:
    """Return a profile in Apple's sandbox language: files read-only, no network, no services.

    Signals reach other processes of the same sandbox, so that a shell can end what it started.
    """
    lines = [
        "(version 1)",
        "(allow default)",
        "(deny network*)",
        "(deny file-write*)",
        "(deny appleevent-send)",
        "(deny mach-lookup)",
        '(allow mach-lookup (global-name "com.apple.system.opendirectoryd.libinfo"))',
        '(allow mach-lookup (global-name "com.apple.system.logger"))',
        "(deny signal)",
        "(allow signal (target self) (target children) (target same-sandbox))",
        "(deny process-info* (target others))",
        *(f"(allow file-write* (subpath {_quoted(path)}))" for path in writable),
        *(f'(allow file-write-data (literal "{device}"))' for device in _DEVICES),
        *(f"(deny file-read* (subpath {_quoted(path)}))" for path in hidden if not _holds(path, writable)),
        *(rule for path in hidden if _holds(path, writable) for rule in _closed_around(path, writable)),
    ]
    return "\n".join(lines) + "\n"


def _closed_around(hidden: Path, writable: tuple[Path, ...]) -> list[str]:
    """Close a directory, but for what commands may write in it. In a profile the last rule that fits decides."""
    inner = [path for path in writable if path.is_relative_to(hidden)]
    ways = {above for path in inner for above in path.parents if above.is_relative_to(hidden)}
    return [
        f"(deny file-read* (subpath {_quoted(hidden)}))",
        *(f"(allow file-read-metadata (literal {_quoted(way)}))" for way in sorted(ways)),
        *(f"(allow file-read* (subpath {_quoted(path)}))" for path in inner),
    ]


def _holds(path: Path, inner: tuple[Path, ...]) -> bool:
    return any(one.is_relative_to(path) for one in inner)


def _quoted(path: Path) -> str:
    text = str(path)
    if any(ord(character) < 32 for character in text):
        raise SandboxError(f"{path!r} contains control characters, which a seatbelt profile cannot name: rename it")
    return '"' + text.replace("\\", "\\\\").replace('"', '\\"') + '"'
