"""A sentence of the page's own in every language that it speaks, side by side."""

from __future__ import annotations

from typing import Literal

Language = Literal["en", "zh"]


class Spoken:
    """Words in one language."""

    def __init__(self, language: Language) -> None:
        self.language: Language = language


class Said:
    """An attribute of `Spoken` that reads as the text of its language. `{…}` in it is filled in by `format`."""

    def __init__(self, english: str, chinese: str) -> None:
        self.texts: dict[Language, str] = {"en": english, "zh": chinese}

    def __get__(self, words: Spoken, owner: type[Spoken]) -> str:
        return self.texts[words.language]


class Named:
    """Names that code has for some things, and what people call them. One that is not here stands as it is."""

    def __init__(self, names: dict[str, tuple[str, str]]) -> None:
        self.names = {name: Said(*texts) for name, texts in names.items()}

    def of(self, name: str, words: Spoken) -> str:
        """The name for people."""
        said = self.names.get(name)
        return name if said is None else said.texts[words.language]
