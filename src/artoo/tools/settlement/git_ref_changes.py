"""What a task did to git repositories, one line each: which refs moved from which commit to which.

Read from git's own files as the workspace shows them and as they were. Git itself is not asked, because that would
take a copy of the repository. Refs in a reftable cannot be read so.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence

from artoo.contracts.changes import Change, ChangeKind, Node, Trait, path_bytes
from artoo.ports.workspace import Files
from artoo.tools.settlement.moved_files import content_at
from artoo.workspace.git.layout import Part, is_bookkeeping, part_of

_MARK = "/.git/"
_PACKED = "packed-refs"
_KINDS = (("refs/heads/", "branch "), ("refs/tags/", "tag "), ("refs/remotes/", "remote branch "))
_MOST = 8
"""Refs of one repository that are shown; the rest are counted."""
_SHORT = 10
"""Characters of a commit's name."""
_LONGEST = 120


def is_record(change: Change) -> bool:
    """True for one of git's own records in a `.git`: `ref_moves` reports it, and it is not shown as a file."""
    if change.kind is ChangeKind.DELETED:
        return is_bookkeeping(path_bytes(change.path))
    return change.has(Trait.GIT_BOOKKEEPING)


def ref_moves(
    changes: Iterable[Change], before: Files, now: Files, *, brief: bool = False
) -> Iterator[tuple[str, str]]:
    """Yield each repository whose own records changed, by the printable path of its files, and what changed.

    `brief`: only refs that moved, and an operation that is under way; nothing of a new repository. Blocking.
    What starts programs (hooks, settings) is a change like any other and not reported here.
    """
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
    left = list(dict.fromkeys(name.partition("/")[0] for name in there if part_of(name) is Part.OPERATION))
    parts += [f"an operation of git's under way ({', '.join(left[:_MOST])})"] if left else []
    parts += [] if brief or parts else [f"git's own records ({', '.join(list(names)[:_MOST])})"]
    if parts and any(change.has(Trait.CHANGED_MEANWHILE) for change in members):
        parts.append("somebody else changed these records too, and some of this is theirs")
    return "; ".join(parts)


def _moved(
    changed: Iterable[str], before: Callable[[str], str], now: Callable[[str], str], *, new: bool
) -> Iterator[str]:
    """Yield each ref that names another commit now, HEAD among them, and each `new` one if these are wanted."""
    names = [name for name in changed if name == "HEAD" or name.startswith("refs/")]
    packed = _packed_refs(before(_PACKED)).items() ^ _packed_refs(now(_PACKED)).items()
    names += sorted({name for name, _ in packed})
    for name in dict.fromkeys(names):
        was, is_now = _value(name, before), _value(name, now)
        if was == is_now or not (was or new):
            continue
        if not was:
            yield f"{_shown(name)} made at {is_now}"
        elif not is_now:
            yield f"{_shown(name)} removed (it was at {was})"
        else:
            yield f"{_shown(name)} moved from {was} to {is_now}"


def _reader(repository: str, files: Files) -> Callable[[str], str]:
    """Return what reads one of git's files; empty when it is not there, or too large."""
    return lambda inner: (content_at(files, f"{repository}{_MARK}{inner}") or b"").decode("utf-8", "replace")


def _value(name: str, read: Callable[[str], str]) -> str:
    """Return what a ref names: the beginning of a commit's name, or another ref."""
    value = read(name).strip() or _packed_refs(read(_PACKED)).get(name, "")
    return _shown(value.removeprefix("ref: ")) if value.startswith("ref: ") else value[:_SHORT]


def _packed_refs(text: str) -> dict[str, str]:
    lines = (line.partition(" ") for line in text.splitlines() if line[:1] not in ("#", "^", ""))
    return {name: commit for commit, _, name in lines}


def _shown(name: str) -> str:
    kind = next(((place, word) for place, word in _KINDS if name.startswith(place)), ("", ""))
    return f"{kind[1]}{name.removeprefix(kind[0])}"[:_LONGEST]
