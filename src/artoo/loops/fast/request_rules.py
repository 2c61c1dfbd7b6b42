"""Evidence held against the request: did the calls deal with what was asked about at all?

Rules that need the request's own words, in code, before any claim is believed: a figure that has to be computed
must come from a program, a named file must have been read, and nothing can be said about one that does not exist.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from fnmatch import fnmatch
from pathlib import PurePosixPath

from artoo.contracts.execution import CallStatus, FailureClass, ToolCall
from artoo.loops.fast import pointed
from artoo.loops.fast.evidence import Finding
from artoo.loops.named_files import named_files

UNCOMPUTED = "uncomputed"
"""The rule whose remedy is a program."""

_COMPUTED = re.compile(
    r"\b(?:sum|total|average|mean|median|percentage|standard deviation)\b|求和|总和|合计|平均|百分比|总计",
    re.IGNORECASE,
)
_ABOUT_EXISTENCE = re.compile(
    r"\bexists?\b|\b(?:is|are)\b[^?]{1,80}\bthere\b|\bwhere (?:is|are)\b|\bfind\b"
    r"|\blocate\b|存在|有没有|在哪|查找|寻找",
    re.IGNORECASE,
)
_ABOUT_CONTENT = re.compile(
    r"\b(?:contain|mention|include)\w*\s+(?:the\s+)?(?:exact\s+)?"
    r"(?:text|word|words|string|phrase|line|term|expression|[\"'`“‘「])"
    r"|(?:包含|含有|写着|写有|提到|出现)(?:了)?\s*(?:文字|文本|字符串|单词|字样|一行|[“‘「\"'`])",
    re.IGNORECASE,
)
_ABOUT_NAMES = re.compile(r"\b(?:file)?names?\b[^.?!]{0,40}$|名(?:称|字)?(?:里|中)?[^。？！]{0,10}$", re.IGNORECASE)
_ENDING = re.compile(r"\.[A-Za-z0-9]")


def uncomputed(intent: str, calls: Sequence[ToolCall]) -> Finding | None:
    """A sum or an average that no program computed: reading a file is not adding it up."""
    if not calls or not _COMPUTED.search(intent):
        return None
    if any(call.tool not in pointed.LOOKING and call.status is CallStatus.OK for call in calls):
        return None
    identities = tuple(dict.fromkeys(identity for call in calls for identity in call.identity))
    return Finding(
        UNCOMPUTED,
        "the figure has to be computed by a program (python or shell), but none ran well",
        FailureClass.LOGICAL,
        identities,
        contradicts=False,
    )


def names_only(intent: str, calls: Sequence[ToolCall]) -> Finding | None:
    """A request about what files contain, answered from their names: a list of files is no search in them."""
    asked = _ABOUT_CONTENT.search(intent)
    ran = [call for call in calls if call.status is CallStatus.OK]
    if asked is None or not ran or _ABOUT_NAMES.search(intent[: asked.start()]):
        return None
    identities = tuple(dict.fromkeys(identity for call in ran for identity in call.identity))
    if not pointed.SEEING_NAMES.issuperset(identities):
        return None
    message = "the request is about what files contain, but only their names were looked at; search their text"
    return Finding("names_only", message, FailureClass.LOGICAL, identities)


def may_name_files(intent: str) -> bool:
    """False when nothing in the request looks like a file's name, so that nobody need look for files."""
    return _ENDING.search(intent) is not None


def absent_inputs(intent: str, missing: Sequence[str], calls: Sequence[ToolCall]) -> Finding | None:
    """Files that the request takes to exist and that are nowhere; `missing` as Surroundings found them.

    A call that did find one clears it. A request that asks whether or where something exists may well be
    answered by its absence.
    """
    if _ABOUT_EXISTENCE.search(intent):
        return None
    gone = [name for name in missing if not any(_shows(call, name) for call in calls)]
    if not gone:
        return None
    return Finding(
        "absent_input",
        f"{', '.join(gone)} does not exist",
        FailureClass.ENVIRONMENTAL,
        contradicts=True,
    )


def unread_input(
    intent: str, calls: Sequence[ToolCall], points_to: Sequence[pointed.Pointer] = ()
) -> Finding | None:
    """A file that the request names and that no call dealt with: an answer from another file is no answer.

    A call deals with a file when its input, what it ran or what it printed names it, or a pattern in it fits.
    `points_to` as Surroundings found them: reading the file that a named file names deals with both, and a request
    that is about the other file wants that one read.
    """
    ran = [call for call in calls if call.status is CallStatus.OK]
    if not ran or _ABOUT_EXISTENCE.search(intent):
        return None
    followed = {name for name, path in points_to if any(pointed.looks_into(call, name, path) for call in ran)}
    missed = [name for name in named_files(intent).inputs if name not in followed]
    unread = [name for name in missed if not any(_deals_with(call, name) for call in ran)]
    unseen = pointed.unread(intent, ran, points_to)
    if unseen is not None:
        message = f"{unseen[0]} names {unseen[1]}, which was not read; read {unseen[1]}"
    elif unread:
        message = f"{', '.join(unread)} is named in the request but was not read; read it first"
    else:
        return None
    identities = tuple(dict.fromkeys(identity for call in ran for identity in call.identity))
    return Finding("unread_input", message, FailureClass.LOGICAL, identities, mendable=True)


def elsewhere(directories: Sequence[str], calls: Sequence[ToolCall]) -> Finding | None:
    """A directory that the request names and that no call went to: what lies around it is another question.

    What a call printed does not count here, for a search of everything prints that directory's files too.
    """
    ran = [call for call in calls if call.status is CallStatus.OK]
    if not ran:
        return None
    missed = [name for name in directories if not any(_goes_to(call, name) for call in ran)]
    if not missed:
        return None
    identities = tuple(dict.fromkeys(identity for call in ran for identity in call.identity))
    pattern = next((call.target for call in reversed(ran) if call.tool == "glob" and "/" not in call.target), None)
    instead = f"use the pattern {missed[0]}/{pattern}" if pattern else f"name {missed[0]}/ in it"
    message = f"the request is about {', '.join(missed)}/ but the call looked elsewhere; {instead}"
    return Finding("elsewhere", message, FailureClass.LOGICAL, identities, mendable=True)


def _goes_to(call: ToolCall, directory: str) -> bool:
    last = re.escape(PurePosixPath(directory).name)
    text = f"{call.input}\n{call.target}\n{call.ran or ''}"
    return re.search(rf"(?<![\w-]){last}(?![\w-])", text) is not None


def _deals_with(call: ToolCall, name: str) -> bool:
    base = PurePosixPath(name).name
    by_name = PurePosixPath(call.input.strip()).name == base
    if by_name and (call.tool == "find_text" or call.result_count == 0):
        return False  # the name was searched for, as a text or in vain; the file was not read
    text = f"{call.input}\n{call.target}\n{call.ran or ''}\n{call.output}"
    return base in text or any(fnmatch(base, PurePosixPath(word).name) for word in pointed.PATTERN.findall(text))


def _shows(call: ToolCall, name: str) -> bool:
    """Whether a call saw the file, or itself moved or removed it."""
    wanted = PurePosixPath(name).name
    if any(PurePosixPath(path).name == wanted for path in call.changes):
        return True
    return call.status is CallStatus.OK and call.result_count != 0 and wanted in call.output
