"""Caches of compiled Python, and of tools: what they are is decided by what is in them, not by their names.

| a file in `__pycache__` | becomes |
|---|---|
| what its source compiles to, with the header of that source | silent |
| Python would run it in place of its source, and it is something else | foreign code: asked |
| Python would not run it (stale, no source), or it cannot be checked (another Python, a tool's own) | left out |

A cache of a tool that the task itself has made, marked as one, is left out whole.

What is left out stays as it was in the person's files: a cache is made again by whoever needs it. Where there are
too many to compile (an environment), all of them are left out: were it some, the others would come up as new once
those were applied.
"""

from __future__ import annotations

import base64
import importlib.util
import json
import os
import re
import struct
import subprocess
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from artoo.contracts.changes import Node
from artoo.contracts.settling import ChangeClass
from artoo.ports.world import Files
from artoo.world.git_layout import read_file
from artoo.world.marshalled import NotCode, Reader
from artoo.world.scan import Effect
from artoo.world.verdict import SILENT, Verdict

_NAME = re.compile(r"(?P<stem>.+?)\.(?P<tag>[^.]+)(\.opt-(?P<level>[12]))?\.pyc")
_HEADER = 16
_LONGEST = 8 << 20
MOST_COMPILED = 300
"""Caches of a difference that are compiled at most: more of them stay more, whatever part is applied."""

_SECONDS = 30.0
_TOOLS = frozenset({b".pytest_cache", b".mypy_cache", b".ruff_cache"})
_TAG = "CACHEDIR.TAG"
_SIGNATURE = b"Signature: 8a477f597d28d172789f06886806bc55"
"""https://bford.info/cachedir: what a directory of a cache holds."""

_COMPILE = """
import base64, json, marshal, sys
for line in sys.stdin:
    source, name, level = json.loads(line)
    try:
        code = compile(base64.b64decode(source), name, "exec", dont_inherit=True, optimize=level)
        print(base64.b64encode(marshal.dumps(code)).decode(), flush=True)
    except Exception:
        print("", flush=True)
"""


@dataclass(frozen=True, slots=True)
class Caches:
    """The verdict over all caches of a difference. `left_out`: paths that are not taken over."""

    says: dict[bytes, Verdict] = field(default_factory=dict[bytes, Verdict])
    left_out: frozenset[bytes] = frozenset()


def judge_caches(effects: Sequence[Effect], before: Files, after: Files) -> Caches:
    """Compiles what is needed for it, in a process of its own. Blocking."""
    says: dict[bytes, Verdict] = {}
    left_out: set[bytes] = set()
    waiting: list[tuple[Effect, _Claim]] = []
    compiled = {effect.path for effect in effects if _is_compiled(effect)}
    for effect in effects:
        if effect.path in compiled:
            claim = _claim(effect, after) if len(compiled) <= MOST_COMPILED else None
            if claim is None:
                left_out.add(effect.path)
            else:
                waiting.append((effect, claim))
        elif (verdict := _of_tools(effect, before)) is not None:
            says[effect.path] = verdict
    for (effect, claim), right in zip(waiting, _compiled([claim for _, claim in waiting]), strict=True):
        if right is None:
            left_out.add(effect.path)
        else:
            says[effect.path] = SILENT if right else _foreign(claim)
    left_out |= _left_empty(effects, left_out) | _made_by_tools(effects)
    return Caches(says, frozenset(left_out))


def is_cached(path: bytes) -> bool:
    """Whether a path is where Python and tools keep what they make again. Enough to choose one of two versions:
    that it is nothing else, `judge_caches` says."""
    return _is_compiled_name(path) or not _TOOLS.isdisjoint(path.split(b"/")[:-1])


def _is_compiled_name(path: bytes) -> bool:
    return path.endswith(b".pyc") and path.split(b"/")[-2:-1] == [b"__pycache__"]


def _is_compiled(effect: Effect) -> bool:
    if not _is_compiled_name(effect.path):
        return False
    ordinary = effect.after is not None and effect.after.node is Node.FILE
    return ordinary and (effect.before is None or effect.before.node is Node.FILE)


@dataclass(frozen=True, slots=True)
class _Claim:
    """What a cache says of itself: this source, compiled at this level under this file name, has this digest."""

    source_path: Path
    source: bytes
    level: int
    filename: str | None
    digest: bytes | None


def _foreign(claim: _Claim) -> Verdict:
    reason = f"foreign code: Python would run it in place of {claim.source_path.name}, which says something else"
    return Verdict(ChangeClass.PERSISTENCE, reason)


def _claim(effect: Effect, after: Files) -> _Claim | None:
    """None: this Python would not run it, or cannot tell."""
    path = Path(os.fsdecode(effect.path))
    name = _NAME.fullmatch(path.name)
    if name is None or name["tag"] != sys.implementation.cache_tag:
        return None
    source_path = path.parent.parent / f"{name['stem']}.py"
    source_place = after.at(after.resolve(source_path))
    content = read_file(os.fsencode(effect.layer.upper) + b"/" + effect.relative, _LONGEST)
    source = None if source_place is None else read_file(source_place, _LONGEST)
    if source_place is None or content is None or source is None:
        return None
    if not _runs(content, source, source_place.stat()):
        return None
    reader = Reader(content[_HEADER:])
    try:
        digest = reader.digest()
    except (NotCode, UnicodeDecodeError):
        digest = None
    return _Claim(source_path, source, int(name["level"] or 0), reader.filename, digest)


def _runs(content: bytes, source: bytes, seen: os.stat_result) -> bool:
    """Whether the header (PEP 552) makes Python run the cache and not the source."""
    if len(content) < _HEADER or content[:4] != importlib.util.MAGIC_NUMBER:
        return False
    flags, one, two = struct.unpack("<III", content[4:_HEADER])
    if flags == 0:
        return (one, two) == (int(seen.st_mtime) & 0xFFFFFFFF, seen.st_size & 0xFFFFFFFF)
    if flags == 0b11:
        return content[8:_HEADER] == importlib.util.source_hash(source)
    return flags == 0b01


def _compiled(claims: Sequence[_Claim]) -> Iterator[bool | None]:
    """For each whether it is right; None when that cannot be found out."""
    if not claims:
        return
    lines = [
        json.dumps([base64.b64encode(claim.source).decode(), claim.filename or "", claim.level]) for claim in claims
    ]
    command = [sys.executable, "-I", "-S", "-W", "ignore", "-c", _COMPILE]
    try:
        done = subprocess.run(
            command,
            input="\n".join(lines).encode(),
            capture_output=True,
            timeout=_SECONDS,
            check=False,
            env={},
            cwd="/",
        )
        answers = done.stdout.split(b"\n")
    except (OSError, subprocess.TimeoutExpired):
        answers = []
    for number, claim in enumerate(claims):
        if number >= len(answers) - 1:  # it died before
            yield None
            continue
        yield _equal(answers[number], claim)


def _equal(answer: bytes, claim: _Claim) -> bool:
    if not answer or claim.digest is None:
        return False
    try:
        return Reader(base64.b64decode(answer)).digest() == claim.digest
    except NotCode:
        return False


def _left_empty(effects: Sequence[Effect], left_out: set[bytes]) -> set[bytes]:
    """New directories in which nothing would be."""
    holding = {effect.path.rpartition(b"/")[0] for effect in effects if effect.path not in left_out}
    return {
        effect.path
        for effect in effects
        if effect.before is None
        and effect.after is not None
        and effect.after.is_directory
        and effect.path.endswith(b"/__pycache__")
        and effect.path not in holding
        and any(path.startswith(effect.path + b"/") for path in left_out)
    }


def _made_by_tools(effects: Sequence[Effect]) -> set[bytes]:
    """New directories that are marked as a tool's caches, with what is in them: nobody asked for it. One that holds
    anything but data is none.
    """
    made = {effect.path: list[Effect]() for effect in effects if _is_new_cache(effect)}
    for effect in effects if made else ():
        parts = effect.path.split(b"/")
        above = (b"/".join(parts[:depth]) for depth in range(1, len(parts) + 1))
        cache = next((place for place in above if place in made), None)
        if cache is not None:
            made[cache].append(effect)
    left_out = (
        inside for cache, inside in made.items() if all(map(_is_new_data, inside)) and _marked(cache, inside)
    )
    return {effect.path for inside in left_out for effect in inside}


def _is_new_cache(effect: Effect) -> bool:
    new = effect.before is None and effect.after is not None and effect.after.is_directory
    return new and effect.path.rpartition(b"/")[2] in _TOOLS


def _is_new_data(effect: Effect) -> bool:
    after = effect.after
    data = after is not None and (after.is_directory or (after.node is Node.FILE and not after.mode & 0o111))
    return effect.before is None and data


def _marked(cache: bytes, inside: Sequence[Effect]) -> bool:
    tag = next((effect for effect in inside if effect.path == cache + b"/" + _TAG.encode()), None)
    if tag is None:
        return False
    content = read_file(os.fsencode(tag.layer.upper) + b"/" + tag.relative, 1 << 16)
    return (content or b"").startswith(_SIGNATURE)


def _of_tools(effect: Effect, before: Files) -> Verdict | None:
    """Data that a tool made in a directory which was marked as its cache before the task began."""
    if _TOOLS.isdisjoint(effect.path.split(b"/")[:-1]):
        return None
    path = Path(os.fsdecode(effect.path))
    cache = next(above for above in path.parents if os.fsencode(above.name) in _TOOLS)
    if effect.after is None or before.at(cache) is None:
        return None
    if path == cache / _TAG and not effect.in_place:
        return Verdict(ChangeClass.EDIT, "what is in this directory would be taken for a cache")
    tag = before.at(cache / _TAG)
    marked = tag is not None and (read_file(tag, 1 << 16) or b"").startswith(_SIGNATURE)
    states = [state for state in (effect.before, effect.after) if state is not None]
    data = all(state.node is Node.FILE and not state.mode & 0o111 for state in states)
    return SILENT if marked and data and effect.before is not None and not effect.in_place else None
