"""Which of the patterns that a planner drafts may stay: those that an answer can be expected to match.

A small planner likes to invent the wording of the answer (`sum of numbers in a.txt: (.+)`) or its shape
(`^[0-9]+$`). Nobody tells the executor, a right answer fails, and a criterion once taken stands for the whole task.
So a pattern stays only when the words that it demands, and nothing around a figure, are what somebody asks of the
answer. What the request itself demands is made by code (`request_criteria`) and never comes through here.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from artoo.contracts.criteria import Criterion, OutputMatches
from artoo.loops.medium.pattern_demands import Demand, demands
from artoo.loops.medium.plan_draft import PlanDraft

_SENTENCE_END = re.compile(r"(?<=[.?!;])\s+|[。？！；\n]")
_QUOTED = re.compile(r"(?<![A-Za-z0-9])[\"'`“‘「]([^\"'`“”‘’「」\n]{1,120})[\"'`”’」]")
_TELLS = re.compile(
    r"\b(?:say|answer|reply|respond|print|output|return|report|show|display|echo|label|end|start|begin)(?:s|ed|ing)?\b"
    r"|\bprefix(?:ed|es)?\b|\b(?:form|format)\b"
    r"|\b(?:answer|output|result|reply|response)\b[^.?!]{0,30}\b(?:contain|include|mention|have|has|be|is)\b"
    r"|回答|答复|回复|输出|打印|显示|返回|格式|形式|形如|开头|结尾|注明",
    re.IGNORECASE,
)
"""Words that speak of what the answer is to say; what is quoted after them, it is to say."""
_CLAIMS = re.compile(
    rf"{_TELLS.pattern}|\b(?:contain|include|mention)(?:s|ed|ing)?\b|包含|包括|含有", re.IGNORECASE
)
"""The same in the text of a criterion, which speaks of the answer anyway."""
_SAID = re.compile(
    r"(?i:\b(?:say|answer|reply|respond)\s+(?:(?:only|just|simply|exactly|with|either)\s+)*"
    r"(?!(?:the|a|an|how|what|which|where|when|why|who|whether|if|in|on|to|for|my|this|that|these|those|as|by|is"
    r"|all|each|me|it)\b)(\w+(?:[ ,/]+\w+){0,3}))"
    r"|(?:回答|答复|回复)(?:说)?[:：]?\s*(?![我一这以下问多几什哪])([\u3400-\u9fff]{1,8})"
    r"|\b(?:(?i:print|say|answer|reply|respond|output|echo|return)(?i:\s+with)?)\s+([A-Z][A-Z0-9_]+)\b",
)
_FORM = re.compile(
    r"\bin (?:the|this) (?:form|format)\b|\bformat(?:ted)?(?: as\b|:)|格式(?:为|是|：|:)|形如", re.IGNORECASE
)
_BARE = re.compile(
    r"\b(?:only|just|solely|nothing but)\s+(?:with\s+)?(?:(?:the|a|one)\s+)?(?:\w+\s+)?"
    r"(?:number|figure|digits?|value|integer|name|answer|result)\b"
    r"|\b(?:number|figure|value|integer|name)\s+(?:only|alone)\b|\bnothing else\b|\band nothing more\b"
    r"|(?:只|仅)(?:要|需|需要|能|用)?(?:输出|回答|给出|打印|返回|显示|写|要)|不要(?:其他|别的|任何)",
    re.IGNORECASE,
)
_WORD = re.compile(r"[^\W_]+")
_FORM_LENGTH = 120


def kept(draft: PlanDraft, request: str) -> tuple[PlanDraft, tuple[str, ...]]:
    """The draft without the patterns that cannot stay, and what was left out, each with the reason."""
    told = (request, *(text for each in draft.subtasks for text in (each.intent, each.context)))
    left_out: dict[str, None] = {}

    def staying(criteria: Sequence[Criterion]) -> tuple[Criterion, ...]:
        reasons = [unasked(each, told) for each in criteria]
        pairs = list(zip(criteria, reasons, strict=True))
        left_out.update((f"{each.text}: {reason}", None) for each, reason in pairs if reason is not None)
        return tuple(each for each, reason in pairs if reason is None)

    task_criteria = staying(draft.task_criteria)
    subtasks = tuple(
        each.model_copy(update={"success_criteria": staying(each.success_criteria)}) for each in draft.subtasks
    )
    if not left_out:
        return draft, ()
    return draft.model_copy(update={"task_criteria": task_criteria, "subtasks": subtasks}), tuple(left_out)


def unasked(criterion: Criterion, told: Sequence[str]) -> str | None:
    """Why a drafted criterion cannot stay; None when it may. `told`: the texts that an executor gets to see."""
    if not isinstance(criterion.check, OutputMatches):
        return None
    pattern = criterion.check.regex
    if not _readable(pattern):
        return f"{pattern!r} is no regular expression"
    asked = _asked_for(criterion.text, told)
    ways = demands(pattern)
    if any(_expected(way, asked, told) for way in ways):
        return None
    words = dict.fromkeys(word for way in ways for word in _invented(way, asked, told))
    if words:
        return f"nothing asks the answer for {', '.join(words)} ({pattern!r})"
    return f"nothing asks for that and nothing else ({pattern!r})"


def _expected(way: Demand, asked: str, told: Sequence[str]) -> bool:
    if _invented(way, asked, told):
        return False
    worded = any(_WORD.search(run) for run in way.runs)
    return not way.bare or worded or any(_BARE.search(text) for text in told)


def _invented(way: Demand, asked: str, told: Sequence[str]) -> list[str]:
    """Words of the pattern that nobody asks the answer for; the ending of a kind of file that is named is none."""
    return [
        word
        for run in way.runs
        for match in _WORD.finditer(run)
        if (word := match.group().casefold()) not in asked
        and not (run[: match.start()].endswith(".") and any(f".{word}" in text.casefold() for text in told))
    ]


def _asked_for(claim: str, told: Sequence[str]) -> str:
    """What the answer is to say, by the words of the request and of the criterion itself; in lower case."""
    parts = [part for text in told for part in _dictated(text, _TELLS)]
    return "\n".join((*parts, *_dictated(claim, _CLAIMS, quoted_only=True))).casefold()


def _dictated(text: str, cue: re.Pattern[str], *, quoted_only: bool = False) -> list[str]:
    parts: list[str] = []
    for sentence in _SENTENCE_END.split(text):
        cued = cue.search(sentence)
        if cued is None:
            continue
        parts += _QUOTED.findall(sentence, cued.end())
        if quoted_only:
            continue
        parts += [part for match in _SAID.finditer(sentence) for part in match.groups() if part]
        form = _FORM.search(sentence)
        parts += [sentence[form.end() : form.end() + _FORM_LENGTH]] if form else []
    return parts


def _readable(pattern: str) -> bool:
    import regex

    try:
        regex.compile(pattern)
    except (regex.error, RecursionError, OverflowError):
        return False
    return True
