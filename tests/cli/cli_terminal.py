"""A real pseudo-terminal with artoo in it, for the command line's tests."""

from __future__ import annotations

import codecs
import fcntl
import os
import pty
import re
import select
import signal
import struct
import subprocess
import sys
import termios
import time
from collections.abc import Generator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path

PROGRAM = Path(__file__).with_name("cli_standin.py")
PATIENCE = 60.0
"""Seconds until a test gives up waiting for something that should appear."""

_ESCAPES = re.compile(r"\x1b\[[0-9;?]*[ -/]*[@-~]|\x1b\][^\x07]*\x07|\x1b[()][0-9A-Za-z]|\x1b[=>]")
CTRL_C, CTRL_D = "\x03", "\x04"
SHOW_CURSOR, HIDE_CURSOR = "\x1b[?25h", "\x1b[?25l"


def _as_a_terminal_starts_it() -> None:
    """Make Ctrl-C a signal. Tests that run in the background of a script have inherited that it is ignored."""
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    fcntl.ioctl(0, termios.TIOCSCTTY, 0)


class Terminal:
    """artoo with a stand-in runtime on a terminal of 24 lines."""

    def __init__(self, process: subprocess.Popen[bytes], master: int) -> None:
        self._process = process
        self._master = master
        self._settings = termios.tcgetattr(master)
        self._decoder = codecs.getincrementaldecoder("utf-8")("replace")
        self.raw = ""
        self._seen = 0

    def wait_for(self, text: str, times: int = 1) -> None:
        """Reads until `text` has appeared (escape sequences aside)."""
        deadline = time.monotonic() + PATIENCE
        while self.shown.count(text) < times:
            if not self._read(deadline):
                raise AssertionError(f"{text!r} did not appear; there was: {self.shown!r}")

    def wait_for_prompt(self) -> None:
        """Waits until the prompt reads single keys; before, the terminal itself would act on Ctrl-C and Ctrl-D."""
        deadline = time.monotonic() + PATIENCE
        while self.as_before and time.monotonic() < deadline:
            self._read(time.monotonic() + 0.02)

    def send(self, keys: str) -> None:
        """Types."""
        os.write(self._master, keys.encode())

    def end(self) -> int:
        """Reads until the program has ended; its exit code."""
        deadline = time.monotonic() + PATIENCE
        while self._read(deadline):
            pass
        return self._process.wait(timeout=max(1.0, deadline - time.monotonic()))

    def forget(self) -> None:
        """What was written so far is not waited for again."""
        self._seen = len(self.raw)

    @property
    def shown_all(self) -> str:
        """Everything that was ever written, without escape sequences."""
        return _ESCAPES.sub("", self.raw).replace("\r\n", "\n")

    @property
    def shown(self) -> str:
        """What was written since `forget`, without escape sequences."""
        return _ESCAPES.sub("", self.raw[self._seen :]).replace("\r\n", "\n")

    @property
    def as_before(self) -> bool:
        """True when the terminal's modes (echo, line editing) are what they were at the start."""
        return termios.tcgetattr(self._master)[:4] == self._settings[:4]

    def _read(self, deadline: float) -> bool:
        ready, _, _ = select.select([self._master], [], [], max(0.0, deadline - time.monotonic()))
        if not ready:
            return False
        try:
            data = os.read(self._master, 65_536)
        except OSError:  # Linux says EIO when the last writer has gone
            return False
        self.raw += self._decoder.decode(data)  # a letter may come in two pieces
        return bool(data)


@contextmanager
def terminal(
    story: str,
    arguments: Sequence[str],
    home: Path,
    environ: Mapping[str, str] | None = None,
    *,
    pause: float = 0.01,
    columns: int = 80,
) -> Generator[Terminal]:
    """Starts artoo on a terminal, with a stand-in for the runtime that plays `story`, or without one for an empty
    story; it is gone when the block ends.
    """
    program = [str(PROGRAM), story] if story else ["-m", "artoo"]
    master, slave = pty.openpty()
    fcntl.ioctl(slave, termios.TIOCSWINSZ, struct.pack("HHHH", 24, columns, 0, 0))
    kept = {name: value for name, value in os.environ.items() if name in ("PATH", "HOME", "PYTHONPATH")}
    settings = {
        "TERM": "xterm-256color",
        "LANG": "C.UTF-8",
        "ARTOO_HOME": str(home),
        "STANDIN_PAUSE": str(pause),
        "PROMPT_TOOLKIT_NO_CPR": "1",
    }
    process = subprocess.Popen(
        [sys.executable, *program, *arguments],
        stdin=slave,
        stdout=slave,
        stderr=slave,
        start_new_session=True,
        preexec_fn=_as_a_terminal_starts_it,  # noqa: PLW1509 (it takes no lock)
        env={**kept, **settings, **(environ or {})},
    )
    try:
        opened = Terminal(process, master)
        os.close(slave)
        yield opened
    finally:
        process.kill()
        process.wait()
        os.close(master)
