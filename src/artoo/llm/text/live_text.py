"""Show the words of a streaming answer, without thoughts, and without repetition after a retry."""

from __future__ import annotations

from artoo.llm.text.thoughts import may_be_thinking, split_thoughts
from artoo.ports.model import OnText


class LiveText:
    """Passes on the visible words of an answer while it is streamed. It does so over all attempts.

    If a later attempt differs from the words that were already passed on, nothing more is passed on. The whole turn
    is published when it is complete.
    """

    def __init__(self, on_text: OnText) -> None:
        self._on_text = on_text
        self._heard = ""
        self._raw = ""
        self._held = True

    def restart(self) -> None:
        """Start another attempt."""
        self._raw, self._held = "", True

    def add(self, piece: str) -> None:
        """Add the next words of this attempt."""
        if not piece:
            return
        self._raw += piece
        if self._held:
            # Thoughts come first. After the first visible word, everything else is visible too.
            if may_be_thinking(self._raw):
                return
            self._held = False
            self._raw = split_thoughts(self._raw).words.lstrip()
        self._say(self._raw)

    def end(self, text: str) -> None:
        """Pass on those words of the complete turn that were not passed on yet."""
        self._say(text.strip())

    def _say(self, text: str) -> None:
        if len(text) > len(self._heard) and text.startswith(self._heard):
            fresh, self._heard = text[len(self._heard) :], text
            self._on_text(fresh)
