"""artoo's own sentences in the user's language: English in the code, every other language in a gettext catalogue.

`in_language("zh")` is called with the English sentence and returns the Chinese one of `zh.po`. Another language is
one more file. A sentence without a translation stays English; a test compares the catalogue with the code.
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
    """The sentences of one language. Fields in braces are filled in with `str.format`."""

    def __init__(self, language: str = "en", po: str = "") -> None:
        super().__init__()
        self.language = language
        self._texts = _texts(po)

    def __call__(self, text: str, /, **fields: object) -> str:
        """Return the sentence in this language, with its fields filled in if any are given."""
        said = self._texts.get(text, text)
        return said.format(**fields) if fields else said

    def gettext(self, message: str) -> str:
        """Return a sentence in this language."""
        return self._texts.get(message, message)

    def count(self, one: str, many: str, number: int) -> str:
        """Fill `{count}` of the form for this number: `1 round`, `2 rounds`."""
        return self._texts.get(one, one if number == 1 else many).format(count=f"{number:,}")

    def sentences(self) -> dict[str, str]:
        """Return every translated sentence by its English one."""
        return dict(self._texts)


@cache
def in_language(language: str) -> Catalogue:
    """Return the sentences for a BCP 47 tag; English where there is no catalogue."""
    tag = language.lower()
    for known in LANGUAGES:
        if tag.startswith(known):
            return _read(known)
    return ENGLISH


@cache
def _read(language: str) -> Catalogue:
    return Catalogue(language, Path(__file__).with_name(f"{language}.po").read_text(encoding="utf-8"))


def _texts(po: str) -> dict[str, str]:
    """Read the entries of a PO file. Plural forms: the first, because none of these languages has a second one."""
    texts: dict[str, str] = {}
    text = ""
    for found in _ENTRY.finditer(po):
        field, said = found[1], "".join(map(json.loads, found[2].splitlines()))
        if field == "msgid":
            text = said
        elif field == "msgstr":
            texts[text] = said
    # The entry without a text is the header.
    texts.pop("", None)
    return texts


ENGLISH = Catalogue()
