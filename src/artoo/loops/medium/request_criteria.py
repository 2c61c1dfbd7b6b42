"""What a request itself demands, as criteria that code can check (SPEC section 2).

Criteria are a contract with the person, so they come from the person's words: every file to be made, every
kind of number and every format that the request names. A model may add to them; it cannot soften them.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from artoo.contracts.criteria import (
    CommandSucceeds,
    Criterion,
    FileExists,
    FileMatches,
    Mode,
    OutputIsJson,
    OutputMatches,
)
from artoo.loops.named_files import NamedFiles, named_files

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
_PER_LINE = re.compile(r"\b(?:one|each|a \w+) (?:per|on (?:a|its own)) line\b|\beach line\b|每行", re.IGNORECASE)
_KINDS = (
    (
        "an IP address",
        re.compile(r"\b(?:which|what)\b[^.?!]{0,30}\bIP\b|(?:哪个|什么)\s*IP|IP\s*地址是", re.IGNORECASE),
        r"\d{1,3}(?:\.\d{1,3}){3}|[0-9A-Fa-f]{0,4}(?::[0-9A-Fa-f]{0,4}){2,7}",
    ),
    (
        "an e-mail address",
        re.compile(r"\b(?:which|what)\b[^.?!]{0,30}\be-?mail(?: address)?\b|邮箱(?:地址)?是", re.IGNORECASE),
        r"\S@\S",
    ),
)
"""What is asked for by its kind: the answer holds one, or answers something else."""
_WHICH_FILE = re.compile(r"\b(?:which|what) files?\b|哪个文件|哪些文件", re.IGNORECASE)
FILE_NAME = r"(?<![\w.])(?=[\w~./-]*[^\W\d_])[\w~-]+(?:\.\w+|/[\w~-]+)"
"""With a letter in it: the time at which a file was changed is not its name."""
_HOW_MANY_FILES = re.compile(r"\bhow many\b|多少|几个", re.IGNORECASE)
_NUMBER_WORDS = dict(
    zip(["one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten"], range(1, 11), strict=True)
) | dict(zip("一二三四五六七八九十", range(1, 11), strict=True), 两=2)


def criteria_of(request: str) -> tuple[Criterion, ...]:
    """The criteria that follow from the words of `request`; all with a check, all verifiable."""
    return tuple(_derive(request, named_files(request)))


def _derive(request: str, files: NamedFiles) -> Iterator[Criterion]:
    for path in files.outputs:
        yield _verifiable(f"{path} exists", FileExists(path=path))
        if path.lower().endswith(".json"):
            command = f"python3 -m json.tool {_shell_quoted(path)}"
            yield _verifiable(f"{path} is valid JSON", CommandSucceeds(command=command))
    decimals = _DECIMALS.search(request)
    digits = _number(decimals["n"] or decimals["n2"] or decimals["zh"]) if decimals else 0
    if len(files.outputs) == 1:
        yield from _line_criteria(request, files.outputs[0])
        if digits:
            yield _decimals_in(files.outputs[0], digits, per_line=_PER_LINE.search(request) is not None)
    if files.outputs:
        return
    for kind, asked, pattern in _KINDS:
        if asked.search(request):
            yield _verifiable(f"the answer has {kind}", OutputMatches(regex=pattern))
    if digits:
        yield _verifiable(f"the answer has {digits} decimal(s)", OutputMatches(regex=rf"\d\.\d{{{digits}}}(?!\d)"))
    elif _COUNTS.search(request):
        yield _verifiable("the answer contains a number", OutputMatches(regex=r"\d"))
    elif _WHICH_FILE.search(request) and not _HOW_MANY_FILES.search(request):
        yield _verifiable("the answer names a file", OutputMatches(regex=FILE_NAME))
    if _AS_JSON.search(request):
        yield _verifiable("the answer is JSON", OutputIsJson())


def _decimals_in(path: str, digits: int, *, per_line: bool) -> Criterion:
    """Every line a number with so many decimals, where each stands on a line of its own; else one such number."""
    one = rf"[-+]?[\d,]*\d\.\d{{{digits}}}"
    regex = rf"\A(?:[ \t]*{one}[ \t]*\r?\n?)+\s*\Z" if per_line else rf"{one}(?!\d)"
    return _verifiable(f"numbers in {path} have {digits} decimal(s)", FileMatches(path=path, regex=regex))


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


def _verifiable(
    text: str, check: FileExists | FileMatches | CommandSucceeds | OutputMatches | OutputIsJson
) -> Criterion:
    return Criterion(text=text, mode=Mode.VERIFIABLE, check=check)


def _number(word: str) -> int:
    return _NUMBER_WORDS.get(word.lower()) or int(word)


def _shell_quoted(path: str) -> str:
    return "'" + path.replace("'", "'\\''") + "'"
