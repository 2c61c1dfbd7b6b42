"""Translate English sentences by gettext files such as `zh.po`, with the list of languages.

The code has the English text, and gettext files the translations.

`in_language("zh")` returns a catalogue, which translates an English sentence by `zh.po`. A new language needs only
a new file. A sentence without a translation stays English. A test compares the catalogue with the code.
"""

from __future__ import annotations

import json
import re
from functools import cache
from gettext import NullTranslations
from pathlib import Path

LANGUAGES = ("zh",)
"""Languages that have a catalogue next to this module."""

_ENTRY = re.compile(r'^(msgid|msgid_plural|msgstr)(?:\[0\])? ((?:"(?:[^"\\]|\\.)*"\n?)+)', re.MULTILINE)


class Catalogue(NullTranslations):
    """The translations to one language. Fields in braces are filled in with `str.format`."""

    def __init__(self, language: str = "en", po: str = "") -> None:
        super().__init__()
        self.language = language
        self._texts = _texts(po)

    def __call__(self, text: str, /, **fields: object) -> str:
        """Translate an English sentence, and fill in its fields if any are given."""
        said = self._texts.get(text, text)
        return said.format(**fields) if fields else said

    def gettext(self, message: str) -> str:
        """Translate an English sentence without filling in fields."""
        return self._texts.get(message, message)

    def count(self, one: str, many: str, number: int) -> str:
        """Translate the singular or plural form, and fill in `{count}`, for example as `1 round` or `2 rounds`."""
        return self._texts.get(one, one if number == 1 else many).format(count=f"{number:,}")

    def sentences(self) -> dict[str, str]:
        """Return all translations by their English sentences."""
        return dict(self._texts)


@cache
def word(text: str, language: str) -> str:
    """Translate `text` into the language, if there is a translation."""
    return in_language(language)(text)


def in_language(language: str) -> Catalogue:
    """Return the catalogue for a BCP 47 tag, or the English catalogue if there is no other."""
    tag = language.lower()
    for known in LANGUAGES:
        if tag.startswith(known):
            return _read(known)
    return ENGLISH


@cache
def _read(language: str) -> Catalogue:
    return Catalogue(language, Path(__file__).with_name(f"{language}.po").read_text(encoding="utf-8"))


def _texts(po: str) -> dict[str, str]:
    """Read the entries of a PO file. Only the first plural form is read, because no language here has another."""
    texts: dict[str, str] = {}
    text = ""
    for found in _ENTRY.finditer(po):
        field, said = found[1], "".join(map(json.loads, found[2].splitlines()))
        if field == "msgid":
            text = said
        elif field == "msgstr":
            texts[text] = said
    # The entry with an empty msgid is the header of the file.
    texts.pop("", None)
    return texts


ENGLISH = Catalogue()
