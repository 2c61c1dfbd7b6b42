"""Telling a model's thoughts from what it says, by their structure, before anything is parsed (pure)."""

from __future__ import annotations

import re

_THOUGHT_TAG = re.compile(r"<(/?)(?:think|thinking|thought|reasoning)>", re.IGNORECASE)


def split_thoughts(text: str, *, partial: bool = False) -> tuple[str, str]:
    """What was said, and the unclosed thought at the end (closed ones are dropped).

    `partial`: more of the text may come, so that what may be the beginning of a mark is withheld.
    """
    if partial and "<".startswith(text.lstrip()[:1]) and ">" not in text:
        return "", text
    said: list[str] = []
    position, opened = 0, False
    for tag in _THOUGHT_TAG.finditer(text):
        if tag.group(1):
            if not opened:
                said.clear()  # the opening tag stood in the prompt's template: all before was thought
            position, opened = tag.end(), False
        elif not opened:
            said.append(text[position : tag.start()])
            position, opened = tag.end(), True
    rest = text[position:]
    return ("".join(said), rest) if opened else ("".join([*said, rest]), "")
