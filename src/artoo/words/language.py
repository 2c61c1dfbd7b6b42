"""Choose the language of artoo's sentences by the script of the request."""

from __future__ import annotations

import re

_HAN = re.compile("[\u3400-\u9fff\uf900-\ufaff]")
_KANA = re.compile("[\u3040-\u30ff]")
_LATIN = re.compile("[A-Za-z]")


def language_of(text: str) -> str:
    """Return "zh" if the text has at least as many Chinese characters as ASCII words, else "en".

    A text with kana is Japanese, for which there is no catalogue yet, so it gets "en".
    """
    han = len(_HAN.findall(text))
    if not han or _KANA.search(text):
        return "en"
    words = sum(word.isascii() and _LATIN.search(word) is not None for word in text.split())
    return "zh" if han >= words else "en"
