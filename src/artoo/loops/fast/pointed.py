"""Files that name another file, held against a request that is about the other file.

latest.txt says mar.txt, the request asks for the sum in "that file", and a program added up apr.txt
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from fnmatch import fnmatch
from pathlib import PurePosixPath

from artoo.contracts.execution import CallStatus, ToolCall

Pointer = tuple[str, str]
"""A file that the request names, and the file that it names."""

_HOLDS_A_NAME = re.compile(
    r"\b(?:contains?|containing|holds?|holding|has|gives?|says?|states?|stores?|tells?|with)\b[^.?!]{0,30}"
    r"\b(?:name|path|filename|location)s?\b[^.?!]{0,10}\bof\b[^.?!]{0,30}\bfile\b",
    re.IGNORECASE,
)
_THAT_FILE = re.compile(
    r"\b(?:that|the (?:named|latter))\s+(?:[\w-]+\s+){0,2}file\b(?!['’]?s?\s+(?:name|path))", re.IGNORECASE
)
_HOLDS_A_NAME_ZH = re.compile(r"名字|名称|文件名|路径")
_THAT_FILE_ZH = re.compile(r"(?:那个|该|此|所指的?|对应的?)[\u3400-\u9fff]{0,4}文件(?!的?(?:名|路径))")
_PHRASES = (
    r"\bfile\s+(?:(?:that|which)\s+is\s+)?(?:named|mentioned|given|specified|referenced)"
    r"\s+(?:in|by)\s+(?:the\s+file\s+)?{name}",
    r"\bfile\s+whose\s+(?:name|path)\s+is\s+(?:(?:given|written|stored)\s+)?in\s+(?:the\s+file\s+)?{name}",
    r"\bfile\s+(?:(?:that|which)\s+)?(?:the\s+file\s+)?{name}\s+(?:names|points\s+(?:to|at)|refers\s+to)\b",
    r"{name}\s*(?:文件)?[里中内]?所?(?:写|指向|指定|记录|提到|记载)[着了]?的[^。？！，]{{0,8}}文件(?!的?(?:名|路径))",
)
LOOKING = frozenset({"find_files", "find_text", "glob", "read_file", "write_file", "search"})
"""Tools that show what is there and compute nothing."""
SEEING_NAMES = frozenset({"glob", "find_files", "shell:find", "shell:fd", "shell:ls", "shell:locate"})
"""Identities that list files without looking into them."""
PATTERN = re.compile(r"[\w./~-]*[*?\[][\w./*?\[\]~-]*")
_OPENS = re.compile(
    r"\b(?:open|Path|read_text|read_csv|loadtxt|genfromtxt|input|run|check_output|system|popen|glob|listdir)\s*\("
)
_SUBSTITUTES = re.compile(r"\$\(|`|\bxargs\b|\bwhile\b|\$\{?[A-Za-z_]")


def asks_what_is_named(intent: str, pointer: str) -> bool:
    """Whether a request is, beyond doubt, about the file that `pointer` names and not about `pointer` itself."""
    for holds, that in ((_HOLDS_A_NAME, _THAT_FILE), (_HOLDS_A_NAME_ZH, _THAT_FILE_ZH)):
        found = holds.search(intent)
        if found is not None and that.search(intent, found.end()):
            return True
    name = re.escape(pointer)
    return any(re.search(phrase.format(name=name), intent, re.IGNORECASE) for phrase in _PHRASES)


def follows(call: ToolCall, pointer: str) -> bool:
    """Whether a program may have read the name from `pointer` and gone on to what it names."""
    if call.tool in LOOKING or _base(pointer) not in call.input:
        return False
    return len(_OPENS.findall(call.input)) > 1 or _SUBSTITUTES.search(call.input) is not None


def looks_into(call: ToolCall, pointer: str, target: str) -> bool:
    """Whether a call dealt with `target`, the file that `pointer` names, other than by its name alone."""
    if call.status is not CallStatus.OK or SEEING_NAMES.issuperset(call.identity):
        return False
    if call.tool == "find_text" and _base(target) in call.input:
        return False  # its name was searched for as a text
    text = f"{call.input}\n{call.target}\n{call.ran or ''}"
    base = _base(target)
    if base in text or any(fnmatch(base, _base(word)) for word in PATTERN.findall(text)):
        return True
    return base in call.output and _base(pointer) not in f"{text}\n{call.output}"


def unread(intent: str, calls: Sequence[ToolCall], points_to: Sequence[Pointer]) -> Pointer | None:
    """The pointer whose file the request is about and no call looked into; None when there is none, or in doubt."""
    names = [name for name, _ in points_to]
    for name, target in points_to:
        if names.count(name) > 1 or not asks_what_is_named(intent, name):
            continue
        if not any(looks_into(call, name, target) or follows(call, name) for call in calls):
            return name, target
    return None


def _base(path: str) -> str:
    return PurePosixPath(path.strip()).name
