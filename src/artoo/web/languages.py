"""Which language a page speaks."""

from __future__ import annotations

from artoo.web.chinese import CHINESE
from artoo.web.english import ENGLISH
from artoo.web.words import Words


def words_for(cookie: str, accepted: str) -> Words:
    """The language that was chosen, else the first of those that the browser accepts that there is."""
    if cookie in ("en", "zh"):
        return CHINESE if cookie == "zh" else ENGLISH
    for part in accepted.split(","):
        tag = part.partition(";")[0].strip().lower()
        if tag.startswith("zh"):
            return CHINESE
        if tag.startswith("en"):
            return ENGLISH
    return ENGLISH
