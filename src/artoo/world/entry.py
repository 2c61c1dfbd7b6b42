"""The last step into bubblewrap's sandbox: Landlock, put on by a program of three hundred bytes.

A read-only mount does not keep anybody from writing to a named pipe in it, and bubblewrap cannot restrict files
by itself. Whoever has put Landlock on may not mount any more, so it must happen inside, after the last mount and
before the command. Python would do it in 15 ms, twice as long as all the rest; this machine code in 0.2 ms:

    ENTRY DIRECTORY... "" PROGRAM ARGUMENT...

It allows to open for writing, and to move and link between directories, below each DIRECTORY and nowhere else (a
DIRECTORY that does not exist allows nothing), closes every descriptor but the first three, and becomes PROGRAM (a
path, which is not looked up). When the kernel refuses, it says so and ends with 126. Where there is no machine code
for the processor, `launcher.py` does the same.
"""

from __future__ import annotations

import os
import platform
import struct
import sys
from collections.abc import Generator, Sequence
from contextlib import contextmanager
from pathlib import Path

_X86_64 = bytes.fromhex(
    # ruleset = landlock_create_ruleset(&handled, 8, 0); argument = &argv[1]; environment = &argv[argc + 1]
    "488d3dcc000000 be08000000 31d2 b8bc010000 0f05 85c0 0f8892000000 4189c4"
    "488b1c24 4c8d6cdc10 488d6c2410"
    # next: path = *argument++; missing: failed; empty: restrict
    "488b7500 4885f6 7478 4883c508 803e00 743b"
    # directory = openat(AT_FDCWD, path, O_PATH | O_DIRECTORY | O_CLOEXEC); none: next
    "bf9cffffff ba00002900 b801010000 0f05 85c0 78d9"
    # landlock_add_rule(ruleset, PATH_BENEATH, {handled, directory}, 0); next
    "894424f8 48c74424f002200000 4489e7 be01000000 488d5424f0 4531d2 b8bd010000 0f05 ebb3"
    # restrict: landlock_restrict_self(ruleset, 0) or failed; close_range(3, ~0, 0)
    "4489e7 31f6 b8be010000 0f05 85c0 7524 bf03000000 beffffffff 31d2 b8b4010000 0f05"
    # execve(*argument, argument, environment)
    "488b7d00 4889ee 4c89ea b83b000000 0f05"
    # failed: write(2, text, 39); exit(126)
    "bf02000000 488d3520000000 ba27000000 b801000000 0f05 bf7e000000 b83c000000 0f05"
    # handled: WRITE_FILE | REFER
    "0220000000000000"
)
_REFUSED = b"sandbox: Landlock is missing or refuses"
_LOADED_AT, _HEADERS = 0x400000, 64 + 56
_LAUNCHER = Path(__file__).with_name("launcher.py")


def native_entry() -> bytes | None:
    """The program as a file (ELF, static); None when there is none for this processor."""
    if platform.machine() != "x86_64":
        return None
    code = _X86_64 + _REFUSED
    size = _HEADERS + len(code)
    identity = b"\x7fELF\x02\x01\x01".ljust(16, b"\0")
    header = struct.pack("<HHIQQQIHHHHHH", 2, 62, 1, _LOADED_AT + _HEADERS, 64, 0, 0, 64, 56, 1, 0, 0, 0)
    segment = struct.pack("<IIQQQQQQ", 1, 5, 0, _LOADED_AT, _LOADED_AT, size, size, 0x1000)
    return identity + header + segment + code


@contextmanager
def entered(
    directories: Sequence[str], program: bytes | None
) -> Generator[tuple[tuple[str, ...], tuple[int, ...]], None, None]:
    """What to put in front of a program, and the descriptors that it needs; `program`: of `native_entry`."""
    descriptor = os.memfd_create("artoo-entry", getattr(os, "MFD_CLOEXEC", 1))
    at = f"/proc/self/fd/{descriptor}"
    before = (at,) if program is not None else (sys.executable, "-I", "-S", at, "enter")
    try:
        # By descriptor, for its own file may lie where the command sees something else: below a private /tmp.
        os.write(descriptor, _LAUNCHER.read_bytes() if program is None else program)
        yield (*before, *directories, ""), (descriptor,)
    finally:
        os.close(descriptor)
