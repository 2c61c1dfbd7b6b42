"""In which language artoo's own sentences are: told by the script of the request, which reads no meaning."""

from __future__ import annotations


def language_of(text: str) -> str:
    """ "zh" when Chinese characters carry the text, else "en". Names and paths in Latin do not outvote them.

    Text with kana is Japanese, for which there are no sentences yet.
    """
    han = sum("\u3400" <= one <= "\u9fff" or "\uf900" <= one <= "\ufaff" for one in text)
    kana = sum("\u3040" <= one <= "\u30ff" for one in text)
    words = sum(word.isascii() and any(map(str.isalpha, word)) for word in text.split())
    return "zh" if han and not kana and han >= words else "en"
