"""Which files and directories a request names, and which of them it wants made."""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import lru_cache

_FILE = r"[A-Za-z0-9_\u3400-\u9fff~][\w./~-]*\.[A-Za-z][A-Za-z0-9]{0,9}"
_QUOTE = r"[\"'`“”‘’「」《》]?"
_MAKES = re.compile(
    r"(?:\b(?:writ|sav|creat|generat|produc|mak|export|stor|put|convert|copy|output|add|render|dump)\w*\b"
    r"|写|保存|存|创建|新建|生成|导出|输出|转换|复制|制作)",
    re.IGNORECASE,
)
_TO_FILE = re.compile(
    r"(?:\b(?:in)?to|\bas|\bnamed|\bcalled|\bfile|\bin (?:a|the) (?:new )?file(?: named| called)?|\bin"
    r"|到|为|成|入|至|叫|名为|文件|中)\s*(?:(?:a|the)\s+)?(?:new\s+)?(?:text\s+)?(?:json\s+|csv\s+)?(?:files?\s+)?"
    r"(?:named\s+|called\s+|新?文件\s*|名为\s*)?" + _QUOTE + rf"(?P<path>{_FILE})",
    re.IGNORECASE,
)
_CREATE_DIRECTLY = re.compile(
    r"(?:\b(?:create|make|write|generate|produce)\s+(?:me\s+)?(?:a\s+|the\s+)?(?:new\s+)?(?:text\s+)?(?:file\s+)?"
    r"(?:named\s+|called\s+)?|(?:创建|新建|生成|写)\s*(?:一个|一份)?(?:新?文件|[\u3400-\u9fff]{0,4})?\s*(?:名为|叫)?\s*)"
    + _QUOTE
    + rf"(?P<path>{_FILE})",
    re.IGNORECASE,
)
_PLACE = r"[A-Za-z0-9_~.][\w./~-]*"
_DIRECTORIES = tuple(
    re.compile(pattern, re.IGNORECASE)
    for pattern in (
        rf"\b(?:sub)?(?:directory|folder)\s+(?:named\s+|called\s+)?{_QUOTE}({_PLACE})",
        rf"\b(?:in|under|inside|within|of|from)\s+(?:the\s+)?{_QUOTE}({_PLACE}){_QUOTE}\s+(?:directory|folder)\b",
        r"(?<![\w/.])([A-Za-z0-9_.~][\w.~-]*(?:/[\w.~-]+)*/)(?!\w)",
        rf"({_PLACE})\s*(?:目录|文件夹)",
    )
)
_NO_DIRECTORY = frozenset(
    (
        *(
            "a",
            "all",
            "an",
            "and",
            "any",
            "are",
            "contains",
            "current",
            "each",
            "every",
            "for",
            "has",
            "have",
            "home",
        ),
        *(
            "if",
            "in",
            "is",
            "its",
            "it",
            "of",
            "or",
            "parent",
            "project",
            "root",
            "same",
            "structure",
            "that",
            "the",
        ),
        *("there", "this", "to", "tree", "where", "which", "whose", "with", "working"),
    )
)
"""Words that follow or precede "directory" without naming one."""


_LONG = re.compile(r"[\w./~-]{301,}")
"""Longer than any file name: data, on which a search for names takes time that grows with its square."""


@dataclass(frozen=True, slots=True)
class NamedFiles:
    """Files that the request names: what it wants made, and the rest, which it takes to exist."""

    outputs: tuple[str, ...]
    inputs: tuple[str, ...]


_ENDING = re.compile(r"\.[A-Za-z]")


@lru_cache(maxsize=64)
def named_files(request: str) -> NamedFiles:
    """Sorts the request's file names by the words that lead to them, in order of appearance."""
    if _ENDING.search(request) is None:  # most requests: five searches less
        return NamedFiles((), ())
    request = _LONG.sub(" ", request)
    outputs: dict[str, None] = {}
    for clause in _clauses(request):
        for match in _CREATE_DIRECTLY.finditer(clause):
            outputs[match["path"].rstrip(".")] = None
        maker = _MAKES.search(clause)
        if maker:
            for match in _TO_FILE.finditer(clause, maker.end()):
                if _leads_to_output(match[0]):
                    outputs[match["path"].rstrip(".")] = None
    every = dict.fromkeys(found.rstrip(".") for found in re.findall(_FILE, request))
    return NamedFiles(tuple(outputs), tuple(path for path in every if path not in outputs))


@lru_cache(maxsize=64)
def named_directories(request: str) -> tuple[str, ...]:
    """Directories that the request names, in order of appearance; whether they exist is for the caller to see."""
    request = _LONG.sub(" ", request)
    matches = sorted((m for pattern in _DIRECTORIES for m in pattern.finditer(request)), key=lambda m: m.start(1))
    names = (match[1].rstrip(".").rstrip("/") for match in matches)
    found = dict.fromkeys(name for name in names if name and name.casefold() not in _NO_DIRECTORY)
    return tuple(found)


def _clauses(text: str) -> list[str]:
    """Sentences; a dot inside a file name ends none."""
    return re.split(r"(?<=[.?!;。？！；])\s+|[。？！；\n]", text)


def _leads_to_output(words: str) -> bool:
    """ "in X" alone names a place to look; "in a new file X" names one to make."""
    return not re.match(r"(?:in|中)\s+" + _QUOTE + _FILE, words, re.IGNORECASE)
