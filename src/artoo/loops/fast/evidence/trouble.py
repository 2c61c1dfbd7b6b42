"""What tools say when something went wrong: recognised in their own words, never in a model's."""

from __future__ import annotations

import re
from collections.abc import Iterable
from enum import StrEnum

from artoo.contracts.execution import CallStatus, FailureClass, ToolCall


class Cause(StrEnum):
    """Why something failed, as far as an error text or a claim names it."""

    ABSENT = "absent"
    PERMISSION = "permission"
    NETWORK = "network"
    TIME = "time"
    SPACE = "space"
    MEMORY = "memory"
    DECLINED = "declined"
    COMMAND_MISSING = "command_missing"


_CAUSES: tuple[tuple[Cause, re.Pattern[str]], ...] = (
    (
        Cause.COMMAND_MISSING,
        re.compile(r"command not found|not recognized as|: not found$|未找到命令", re.I | re.M),
    ),
    (
        Cause.DECLINED,
        re.compile(
            r"\b(declined|den(?:y|ied) by (?:the )?(?:user|person|operator|policy)|you (?:said no|denied|refused)"
            r"|(?:user|person|operator|you) (?:has |have )?(?:declined|denied|refused|rejected|said no)"
            r"|not confirmed|no confirmation|without (?:a |your )?confirmation|withheld)\b"
            r"|拒绝了?确认|用户(?:已)?拒绝|(?:你|您)拒绝|未(?:获|经|得到)(?:您的?|你的?|用户)?(?:确认|同意|批准)|没有(?:同意|确认|批准)",
            re.I,
        ),
    ),
    (
        Cause.ABSENT,
        re.compile(
            r"no such (?:file|directory|host|table|column|device)|(?:does|do|did) ?n[o']t exist|not exist\b"
            r"|\b(?:file|path|directory|module|key)[ \w'\"./-]{0,60} not found\b|FileNotFound|ModuleNotFound|ENOENT"
            r"|cannot find (?:the )?(?:file|path)|is missing\b|不存在|没有那个文件|找不到",
            re.I,
        ),
    ),
    (
        Cause.PERMISSION,
        re.compile(
            r"permission(?:s)? (?:was |were )?denied|PermissionError|EACCES|operation not permitted|not permitted"
            r"|access (?:is |was )?denied|read-only file ?system|not allowed|unauthori[sz]ed|forbidden"
            r"|\b40[13]\b|must be root|superuser|lacks? permission|no permission|权限|无权|只读",
            re.I,
        ),
    ),
    (
        Cause.NETWORK,
        re.compile(
            r"connection (?:was )?(?:refused|reset|closed|timed out)|could ?n[o']t resolve|could not resolve"
            r"|name or service not known|temporary failure in name|network (?:is )?unreachable|no route to host"
            r"|host (?:is )?(?:down|unreachable)|\boffline\b|ECONN\w+|ENOTFOUND|no network|network error"
            r"|连接(?:被拒|失败|超时|重置)|网络|无法解析",
            re.I,
        ),
    ),
    (
        Cause.SPACE,
        re.compile(r"no space left|disk (?:is )?full|ENOSPC|quota exceeded|磁盘(?:已)?满|空间不足", re.I),
    ),
    (Cause.MEMORY, re.compile(r"out of memory|MemoryError|cannot allocate|OOM|内存不足", re.I)),
    (Cause.TIME, re.compile(r"tim(?:ed|e)[ -]?out|deadline exceeded|took too long|超时", re.I)),
)

_ENVIRONMENT = frozenset({*Cause} - {Cause.COMMAND_MISSING})

_OWN_ABSENCE = "there is no "
"""How artoo's own file tools begin when a path is not there."""

_HARMLESS = re.compile(
    r"\b(?:0|no|zero|without(?: any)?)\s+(?:\w+\s+)?(?:errors?|failures?|failed|fail|warnings?|problems?)\b"
    r"|\b(?:errors?|failures?|failed|fail|skipped)\s*[:=]\s*0\b|\berror-free\b|\b0\s+(?:个)?(?:错误|失败)|没有错误|无错误"
    r"|\"?(?:error|err)s?\"?\s*[:=]\s*(?:null|none|false|\"\"|\[\]|\{\}|0\b)",
    re.I,
)
_WARNING = re.compile(
    r"^\s*(?:\S+:\s*)?(?:warn(?:ing)?|note|info|hint|debug|notice|npm WARN|警告|提示)\b[\s:\]]*", re.I
)

_TROUBLE = re.compile(
    r"^\W*(?:\w+[\w.-]*[:\s]\s*)?(?:error|fatal|panic|exception|critical|failed|failure"
    r"|abort(?:ed|ing)?|ERR!?)\b\s*[:!\[(]"
    r"|^\W*(?:error|fatal|failed|failure|aborted)\b"
    r"|\bnpm ERR!|^\s*Traceback \(most recent|^\s*\w*(?:Error|Exception)\b(?:$|:)|\[(?:ERROR"
    r"|FATAL|FAIL(?:ED)?)\]|^E:\s"
    r"|^\s*(?:\w+:\s+)?[\w./~-]+: .{0,200}?(?:no such|cannot|can't|could ?n[o']t|unable"
    r"|denied|not found|not permitted"
    r"|failed|refused|invalid|missing|no space|read-only|unreachable|timed out|is a directory|not a directory"
    r"|does not exist|unrecogni[sz]ed|unknown option|illegal|usage:|syntax error|unexpected"
    r"|not empty|already exists)"
    r"|\*\*\* .*\bError \d|no such file or directory|permission denied|command not found"
    r"|operation not permitted|connection refused"
    r"|could not resolve|no space left on device|segmentation fault|core dumped|^\s*killed\s*$|out of memory"
    r"|\b(?:has |have |was |were )?timed out\b|\brolled back\b|\[(?:remote )?rejected\]"
    r"|\b[1-9]\d*\s+(?:\w+\s+)?(?:failed|failures?|errors?|error\(s\)|failing)\b"
    r"|\b(?:failed|failures?|errors?|failing)\s*[:=]\s*[1-9]"
    r"|\bHTTP/[\d.]+ [45]\d\d|\b(?:HTTP|status)(?: code| error)?[:=\s\"]+[45]\d\d\b"
    r"|\b[45]\d\d (?:Forbidden|Not Found|Unauthorized|Internal Server Error|Bad Gateway|Bad Request|Conflict"
    r"|Service Unavailable|Gateway Time-?out|Too Many Requests)"
    r"|\"(?:error|errors)\"\s*:|\"(?:ok|success)\"\s*:\s*false|\"(?:status|result)\"\s*:\s*\"(?:error"
    r"|fail(?:ed|ure)?)\""
    r"|\bis_?error\"?\s*[:=]\s*true"
    r"|\b(?:BUILD |TESTS? )?FAILED\b|\bexit(?:ed)?(?: with)?(?: code| status)\s*[:=]?\s*[1-9]"
    r"|\b(?:was|were|is|are|has|have)(?: been)? (?:not|denied|rejected|refused|aborted|cancell?ed)\b"
    r"|\b(?:deployment|deploy|build|upload|install(?:ation)?|migration|push|backup|transfer"
    r"|delivery) (?:has )?failed\b"
    r"|\bnot (?:sent|delivered|deployed|installed|uploaded|saved|written|applied|completed)\b"
    r"|错误[:：]|失败|无法|被拒绝|不存在|没有那个文件|权限不够|超时",
    re.I,
)
_FRACTION = re.compile(r"(?<![\d./:-])(\d{1,6})\s*(?:/|of|out of|共)\s*(\d{1,6})(?![\d./:-])", re.I)
_AT_WORK = re.compile(
    r"\b\w{3,}(?:ed|ing)\b|\b(?:sent|step|progress|done|complete|built|copy|upload)\b"
    r"|完成|已|进度|^\W*\d+\s?/\s?\d+\W*$",
    re.I,
)
_BRACKET_PERCENT = re.compile(r"\[\s*(\d{1,3})\s?%\s*\]|(?:progress|completed?|进度)\D{0,4}(\d{1,3})\s?%", re.I)


def causes_in(text: str) -> frozenset[Cause]:
    """Every cause that a text names."""
    return frozenset(cause for cause, pattern in _CAUSES if pattern.search(text))


def failure_class(text: str) -> FailureClass:
    """Environmental when the text says that the world lacked something; logical otherwise."""
    return FailureClass.ENVIRONMENTAL if causes_in(text) & _ENVIRONMENT else FailureClass.LOGICAL


def failure_class_of(call: ToolCall) -> FailureClass:
    """The class of one failed call: timeouts, a no, missing inputs, permission, network are the world's."""
    if call.status in (CallStatus.TIMEOUT, CallStatus.INTERRUPTED):
        return FailureClass.ENVIRONMENTAL
    if call.status is CallStatus.ERROR and (call.reason or "").startswith(_OWN_ABSENCE):
        return FailureClass.ENVIRONMENTAL
    return failure_class("\n".join((call.reason or "", call.error_output, call.output)))


def trouble_lines(text: str) -> tuple[str, ...]:
    """The lines of a tool's output in which it reports an error (warnings and `0 errors` are none)."""
    return tuple(_troubled(text.splitlines()))


def _troubled(lines: Iterable[str]) -> Iterable[str]:
    for line in lines:
        bare = _HARMLESS.sub(" ", line[:2_000])
        if bare.strip() and not _WARNING.match(bare) and _TROUBLE.search(bare):
            yield line.strip()


def unfinished(text: str) -> str | None:
    """The last progress figure of an output when it stops short (`3/5`, `[ 40%]`), else None."""
    percents = list(_BRACKET_PERCENT.finditer(text))
    if percents and int(percents[-1][1] or percents[-1][2]) < 100:
        return percents[-1][0].strip()
    working = "\n".join(line for line in text.splitlines() if _AT_WORK.search(line))
    fractions = [match for match in _FRACTION.finditer(working) if int(match[2]) > 0]
    if fractions and int(fractions[-1][1]) < int(fractions[-1][2]):
        return fractions[-1][0]
    return None
