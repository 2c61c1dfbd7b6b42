"""What a task changed, as text: unified diffs, and a line for all that has none.

What it did to git's own records comes first, a line a repository: a commit changes nothing else.
"""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

from artoo.contracts.changes import CROWD, Change, ChangeKind, Node, PathClass, Trait, outermost, path_bytes
from artoo.ports.sandbox import Roots
from artoo.ports.workspace import Files
from artoo.tools.core.command_runner import meant_changes
from artoo.tools.files.paths import printable, shown
from artoo.tools.files.redacted_paths import closed_as
from artoo.tools.files.unified_diff import unified
from artoo.tools.settlement.git_ref_changes import is_record, ref_moves
from artoo.tools.settlement.moved_files import content_at, moved_files

_GONE_FILES = 8
"""Deleted files whose text is shown; of more the names say what happened."""
_GONE_CHARACTERS = 2_000
"""Of the text of one."""


def difference(changes: Iterable[Change], before: Files, now: Files, roots: Roots, limit: int) -> str:
    """The changes that somebody may have meant, in path order, in at most `limit` characters. A new directory with
    very much in it (an environment, packages, a clone) is one line. Blocks.
    """
    every = tuple(changes)
    meant = frozenset(meant_changes(change for change in every if not is_record(change)))
    moved = moved_files((change for change in every if change.path in meant), before, now)
    arrived = frozenset(moved.values())
    wanted = [change for change in every if change.path in meant and change.path not in arrived]
    git = [(f"in {_shown(f'{where}/.git', roots)}: {told}",) for where, told in ref_moves(every, before, now)]
    crowds = _crowds(wanted)
    few = (change for change in wanted if not outermost(change.path, crowds))
    gone = sum(change.kind is ChangeKind.DELETED for change in wanted if change.path not in moved)
    old = before if gone <= _GONE_FILES else None
    told = [*git, *(_about(change, moved.get(change.path), before, now, roots, old) for change in few)]
    told += [(f"created: {_shown(each, roots)}/ ({many} paths in it, not shown)",) for each, many in crowds.items()]
    lines: list[str] = []
    room = limit
    for number, each in enumerate(told):
        for line in each:
            room -= len(line) + 1
            if room < 0:
                rest = f"[... cut here; {len(told) - number} of {len(told)} changes are not shown whole ...]"
                while lines and len("\n".join((*lines, rest))) > limit:
                    lines.pop()
                return "\n".join((*lines, rest))[:limit]
            lines.append(line)
    return "\n".join(lines)


def _crowds(changes: Sequence[Change]) -> dict[str, int]:
    """Outermost new directories in which there is more than anybody wrote one by one, and how much that is."""
    made = (change for change in changes if change.node is Node.DIRECTORY and change.kind is ChangeKind.CREATED)
    new = frozenset(change.path for change in made)
    lies_in = Counter(outermost(each.path, new) for each in changes)
    return {one: many - 1 for one, many in lies_in.items() if one and many - 1 > CROWD}


def _about(
    change: Change, moved_to: str | None, before: Files, now: Files, roots: Roots, old: Files | None
) -> Iterator[str]:
    """`old`: where the text of a deleted file is read, if it is shown."""
    name = _shown(change.path, roots)
    if change.has(Trait.CHANGED_MEANWHILE):
        yield f"{name}: somebody else changed it too since the task first did; lines with - may be theirs, and stay"
    if _is_closed(change, roots) and change.node is not Node.DIRECTORY:
        yield f"{change.kind}: {name} ({closed_as(change.path_class)})"
    elif moved_to is not None:
        yield f"moved: {name} -> {_shown(moved_to, roots)}"
    elif change.node is Node.FILE and change.kind in (ChangeKind.CREATED, ChangeKind.OVERWRITTEN):
        yield from _file(change, name, content_at(before, change.path), content_at(now, change.path))
    elif change.before is Node.FILE and change.kind is ChangeKind.DELETED and old is not None:
        yield from _gone(name, content_at(old, change.path))
    elif change.node is Node.DIRECTORY and change.kind is ChangeKind.CREATED:
        yield f"created: {name}/"
    else:
        yield f"{change.kind}: {name}{f' ({change.detail})' if change.detail else ''}"


def _is_closed(change: Change, roots: Roots) -> bool:
    """True if what stands there is not shown: a new file directly in the home is the task's own writing."""
    if change.path_class not in (PathClass.SECRET, PathClass.ARTOO):
        return False
    return change.before is not None or change.path.rpartition("/")[0] != printable(roots.home)


def _file(change: Change, name: str, before: bytes | None, now: bytes | None) -> Iterator[str]:
    if now is not None and (before is not None or change.before is not Node.FILE):
        lines = unified(before or b"", now)
        if lines or not now:
            yield f"--- {name} before" if change.before is not None else "--- (nothing)"
            yield f"+++ {name} now"
            yield from lines
            return
    sizes = f"{change.size_after} bytes" + (f", {change.size_before} before" if change.before is Node.FILE else "")
    yield f"{change.kind}: {name} ({sizes}; not shown)"


def _gone(name: str, text: bytes | None) -> Iterator[str]:
    """What is gone with a file, as far as it is text: an answer may tell it, and it stands nowhere else."""
    yield f"deleted: {name}"
    lines = unified(text, b"") if text else ()
    room = _GONE_CHARACTERS
    for number, line in enumerate(lines):
        room -= len(line) + 1
        if room < 0:
            yield f"[... {len(lines) - number} more lines of it are not shown ...]"
            return
        yield line


def _shown(printable: str, roots: Roots) -> str:
    return shown(Path(os.fsdecode(path_bytes(printable))), roots)
