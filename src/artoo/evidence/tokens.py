"""Extract numbers, paths, URLs, ids and quoted strings from a text.

The rules know no words of any language.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Literal

from artoo.evidence.numerals import TIME, Number, numbers_in, parted, plain_digits, times_in

Kind = Literal["number", "path", "url", "id", "quote"]

LONGEST = 100_000  # characters of a text that are read for tokens
# A fenced block with an info string contains proposed or explained code, so it reports nothing.
_CODE_BLOCK = re.compile(r"^ {0,3}```[ \t]*[^\s`][^\n`]*\n.*?(?:^ {0,3}```[ \t]*$|\Z)", re.MULTILINE | re.DOTALL)
_CODE_SPAN = re.compile(r"`([^`\n]+)`")
LIST_MARK = re.compile(r"^[ \t>]*(?:\d{1,3}[.)]|[-*+])[ \t]+|^#+ .*?\d+[.)]?", re.MULTILINE)
_URL = re.compile(r"\b[a-zA-Z][a-zA-Z0-9+.-]{1,15}://[^\s<>\"'`\])}\u3001\u3002\uff0c]+")
# The length of every part is limited, because a path may begin at each `@` of a long run, and each try would
# otherwise scan to the end of the run.
_PATH = re.compile(
    r"(?<![\w/.~:-])(?:(?:~|\.{1,2})?/[\w@%+.-]+(?:/[\w@%+.-]*)*"
    r"|[\w@%+.-]{1,255}(?:/[\w@%+.-]{1,255}){0,32}/[\w@%+.-]{1,255}\.\w{1,8})"
)
_MAIL = re.compile(r"(?<![\w.+-])[\w.+-]+@(?!\dx\.)[\w-]+(?:\.[\w-]+)+")  # icon@2x.png is none
_IDENTIFIER = re.compile(r"(?<![\w-])(?=[\w-]*\d)(?=[\w-]*[^\W\d_])\w+(?:-\w+)*(?![\w-])")
# Identifiers that an author must have read somewhere, because they have three digits in a row or look like a hash.
_READ = re.compile(r"\d{3}|^[0-9a-fA-F-]{7,64}$")
_QUOTES = re.compile(
    r"\"([^\"\n]*)\"|\u201c([^\u201c\u201d\n]{8,300})\u201d|\u201e([^\u201c\u201d\n]{8,300})[\u201c\u201d]"
    r"|\u00ab([^\u00bb\n]{8,300})\u00bb|\u300c([^\u300d\n]{4,300})\u300d|\u300e([^\u300f\n]{4,300})\u300f"
)
_SHORTEST_QUOTE, _LONGEST_QUOTE = 8, 300  # characters between straight marks; shorter quotes are mostly names
_WORD = re.compile(r"\w+")
_PIECES = re.compile(r"[\s\"'`<>()\[\]{},;|\u201c\u201d\u3001\u3002\uff0c]+")
_TRAILING = ".,;:!?*_"


@dataclass(frozen=True, slots=True)
class Token:
    """One exact token with its kind, its position and, if it is a number, its value."""

    kind: Kind
    text: str
    start: int
    number: Number | None = None


def tokens_of(text: str) -> tuple[Token, ...]:
    """Return the tokens that an answer states, in order. Tokens in code and in list markers are left out."""
    text = text[:LONGEST]
    left = blanked(_CODE_BLOCK, text)
    found = list(_quotations(left))
    left = blanked(_CODE_SPAN, left, keep=lambda span: len([*numbers_in(span)]) == 1 and len(words_of(span)) <= 2)
    left = blanked(LIST_MARK, left)
    kinds: tuple[tuple[Kind, re.Pattern[str]], ...] = (("url", _URL), ("id", _MAIL), ("path", _PATH))
    for kind, pattern in kinds:
        found += (Token(kind, match.group().rstrip(_TRAILING), match.start()) for match in pattern.finditer(left))
        left = blanked(pattern, left)
    numbers = list(times_in(left))
    left = blanked(TIME, left, read_as=plain_digits(left))
    apart = parted(left)
    words = ((match.group(), match.start()) for match in _IDENTIFIER.finditer(apart))
    found += (Token("id", word, start) for word, start in words if _READ.search(word))
    numbers += numbers_in(blanked(_IDENTIFIER, left, read_as=apart))
    found += (Token("number", text[each.start : each.end].strip(), each.start, each) for each in numbers)
    return tuple(sorted(found, key=lambda token: token.start))


def _quotations(text: str) -> Iterator[Token]:
    """Return the texts between quotation marks. Straight marks look the same at both ends, so they are paired from
    the left within each line. Pairs around short texts take part in this too. If a line has an odd number of
    straight marks, it has no quotation of this kind.
    """
    start = 0
    for line in text.split("\n"):
        odd = line.count('"') % 2
        for match in _QUOTES.finditer(line):
            quoted = next(filter(None, match.groups()), "")
            straight = match.group().startswith('"')
            if straight and (odd or not _SHORTEST_QUOTE <= len(quoted) <= _LONGEST_QUOTE):
                continue
            if len(_WORD.findall(quoted)) > 1:
                yield Token("quote", quoted, start + match.start())
        start += len(line) + 1


def words_of(text: str) -> list[str]:
    """Return the case-folded words of a text, for comparing and counting."""
    return [word.casefold() for word in _WORD.findall(plain_digits(text[:LONGEST]))]


def folded(text: str) -> str:
    """Return the case-folded words of a text in one line, so that one text can be searched in another."""
    return " ".join(words_of(text))


def paths_in(text: str) -> Iterator[str]:
    """Return the parts of a text that have a point or a slash. They may be names of files, which only the disk can
    confirm."""
    for piece in _PIECES.split(text[:LONGEST]):
        name = "" if _MAIL.fullmatch(piece.rstrip(_TRAILING)) else piece.strip(":!?*").rstrip(".")
        if ("." in name or "/" in name) and any(map(str.isalnum, name)) and not _URL.match(name):
            yield name


def blanked(
    pattern: re.Pattern[str], text: str, keep: Callable[[str], bool] | None = None, read_as: str | None = None
) -> str:
    """Return a text of the same length in which every match is replaced by blanks.

    A match stays if `keep` returns true for it. If `read_as` is given, the pattern is matched in it instead of in
    the text.
    """
    left = list(text)
    for match in pattern.finditer(text if read_as is None else read_as):
        if keep is None or not keep(match.group(1)):
            left[match.start() : match.end()] = " " * len(match.group())
    return "".join(left)
