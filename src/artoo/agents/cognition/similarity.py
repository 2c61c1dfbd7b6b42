"""Compare two texts by the share of common words, without case, numbers, paths or quoted names.

Chinese is split into character pairs.
"""

from __future__ import annotations

import re
import unicodedata

READ = 2_000
"""Number of characters at the beginning of a text that are compared."""

_PARTICULARS = (
    (re.compile(r"https?://\S+"), " ‹url› "),
    (re.compile(r"\"[^\"\n]{1,200}\"|“[^”\n]{1,200}”|「[^」\n]{1,200}」|`[^`\n]{1,200}`"), " ‹name› "),
    (re.compile(r"(?:~|\.{1,2})?/[^\s,;:]+|[\w.-]+/[^\s,;:]+"), " ‹path› "),
    (re.compile(r"(?<![\w.])[\w-]+\.[A-Za-z][A-Za-z0-9]{0,4}(?![\w])"), " ‹path› "),
    (re.compile(r"\b[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}\b|\b(?=[a-f]*\d)[0-9a-f]{8,}\b"), " ‹id› "),
    (re.compile(r"\d+(?:[.,:/-]\d+)*"), " ‹n› "),
)
_WORD = re.compile(r"[^\W_]+")
_WIDE = re.compile(r"[\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff]+")


def general(text: str) -> str:
    """Return `text` with paths, names and numbers replaced by placeholders, so that texts on the same subject
    become equal."""
    folded = unicodedata.normalize("NFKC", text[:READ]).casefold()
    for pattern, replacement in _PARTICULARS:
        folded = pattern.sub(replacement, folded)
    return " ".join(folded.split())


def words(text: str) -> frozenset[str]:
    """Return the set of words of a text for comparison. Chinese and kana are split into character pairs."""
    folded = unicodedata.normalize("NFKC", text[:READ]).casefold()
    found: set[str] = set()
    for word in _WORD.findall(_WIDE.sub(lambda run: f" {run[0]} ", folded)):
        if _WIDE.fullmatch(word) and len(word) > 1:
            found.update(word[at : at + 2] for at in range(len(word) - 1))
        else:
            found.add(word)
    return frozenset(found)


def likeness(one: frozenset[str], other: frozenset[str]) -> float:
    """Return the share of common words, from 0 to 1 (Jaccard). It is 0 if there are no words."""
    together = len(one | other)
    return len(one & other) / together if together else 0.0


def one_line(text: str, limit: int) -> str:
    """Return at most `limit` characters in one line, without characters that could end a line or a comment in
    Markdown."""
    flat = " ".join(text.replace("<!--", "‹!--").replace("-->", "--›").split())
    return flat if len(flat) <= limit else f"{flat[: limit - 1]}…"
