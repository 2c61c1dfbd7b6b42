"""The lines that a user types on a terminal, read without blocking, with the longest line."""

from __future__ import annotations

import asyncio
import os
import termios
from typing import TextIO

LONGEST_ANSWER = 4_096


class Keyboard:
    """The user's keyboard, which only one reader can use at a time. An empty text means the end of input, or that
    the user wants to stop."""

    def __init__(self, source: TextIO) -> None:
        self._source = source
        self._answer: asyncio.Future[str] | None = None
        self._given_up = False

    def begin(self) -> None:
        """Prepare for a new question. An earlier Ctrl-C does not end it."""
        self._given_up = False
        self.forget()

    def forget(self) -> None:
        """Drop what was typed before, because it was no answer to the present question."""
        termios.tcflush(self._source.fileno(), termios.TCIFLUSH)

    def give_up(self) -> None:
        """Return an empty text from the current read, and from all reads until `begin` is called."""
        self._given_up = True
        if self._answer is not None and not self._answer.done():
            self._answer.set_result("")

    async def read(self) -> str:
        """Read the next line with its line end. Return an empty text at the end of input."""
        if self._given_up:
            return ""
        loop = asyncio.get_running_loop()
        self._answer = answer = loop.create_future()
        descriptor = self._source.fileno()

        def ready() -> None:
            loop.remove_reader(descriptor)
            if not answer.done():
                answer.set_result(_read(descriptor))

        loop.add_reader(descriptor, ready)
        try:
            return await answer
        finally:
            loop.remove_reader(descriptor)
            self._answer = None


def _read(descriptor: int) -> str:
    try:
        return os.read(descriptor, LONGEST_ANSWER).decode("utf-8", "replace")
    except OSError:
        # the terminal was closed
        return ""
