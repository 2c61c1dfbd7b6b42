"""What a request itself demands, as criteria that code can check (SPEC section 2).

Criteria are a contract with the person, so they come from the person's words: every file to be made, every
kind of number and every format that the request names. A model may add to them; it cannot soften them.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

from artoo.contracts.criteria import (
    CommandSucceeds,
    Criterion,
    FileExists,
    FileMatches,
    Mode,
    OutputIsJson,
    OutputMatches,
)

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
_COUNTS = re.compile(
    r"\bhow (?:many|much|old|large|big|long)\b|\b(?:the |total )?(?:number|count|sum|total|average|mean|median"
    r"|percentage|maximum|minimum) of\b"
    r"|\b(?:what|which|compute|calculate|find|give|tell|report|print|show)\b[^.?!]{0,40}"
    r"\b(?:sum|total|average|mean|median|percentage|count|maximum|minimum)\b|^\s*count\b"
    r"|多少|几个|几行|几条|总和|总数|合计|平均|求和|数量|个数|百分比",
    re.IGNORECASE,
)
_DECIMALS = re.compile(
    r"\b(?:to|with) (?P<n>one|two|three|four|[1-6]) decimals?\b"
    r"|\b(?P<n2>one|two|three|four|[1-6]) decimal places?\b"
    r"|(?:保留|精确到)?\s*(?P<zh>[一二两三四1-6])\s*位小数",
    re.IGNORECASE,
)
_LINES = re.compile(
    r"\bexactly (?P<n>one|two|three|four|five|six|seven|eight|nine|ten|\d{1,3}) lines?\b"
    r"|(?:正好|恰好|刚好|一共|共)\s*(?P<zh>[一二两三四五六七八九十]|\d{1,3})\s*行",
    re.IGNORECASE,
)
_LINE_ITEMS = re.compile(
    r"\blines?\s*[:：]\s*(?P<items>[^.;(（。；\n]+)|行\s*[:：]\s*(?P<zh>[^.;(（。；\n]+)", re.IGNORECASE
)
_AS_JSON = re.compile(
    r"\b(?:as|in|valid) json\b|\bjson (?:format|object|array|output)\b|JSON\s*格式|以\s*JSON", re.IGNORECASE
)
_WHICH_FILE = re.compile(r"\b(?:which|what) files?\b|哪个文件|哪些文件", re.IGNORECASE)
_HOW_MANY_FILES = re.compile(r"\bhow many\b|多少|几个", re.IGNORECASE)
_NUMBER_WORDS = dict(
    zip(["one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten"], range(1, 11), strict=True)
) | dict(zip("一二三四五六七八九十", range(1, 11), strict=True), 两=2)


@dataclass(frozen=True, slots=True)
class NamedFiles:
    """Files that the request names: what it wants made, and the rest, which it takes to exist."""

    outputs: tuple[str, ...]
    inputs: tuple[str, ...]


def named_files(request: str) -> NamedFiles:
    """Sorts the request's file names by the words that lead to them, in order of appearance."""
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


def criteria_of(request: str) -> tuple[Criterion, ...]:
    """The criteria that follow from the words of `request`; all with a check, all verifiable."""
    return tuple(_derive(request, named_files(request)))


def _derive(request: str, files: NamedFiles) -> Iterator[Criterion]:
    for path in files.outputs:
        yield _verifiable(f"{path} exists", FileExists(path=path))
        if path.lower().endswith(".json"):
            command = f"python3 -m json.tool {_shell_quoted(path)}"
            yield _verifiable(f"{path} is valid JSON", CommandSucceeds(command=command))
    if len(files.outputs) == 1:
        yield from _line_criteria(request, files.outputs[0])
    if files.outputs:
        return
    decimals = _DECIMALS.search(request)
    if decimals:
        digits = _number(decimals["n"] or decimals["n2"] or decimals["zh"])
        yield _verifiable(f"the answer has {digits} decimal(s)", OutputMatches(regex=rf"\d\.\d{{{digits}}}(?!\d)"))
    elif _COUNTS.search(request):
        yield _verifiable("the answer contains a number", OutputMatches(regex=r"\d"))
    elif _WHICH_FILE.search(request) and not _HOW_MANY_FILES.search(request):
        yield _verifiable("the answer names a file", OutputMatches(regex=r"[\w~-]+(?:\.\w+|/[\w~-]+)"))
    if _AS_JSON.search(request):
        yield _verifiable("the answer is JSON", OutputIsJson())


def _line_criteria(request: str, path: str) -> Iterator[Criterion]:
    wanted = _LINES.search(request)
    if wanted is None:
        return
    count = _number(wanted["n"] or wanted["zh"])
    found = _LINE_ITEMS.search(request)
    text = (found["items"] or found["zh"]) if found else ""
    items = [
        part.strip(" \"'`“”") for part in re.split(r"\s*[,，、]\s*(?:and\s+)?|\s+and\s+", text) if part.strip()
    ]
    if len(items) == count:
        body = r"\r?\n".join(re.escape(item) for item in items)
        yield _verifiable(
            f"{path} has the lines {', '.join(items)}", FileMatches(path=path, regex=rf"\A{body}\s*\Z")
        )
    else:
        body = rf"\A(?:[^\n]*\n){{{count - 1}}}[^\n]+\n?\Z"
        yield _verifiable(f"{path} has exactly {count} lines", FileMatches(path=path, regex=body))


def _clauses(text: str) -> list[str]:
    """Sentences; a dot inside a file name ends none."""
    return re.split(r"(?<=[.?!;。？！；])\s+|[。？！；\n]", text)


def _leads_to_output(words: str) -> bool:
    """ "in X" alone names a place to look; "in a new file X" names one to make."""
    return not re.match(r"(?:in|中)\s+" + _QUOTE + _FILE, words, re.IGNORECASE)


def _verifiable(
    text: str, check: FileExists | FileMatches | CommandSucceeds | OutputMatches | OutputIsJson
) -> Criterion:
    return Criterion(text=text, mode=Mode.VERIFIABLE, check=check)


def _number(word: str) -> int:
    return _NUMBER_WORDS.get(word.lower()) or int(word)


def _shell_quoted(path: str) -> str:
    return "'" + path.replace("'", "'\\''") + "'"
