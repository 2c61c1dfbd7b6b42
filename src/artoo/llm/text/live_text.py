"""The words of an answer while it streams: thoughts are withheld, and a second try says nothing twice."""

from __future__ import annotations

from artoo.llm.text.thoughts import may_be_thinking, split_thoughts
from artoo.ports.model import OnText


class LiveText:
    """Passes the visible words of a streamed answer on, over all its tries.

    A try that says something else than what was heard already is not passed on: the whole turn follows when it is
    complete.
    """

    def __init__(self, on_text: OnText) -> None:
        self._on_text = on_text
        self._heard = ""
        self._raw = ""
        self._held = True

    def restart(self) -> None:
        """Start a further try."""
        self._raw, self._held = "", True

    def add(self, piece: str) -> None:
        """Take the next words of this try."""
        if not piece:
            return
        self._raw += piece
        if self._held:
            # Thoughts stand at the beginning; once words came after them, the rest is words.
            if may_be_thinking(self._raw):
                return
            self._held = False
            self._raw = split_thoughts(self._raw).words.lstrip()
        self._say(self._raw)

    def end(self, text: str) -> None:
        """Take the whole text of the turn."""
        self._say(text.strip())

    def _say(self, text: str) -> None:
        if len(text) > len(self._heard) and text.startswith(self._heard):
            fresh, self._heard = text[len(self._heard) :], text
            self._on_text(fresh)
