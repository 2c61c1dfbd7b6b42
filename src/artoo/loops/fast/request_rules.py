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
    r"\b(?:sum|total|average|mean|median|percentage|standard deviation)\b|求和|总和|合计|平均|百分比|总计"
    r"|\bhow (?:many (?:days|weeks|months|years|hours|minutes)|long)\b[^.?!]{0,40}\bbetween\b|相隔|相差",
    re.IGNORECASE,
)
_EXTREME = re.compile(
    r"\b(?:which|who|what|whose)\b[^.?!]{0,80}\b(?:most|fewest|least|highest|lowest|largest|smallest|biggest"
    r"|maximum|minimum|cheapest|longest|shortest|fastest|slowest|oldest|youngest)\b"
    r"|(?:谁|哪|什么|多少)[^。？！]{0,30}最[多少高低大小长短贵]|最[多少高低大小长短贵][^。？！]{0,30}(?:谁|哪|什么|多少)",
    re.IGNORECASE,
)
_COUNT = re.compile(r"\bhow many\b|多少[个条行人]|几[个条行人]", re.IGNORECASE)
_TIME_OR_SIZE = re.compile(
    r"\b(?:changed|modified|edited|updated|touched|written|saved)\s+(?:last|first|most recently)\b"
    r"|\b(?:newest|oldest|latest|most recent(?:ly \w+)?|last (?:changed|modified|edited|updated)"
    r"|largest|biggest|smallest)\s+(?:\w+\s+){0,2}files?\b"
    r"|\bfiles?\b[^.?!]{0,40}\b(?:newest|oldest|most recent(?:ly)?|last (?:changed|modified|edited|updated))\b"
    r"|最(?:近|后|新|早)(?:一次)?(?:修改|更新|改动|编辑)|最(?:大|小|新|旧)的[^。？！]{0,6}文件",
    re.IGNORECASE,
)
_ABOUT_EXISTENCE = re.compile(
    r"\bexists?\b|(?:^|[.!?;:]\s+|\b(?:whether|see if)\s+)(?:is|are)\s+(?:there\b|[^?]{1,80}\bthere\s*\?)"
    r"|\b(?:whether|see if)\s+there\b|\b(?:whether|see if)\b[^?]{1,80}\b(?:is|are) there\b"
    r"|\bwhere (?:is|are)\b|\bfind\b|\blocate\b|存在|有没有|在哪|查找|寻找",
    re.IGNORECASE,
)
_ABOUT_FILES = re.compile(
    r"\bhow many\b[^.?!]{0,40}\b(?:files?|folders?|directories)\b|\b(?:which|what|list|all)\b[^.?!]{0,30}"
    r"\b(?:files?|folders?|director(?:y|ies))\b|\b(?:named|called)\b|文件|目录|名为",
    re.IGNORECASE,
)
"""Such a request may be answered by names of files alone."""
_ABOUT_CONTENT = re.compile(
    r"\b(?:contain|mention|include)\w*\s+(?:the\s+)?(?:exact\s+)?"
    r"(?:text|word|words|string|phrase|line|term|expression|[\"'`“‘「])"
    r"|(?:包含|含有|写着|写有|提到|出现)(?:了)?\s*(?:文字|文本|字符串|单词|字样|一行|[“‘「\"'`])",
    re.IGNORECASE,
)
_ABOUT_NAMES = re.compile(r"\b(?:file)?names?\b[^.?!]{0,40}$|名(?:称|字)?(?:里|中)?[^。？！]{0,10}$", re.IGNORECASE)
_ENDING = re.compile(r"\.[A-Za-z0-9]")
_BARE_ENDING = re.compile(r"(?<![\w*/.])\*?(\.[A-Za-z][A-Za-z0-9]{0,5})\b")
"""An ending that the request names by itself: `.jpg`, `*.txt`."""
_ANY_CASE = re.compile(r"-iname|-iregex|\bnocase|\.lower\(|IGNORECASE|grep\b[^|\n]*\s-\w*i", re.IGNORECASE)


def uncomputed(intent: str, calls: Sequence[ToolCall], *, small_model: bool = False) -> Finding | None:
    """A sum or an average that no program computed: reading a file is not adding it up.

    Neither do names of files say which is the newest or the largest. A `small_model` does not find the largest of
    many by looking at them, or what is in one file and not in another; a strong one may.
    """
    if not calls or any(call.tool not in pointed.LOOKING and call.status is CallStatus.OK for call in calls):
        return None
    if _TIME_OR_SIZE.search(intent):
        message = "which one it is a program has to find that looks at times or sizes; names do not say"
    elif _COMPUTED.search(intent) or (small_model and (_EXTREME.search(intent) or _counts_things(intent))):
        message = "the figure has to be computed by a program (python or shell), but none ran well"
    elif small_model and len(named_files(intent).inputs) > 1:
        message = "what takes several files together a program has to compute (python or shell), but none ran well"
    else:
        return None
    identities = tuple(dict.fromkeys(identity for call in calls for identity in call.identity))
    return Finding(UNCOMPUTED, message, FailureClass.LOGICAL, identities, contradicts=False)


def _counts_things(intent: str) -> bool:
    """Whether things in files are to be counted, and not files: those a list of names counts."""
    files = _ABOUT_FILES.search(intent) is not None or _BARE_ENDING.search(intent) is not None
    return not files and _COUNT.search(intent) is not None


_ASKS_WHERE = re.compile(
    r"\b(?:which|what) (?:\w+ ){0,2}files?\b|\bwhere\b|\bhow (?:often|many times)\b"
    r"|\b(?:contain|mention|include|occur)|\b(?:find|search|look) for\b|\blines? (?:that|which|with)\b"
    r"|哪[个些]?文件|哪里|哪儿|在哪|出现|包含|提到|搜索|查找",
    re.IGNORECASE,
)


def shown_only(intent: str, output: str, calls: Sequence[ToolCall]) -> Finding | None:
    """What a search or a list of names printed, given as the answer to another question. For small models.

    `glob` answers which or how many files there are by name, `find_text` where a phrase of the request occurs.
    """
    last = calls[-1] if calls else None
    if last is None or last.status is not CallStatus.OK or last.output.strip() != output.strip():
        return None
    about_files = _ABOUT_FILES.search(intent) or _BARE_ENDING.search(intent) or _ABOUT_EXISTENCE.search(intent)
    if last.tool in ("glob", "find_files"):
        answers = about_files is not None
    elif last.tool == "find_text":
        phrase = last.target.strip().strip("\"'").casefold()
        answers = phrase in intent.casefold() and _ASKS_WHERE.search(intent) is not None
    else:
        return None
    if answers:
        return None
    message = f"what {last.tool} shows is no answer to the request; find it out with a program (python or shell)"
    return Finding(UNCOMPUTED, message, FailureClass.LOGICAL, last.identity, contradicts=False)


def left_out_endings(intent: str, calls: Sequence[ToolCall]) -> Finding | None:
    """`.jpg or .JPG`, and only `*.jpg` was looked for. What was looked for without an ending had all of them."""
    endings = tuple(dict.fromkeys(_BARE_ENDING.findall(intent)))
    ran = [call for call in calls if call.status is CallStatus.OK]
    if len(endings) < 2 or not ran:
        return None
    text = "\n".join(f"{call.input}\n{call.ran or ''}" for call in ran)
    covered = [ending for ending in endings if _looked_for(ending, text)]
    missed = [ending for ending in endings if ending not in covered]
    if not covered or not missed:
        return None
    together = ".{" + ",".join(ending[1:] for ending in endings) + "}"
    last = ran[-1]
    pattern = last.target.replace(covered[0], together) if last.tool == "glob" else ""
    how = f"use the pattern {pattern}" if pattern else f"look for {' and '.join(endings)} together"
    identities = tuple(dict.fromkeys(identity for call in ran for identity in call.identity))
    message = f"{', '.join(missed)} is named in the request but was not looked for; {how}"
    return Finding("left_out_endings", message, FailureClass.LOGICAL, identities, mendable=True)


def _looked_for(ending: str, text: str) -> bool:
    if re.search(rf"{re.escape(ending)}(?![A-Za-z0-9])", text):
        return True
    alternatives = re.search(rf"[{{(|,.]{re.escape(ending[1:])}[}})|,\"']", text) is not None
    either_case = "".join(f"[{one.lower()}{one.upper()}]" for one in ending[1:])
    ignoring = _ANY_CASE.search(text) is not None and ending.lower() in text.lower()
    return alternatives or either_case in text or ignoring


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

    A call deals with a file when its input, what it ran or what it printed names it, or a pattern in it fits; one
    that only lists names does when the request is about files, and not about what is in this one.
    `points_to` as Surroundings found them: reading the file that a named file names deals with both, and a request
    that is about the other file wants that one read.
    """
    ran = [call for call in calls if call.status is CallStatus.OK]
    if not ran or _ABOUT_EXISTENCE.search(intent):
        return None
    followed = {name for name, path in points_to if any(pointed.looks_into(call, name, path) for call in ran)}
    missed = [name for name in named_files(intent).inputs if name not in followed]
    readers = ran if _ABOUT_FILES.search(intent) else [call for call in ran if not _sees_names(call)]
    unread = [name for name in missed if not any(_deals_with(call, name) for call in readers)]
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


def _sees_names(call: ToolCall) -> bool:
    return pointed.SEEING_NAMES.issuperset(call.identity)


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
