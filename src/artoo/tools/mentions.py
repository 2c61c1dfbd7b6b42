"""Files that a request names, in English or Chinese text, and whether they are meant as input or as output."""

from __future__ import annotations

import itertools
import os
import re
from dataclasses import dataclass
from enum import Enum
from pathlib import Path

_MOST_ENTRIES = 2_000
MAX_REQUEST = 20_000
"""Characters of a request that are looked at."""


class Use(Enum):
    """What the request wants with a named file."""

    INPUT = "input"
    OUTPUT = "output"


@dataclass(frozen=True, slots=True)
class Mention:
    """A file name or path as the request writes it."""

    name: str
    use: Use


_NAME = re.compile(
    r"""(?P<quoted>[`"'“‘《「](?P<inner>[^\s`"'“”‘’《》「」][^`"'“”‘’《》「」\n]{0,200}\.[A-Za-z0-9]{1,8})[`"'”’》」])"""
    r"|(?<![A-Za-z0-9_./~@:-])(?P<plain>(?:~/|\.{0,2}/)?[A-Za-z0-9_.][A-Za-z0-9_./+@-]{0,200})",
)
_ENDING = re.compile(r"\.(?=[A-Za-z0-9]{0,7}[A-Za-z])[A-Za-z0-9]{1,8}\Z")
_NOT_FILES = re.compile(
    r"(e\.g|i\.e|etc|vs|v?\d[\d.]*|[A-Z]\.[A-Z]|www\..*|.*\.(com|org|net|io|dev|ai|cn)|node\.js|vue\.js|next\.js)\.?",
    re.IGNORECASE,
)
_SENTENCE_END = re.compile(r"[.!?;](?=\s)|[。！？；\n]")

_CUES: tuple[tuple[Use | None, re.Pattern[str]], ...] = (
    (
        Use.OUTPUT,
        re.compile(
            r"\b(to|into|as|new|create|creating|output|onto)\b|创建|新建|写入|写到|写进|保存|存为|存到|存成|生成|输出|导出|另存",
            re.IGNORECASE,
        ),
    ),
    (
        Use.INPUT,
        re.compile(
            r"\b(of|from|read|open|load|parse|count|does|do|is|use|using|with|sum|find|show|compare|than)\b"
            r"|读取|打开|统计|根据|从|查看|分析|计算|比较",
            re.IGNORECASE,
        ),
    ),
)
_HERE = re.compile(
    r"\b(current|this|same|project|working) (directory|folder|dir|repository|repo|project)\b|\bhere\b"
    r"|当前目录|这个目录|当前文件夹|这个文件夹|项目(目录|文件夹|里)|这里",
    re.IGNORECASE,
)
_MAKING = re.compile(r"\b(create|write|save|store|make|generate|export|produce|put|record)\b", re.IGNORECASE)


def mentions(request: str) -> tuple[Mention, ...]:
    """The files that a request names, in order, each once; the first mention says what it is used for."""
    text = request[:MAX_REQUEST]
    found: dict[str, Mention] = {}
    for match in _NAME.finditer(text):
        name = _file_name(match)
        if name is not None:
            found.setdefault(name, Mention(name, _use(text[: match.start()])))
    return tuple(found.values())


def is_about_project(request: str, project: Path) -> bool:
    """Whether a request says that it is about this directory, or names something at its top."""
    if _HERE.search(request):
        return True
    try:
        with os.scandir(project) as entries:
            names = [entry.name for entry in itertools.islice(entries, _MOST_ENTRIES)]
    except OSError:
        return False
    return any(occurs(name, request) for name in names)


def names_place(request: str, path: str) -> bool:
    """Whether a request names this file or a directory that it is to lie in: then it belongs in the project."""
    wanted = path.strip().removeprefix("./")
    if _HERE.search(request):
        return True
    parts = [part for part in wanted.split("/") if part]
    named = {mention.name.removeprefix("./").rsplit("/", 1)[-1] for mention in mentions(request)}
    if not parts:
        return False
    if parts[-1] in named or occurs(parts[-1], request):
        return True
    return any(occurs(part, request) for part in parts[:-1])


def occurs(name: str, text: str) -> bool:
    """Whether `name` stands in `text` as a word of its own (next to Chinese characters counts as that)."""
    if len(name) < 2 or name not in text:
        return False
    pattern = rf"(?<![A-Za-z0-9_-]){re.escape(name)}(?![A-Za-z0-9_-])(?!\.[A-Za-z0-9])"
    return re.search(pattern, text[:MAX_REQUEST]) is not None


def _file_name(match: re.Match[str]) -> str | None:
    """The name that a match stands for, without the full stop that ends a sentence; None for what is no file."""
    name = match.group("inner") or match.group("plain").rstrip(".-+@,")
    last = name.rsplit("/", 1)[-1]
    if _ENDING.search(last, 1) is None or _NOT_FILES.fullmatch(name) or "*" in name:
        return None
    return name


def _use(before: str) -> Use:
    """Reads the words before a name in its sentence: the nearest cue decides; `in` and `named` leave it open."""
    starts = [end.end() for end in _SENTENCE_END.finditer(before)]
    sentence = before[starts[-1] :] if starts else before
    nearest = [(match.end(), use) for use, cue in _CUES for match in cue.finditer(sentence)]
    making = [match.end() for match in _MAKING.finditer(sentence)]
    position, use = max(nearest, key=lambda one: one[0], default=(-1, None))
    if use is not None and not (use is Use.INPUT and making and max(making) > position):
        return use
    return Use.OUTPUT if making else Use.INPUT
