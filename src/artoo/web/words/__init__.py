"""Everything that the page itself says, in English and Chinese. What models and files say stays as it is."""

from __future__ import annotations

from artoo.contracts.solution import Decided
from artoo.web.words import tables
from artoo.web.words.books import BookWords
from artoo.web.words.home import HomeWords
from artoo.web.words.said import Language
from artoo.web.words.task import TaskWords
from artoo.web.words.team import TeamWords
from artoo.words.names import led_to

__all__ = ["Language", "Words", "words_for"]


class Words(HomeWords, TaskWords, TeamWords, BookWords):
    """All words of one language."""

    def role(self, name: str) -> str:
        """A role for people."""
        return tables.ROLES.of(name, self)

    def deed(self, name: str) -> str:
        """What a role does, in a word."""
        return tables.DEEDS.of(name, self)

    def directive(self, name: str) -> str:
        """What a macro-state means for the next round."""
        return tables.DIRECTIVES.of(name, self)

    def led_to(self, decided: Decided) -> str:
        """What a round led to."""
        return led_to(decided, self.language)

    def decider(self, name: str) -> str:
        """What decided a verdict, for people; what nobody decided is open."""
        return tables.DECIDERS.of(name, self)

    def consent(self, name: str) -> str:
        """An answer for people."""
        return tables.CONSENTS.of(name, self)

    def change(self, name: str) -> str:
        """A class of changes for people."""
        return tables.CLASSES.of(name, self)

    def counted(self, name: str) -> str:
        """What is counted of a difference, for people: a class of changes, or a part of one."""
        return tables.COUNTED.of(name, self) if name in tables.COUNTED.names else self.change(name)

    def board_state(self, name: str) -> str:
        """A state of the board for people."""
        return tables.BOARD.of(name, self)

    def nature(self, name: str) -> str:
        """A kind of findings for people."""
        return tables.NATURES.of(name, self)

    def chain_end(self, name: str) -> str:
        """How a chain ended, for people."""
        return tables.ENDINGS.of(name, self)

    def anchor(self, name: str) -> str:
        """What an anchor says of a chain, for people."""
        return tables.ANCHORS.of(name, self)

    def action(self, name: str) -> str:
        """What memory advises, for people."""
        return tables.ACTIONS.of(name, self)

    def pulse(self, name: str) -> str:
        """What became of a beat of an agent's heart, for people."""
        return tables.PULSES.of(name, self)


_ENGLISH, _CHINESE = Words("en"), Words("zh")


def words_for(cookie: str, accepted: str) -> Words:
    """The language that was chosen, else the first of those that the browser accepts that there is."""
    if cookie in ("en", "zh"):
        return _CHINESE if cookie == "zh" else _ENGLISH
    for part in accepted.split(","):
        tag = part.partition(";")[0].strip().lower()
        if tag.startswith("zh"):
            return _CHINESE
        if tag.startswith("en"):
            return _ENGLISH
    return _ENGLISH
