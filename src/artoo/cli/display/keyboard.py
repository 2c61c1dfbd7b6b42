"""The keyboard of a terminal, read without blocking the loop: a line, or a single key."""

from __future__ import annotations

import asyncio
import os
import termios
import tty
from collections.abc import Generator
from contextlib import contextmanager
from typing import TextIO

LONGEST_ANSWER = 4_096


class Keyboard:
    """What a person types. One reader at a time; empty text is the end of input, or a wish to stop."""

    def __init__(self, source: TextIO) -> None:
        self._source = source
        self._answer: asyncio.Future[str] | None = None
        self._given_up = False

    def begin(self) -> None:
        """A new conversation begins: what was given up before does not end it."""
        self._given_up = False
        self.forget()

    def forget(self) -> None:
        """Drops what was typed already: it was no answer to what is asked now."""
        termios.tcflush(self._source.fileno(), termios.TCIFLUSH)

    def give_up(self) -> None:
        """Ends the present wait, and all that follow in this conversation, with an empty answer."""
        self._given_up = True
        if self._answer is not None and not self._answer.done():
            self._answer.set_result("")

    async def read(self) -> str:
        """What the terminal hands over next: a line with its end, or within `keys` a key; empty at the end."""
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

    @contextmanager
    def keys(self) -> Generator[None]:
        """While the block runs, keys arrive one by one and are not shown. Ctrl-C stays a signal."""
        descriptor = self._source.fileno()
        before = termios.tcgetattr(descriptor)
        tty.setcbreak(descriptor, termios.TCSADRAIN)
        try:
            yield
        finally:
            termios.tcsetattr(descriptor, termios.TCSADRAIN, before)


def _read(descriptor: int) -> str:
    try:
        return os.read(descriptor, LONGEST_ANSWER).decode("utf-8", "replace")
    except OSError:  # the terminal is gone
        return ""
