"""Render a task's changes as diffs and lines, with limits on deleted files, and git refs by name.

Changes of git's own files come first, with one line for each repository, because a commit often changes nothing
else.
"""

from __future__ import annotations

import os
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path

from artoo.contracts.changes import CROWD, Change, ChangeKind, Node, PathClass, Trait, outermost, path_bytes
from artoo.ports.sandbox import Roots
from artoo.ports.workspace import Files
from artoo.tools.core.command_runner import meant_changes
from artoo.tools.files.paths import closed_as, entry_path, printable, shown
from artoo.tools.files.text_files import NotPlainFile, read_limited
from artoo.tools.files.unified_diff import unified
from artoo.workspace.git.layout import PathPurpose, is_bookkeeping, part_of

_GONE_FILES = 8
"""Maximum number of deleted files whose text is shown. If there are more, only the names are shown."""
_GONE_CHARACTERS = 2_000
"""Number of characters that are shown from the text of a deleted file."""


def difference(changes: Iterable[Change], before: Files, now: Files, roots: Roots, limit: int) -> str:
    """Describe the changes that were probably intended, ordered by path, in at most `limit` characters.
    Blocking."""
    # A new directory with very many entries (such as a virtual environment, packages or a clone) is shown as one
    # line.
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
    """Return the outermost new directories that have too many entries to be listed, each with the number of its
    entries."""
    made = (change for change in changes if change.node is Node.DIRECTORY and change.kind is ChangeKind.CREATED)
    new = frozenset(change.path for change in made)
    lies_in = Counter(outermost(each.path, new) for each in changes)
    return {one: many - 1 for one, many in lies_in.items() if one and many - 1 > CROWD}


def _about(
    change: Change, moved_to: str | None, before: Files, now: Files, roots: Roots, old: Files | None
) -> Iterator[str]:
    """Describe a change. `old`: the state of the files from which a deleted file's text is read. If it is None, the
    text is not shown."""
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
    """Check whether the content of a changed file must be hidden. The content of a new file directly in the home
    directory is shown, because the task wrote it."""
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
    """Show the beginning of a deleted file's text. An answer may be based on it, and nothing else contains it
    now."""
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


_MARK = "/.git/"
_PACKED = "packed-refs"
_KINDS = (("refs/heads/", "branch "), ("refs/tags/", "tag "), ("refs/remotes/", "remote branch "))
_MOST = 8
"""Maximum number of refs that are shown for one repository. The others are only counted."""
_SHORT = 10
"""Number of characters of a commit's hash that are shown."""
_LONGEST = 120


def is_record(change: Change) -> bool:
    """Check whether a change concerns one of git's own files in a `.git` directory. `ref_moves` reports such
    changes."""
    if change.kind is ChangeKind.DELETED:
        return is_bookkeeping(path_bytes(change.path))
    return change.has(Trait.GIT_BOOKKEEPING)


def ref_moves(
    changes: Iterable[Change], before: Files, now: Files, *, brief: bool = False
) -> Iterator[tuple[str, str]]:
    """Yield the printable path of each repository in which git's own files changed, with a description of the
    changes.

    `brief`: true to describe only refs that moved and an operation in progress, without new refs. Blocking. Files
    that start programs (hooks and settings of git) are not reported here, because they count as ordinary changes.
    """
    # Git itself is not run, because it would need a copy of the repository. Refs that are stored in a reftable
    # cannot be read in this way.
    inside: dict[str, list[Change]] = {}
    for change in changes:
        repository, found, _ = change.path.partition(_MARK)
        if found and is_record(change) and Node.FILE in (change.node, change.before):
            inside.setdefault(repository, []).append(change)
    for repository, members in inside.items():
        if any(not change.has(Trait.TIMES_ONLY) for change in members):
            said = _said(repository, members, before, now, brief=brief)
            yield from [(repository, said)] if said else []


def _said(repository: str, members: Sequence[Change], before: Files, now: Files, *, brief: bool) -> str:
    names = {change.path.partition(_MARK)[2]: change.kind for change in members}
    moved = list(_moved(names, _reader(repository, before), _reader(repository, now), new=not brief))
    parts = moved[:_MOST] + ([f"{len(moved) - _MOST} more refs"] if len(moved) > _MOST else [])
    there = (name for name, kind in names.items() if kind is not ChangeKind.DELETED)
    left = list(dict.fromkeys(name.partition("/")[0] for name in there if part_of(name) is PathPurpose.OPERATION))
    parts += [f"an operation of git's under way ({', '.join(left[:_MOST])})"] if left else []
    parts += [] if brief or parts else [f"git's own records ({', '.join(list(names)[:_MOST])})"]
    if parts and any(change.has(Trait.CHANGED_MEANWHILE) for change in members):
        parts.append("somebody else changed these records too, and some of this is theirs")
    return "; ".join(parts)


def _moved(
    changed: Iterable[str], before: Callable[[str], str], now: Callable[[str], str], *, new: bool
) -> Iterator[str]:
    """Describe each ref (including HEAD) that now points to another commit. `new`: new refs are described too."""
    names = [name for name in changed if name == "HEAD" or name.startswith("refs/")]
    packed = _packed_refs(before(_PACKED)).items() ^ _packed_refs(now(_PACKED)).items()
    names += sorted({name for name, _ in packed})
    for name in dict.fromkeys(names):
        was, is_now = _value(name, before), _value(name, now)
        if was == is_now or not (was or new):
            continue
        if not was:
            yield f"{_ref_name(name)} made at {is_now}"
        elif not is_now:
            yield f"{_ref_name(name)} removed (it was at {was})"
        else:
            yield f"{_ref_name(name)} moved from {was} to {is_now}"


def _reader(repository: str, files: Files) -> Callable[[str], str]:
    """Return a function that reads one of git's files. The text is empty if the file is missing or too large."""
    return lambda inner: (content_at(files, f"{repository}{_MARK}{inner}") or b"").decode("utf-8", "replace")


def _value(name: str, read: Callable[[str], str]) -> str:
    """Return the target of a ref, which is the beginning of a commit's hash or the name of another ref."""
    value = read(name).strip() or _packed_refs(read(_PACKED)).get(name, "")
    return _ref_name(value.removeprefix("ref: ")) if value.startswith("ref: ") else value[:_SHORT]


def _packed_refs(text: str) -> dict[str, str]:
    lines = (line.partition(" ") for line in text.splitlines() if line[:1] not in ("#", "^", ""))
    return {name: commit for commit, _, name in lines}


def _ref_name(name: str) -> str:
    kind = next(((place, word) for place, word in _KINDS if name.startswith(place)), ("", ""))
    return f"{kind[1]}{name.removeprefix(kind[0])}"[:_LONGEST]


_COMPARED_BYTES = 256 * 1024
"""Maximum size in bytes of files that are compared. A larger file that was moved is shown as deleted and
created."""
_MOST_COMPARED = 500
"""Maximum number of deleted files that are compared. It also limits the new files of equal size with which each is
compared."""


def moved_files(changes: Iterable[Change], before: Files, now: Files) -> dict[str, str]:
    """Map each deleted file to a new file with the same content. Each new file is used once. Blocking."""
    # A file with a sensitive path is always shown as deleted and created, not as moved. All empty files have the
    # same content, so an empty file counts as moved only if its name is the same.
    gone: list[Change] = []
    made: dict[int, list[Change]] = defaultdict(list)
    for change in (one for one in changes if not one.sensitive):
        if change.kind is ChangeKind.DELETED and change.before is Node.FILE:
            gone.append(change)
        elif change.kind is ChangeKind.CREATED and change.node is Node.FILE and change.size_after is not None:
            made[change.size_after].append(change)
    found: dict[str, str] = {}
    for change in gone[:_MOST_COMPARED]:
        name = Path(change.path).name
        here = made.get(-1 if change.size_before is None else change.size_before, [])
        here.sort(key=lambda one: Path(one.path).name != name)
        content = content_at(before, change.path) if here else None
        for target in here[:_MOST_COMPARED] if content is not None else ():
            if (content or Path(target.path).name == name) and content_at(now, target.path) == content:
                here.remove(target)
                found[change.path] = target.path
                break
    return found


def content_at(files: Files, printable: str) -> bytes | None:
    """Return the content of a file. Return None if it is not a regular file, or if it is too large to be compared
    or shown."""
    try:
        path = entry_path(files, Path(os.fsdecode(path_bytes(printable))))
        data, size = read_limited(files, path, _COMPARED_BYTES)
    except (NotPlainFile, OSError):
        return None
    return data if size <= _COMPARED_BYTES else None
