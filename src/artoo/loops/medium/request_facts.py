"""What code can read in a request without a model: language, deadline, scope, correction.

Deliberately narrow: each pattern either reads a fact exactly or recognises that one is there (`hinted`), and
then the perceiver asks a model. Nothing is guessed.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import datetime, timedelta

_CJK = re.compile(r"[\u3400-\u9fff\uf900-\ufaff]")
_WORD = re.compile(r"[A-Za-z]{2,}")

_SECONDS = {
    "second": 1,
    "sec": 1,
    "秒": 1,
    "秒钟": 1,
    "minute": 60,
    "min": 60,
    "分钟": 60,
    "hour": 3_600,
    "小时": 3_600,
}
_WITHIN = re.compile(
    r"(?:\bwithin (?:the next )?|\bin at most |\bin under )(?P<n>\d+)\s*(?P<unit>second|sec|minute|min|hour)s?\b"
    r"|(?P<n_zh>\d+)\s*(?P<unit_zh>秒钟|秒|分钟|小时)(?:之内|以内|内)",
    re.IGNORECASE,
)
_ISO_DEADLINE = re.compile(
    r"(?:\b(?:by|before|until|no later than|deadline:?)\s+|截止(?:到|于)?\s*|在\s*)"
    r"(?P<iso>\d{4}-\d{2}-\d{2}(?:[T ]\d{2}:\d{2}(?::\d{2})?)?(?:Z|[+-]\d{2}:\d{2})?)(?P<zh>\s*(?:之前|以前|前))?",
    re.IGNORECASE,
)
_DEADLINE_HINT = re.compile(
    r"\bdeadline\b|\bno later than\b|\basap by\b"
    r"|\b(?:by|before|until)\s+(?:(?:mon|tues|wednes|thurs|fri|satur|sun)day|tomorrow|tonight|noon|midnight"
    r"|end of (?:the )?(?:day|week)|\d{1,2}(?::\d{2})?\s*(?:am|pm|o'clock)|\d{1,2}:\d{2})\b"
    r"|截止|(?:今天|明天|今晚|下午|上午|周[一二三四五六日天]|星期[一二三四五六日天])[^，。,.]{0,6}(?:之前|以前|前)",
    re.IGNORECASE,
)
_SCOPE = re.compile(
    r"\bonly (?:in|under|inside|within) (?:the )?(?:(?:folder|directory|file) )?"
    r"[\"'`]?(?P<path>[\w./~-]*[\w/])[\"'`]?(?: (?:folder|directory))?"
    r"|(?:只在|仅在|只限于|仅限于)\s*[\"'“‘`]?(?P<path_zh>[\w./~-]+?)[\"'”’`]?\s*(?:目录|文件夹|文件|里|中|下)",
    re.IGNORECASE,
)
_SCOPE_HINT = re.compile(r"\b(?:limited|restricted) to\b|只在|仅在|只限于|仅限于", re.IGNORECASE)
_CORRECTION = re.compile(
    r"^\s*(?:no,?\s+)?(?:that(?:'s| is| was)\s+|this is\s+|it(?:'s| is| was)\s+)?"
    r"(?:wrong|incorrect|not (?:right|correct|true)|false)\b"
    r"|^\s*(?:no[,.! ]+)?(?:you(?:'re| are| were)|the (?:last |previous )?(?:result|answer) (?:is|was))"
    r" (?:wrong|incorrect)"
    r"|^\s*(?:不对|错了|不正确|答案(?:是)?错|结果(?:是)?(?:错|不对)|你(?:搞|弄|算|说)?错了)",
    re.IGNORECASE,
)


@dataclass(frozen=True, slots=True)
class RequestFacts:
    """`hinted`: the text speaks of a deadline or a scope that code could not read."""

    language: str
    deadline: datetime | None = None
    scope: str | None = None
    corrects: bool = False
    hinted: bool = False


def language_of(text: str) -> str:
    """ "zh" when Chinese characters carry the sentence, else "en". Names and paths in Latin do not outvote them."""
    chinese = len(_CJK.findall(text))
    return "zh" if chinese and chinese * 2 >= len(_WORD.findall(text)) else "en"


def read_request(text: str, now: datetime) -> RequestFacts:
    """Facts of `text`. `now` is aware; a deadline without a zone is in its zone."""
    deadline = _deadline(text, now)
    scope = _scope(text)
    hinted = (deadline is None and bool(_DEADLINE_HINT.search(text))) or (
        scope is None and bool(_SCOPE_HINT.search(text))
    )
    return RequestFacts(
        language=language_of(text),
        deadline=deadline,
        scope=scope,
        corrects=bool(_CORRECTION.search(text)),
        hinted=hinted,
    )


def _deadline(text: str, now: datetime) -> datetime | None:
    if match := _WITHIN.search(text):
        number = int(match["n"] or match["n_zh"])
        unit = (match["unit"] or match["unit_zh"]).lower()
        return now + timedelta(seconds=min(number * _SECONDS[unit], 366 * 86_400))
    if match := _ISO_DEADLINE.search(text):
        if text[match.start()] == "在" and not match["zh"]:
            return None
        return parse_deadline(match["iso"], now)
    return None


def parse_deadline(text: str | None, now: datetime) -> datetime | None:
    """An ISO 8601 time as an aware datetime; a bare date means the end of that day; None when it is none."""
    if not text:
        return None
    try:
        moment = datetime.fromisoformat(text.strip())
    except ValueError:
        return None
    if len(text.strip()) == len("2026-01-01"):
        moment = moment.replace(hour=23, minute=59, second=59)
    return moment if moment.tzinfo else moment.replace(tzinfo=now.tzinfo)


def _scope(text: str) -> str | None:
    match = _SCOPE.search(text)
    return (match["path"] or match["path_zh"]) if match else None
