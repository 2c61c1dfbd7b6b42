"""The language of artoo's own sentences, chosen by the script of the request."""

from __future__ import annotations

import re

_HAN = re.compile("[\u3400-\u9fff\uf900-\ufaff]")
_KANA = re.compile("[\u3040-\u30ff]")
_LATIN = re.compile("[A-Za-z]")


def language_of(text: str) -> str:
    """ "zh" when Chinese characters carry the text, else "en". Names and paths in Latin do not outvote them.

    Text with kana is Japanese, for which there are no sentences yet.
    """
    han = len(_HAN.findall(text))
    if not han or _KANA.search(text):
        return "en"
    words = sum(word.isascii() and _LATIN.search(word) is not None for word in text.split())
    return "zh" if han >= words else "en"
