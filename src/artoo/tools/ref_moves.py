"""What a task did to git repositories, a line each: which names moved from which commit to which.

Read from git's own files as the workspace shows them and as they were. Git itself is not asked, because that would
take a copy of the repository. Names in a reftable cannot be read so: then the line says which records changed.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

from artoo.contracts.changes import Change, ChangeKind, Node, Trait, path_bytes
from artoo.ports.workspace import Files
from artoo.tools.moves import content_at
from artoo.workspace.git.layout import Part, is_bookkeeping, part_of

_MARK = "/.git/"
_PACKED = "packed-refs"
_LOOSE = "objects/"
_KINDS = (("refs/heads/", "branch "), ("refs/tags/", "tag "), ("refs/remotes/", "remote branch "))
_STAGED = "index"
_TOLD = ("HEAD", "refs/", "logs/", _LOOSE)
_MOST = 8
"""Names of one repository that are told; the rest are counted."""
_SHORT = 10
"""Characters of a commit's name."""
_LONGEST = 120


def is_record(change: Change) -> bool:
    """Whether it is one of git's own records in a `.git`: told by `ref_moves`, and not as a file."""
    if change.kind is ChangeKind.DELETED:
        return is_bookkeeping(path_bytes(change.path))
    return change.has(Trait.GIT_BOOKKEEPING)


def ref_moves(
    changes: Iterable[Change], before: Files, now: Files, *, brief: bool = False
) -> Iterator[tuple[str, str]]:
    """Each repository of which git's own records changed, by the printable path of its files, and what changed.
    `brief`: only what the next command meets otherwise than before: names that moved, and an operation that was
    left under way; of a repository that is new, nothing.

    Blocks. Whatever starts programs (hooks, settings) is a change like any other and not told here.
    """
    inside: dict[str, list[Change]] = {}
    for change in changes:
        repository, found, _ = change.path.partition(_MARK)
        if found and is_record(change) and Node.FILE in (change.node, change.before):
            inside.setdefault(repository, []).append(change)
    for repository, members in inside.items():
        if any(not change.has(Trait.TIMES_ONLY) for change in members):
            told = _told(repository, members, before, now, brief=brief)
            yield from [(repository, told)] if told else []


def _told(repository: str, members: Sequence[Change], before: Files, now: Files, *, brief: bool) -> str:
    kinds = {change.path.partition(_MARK)[2]: change.kind for change in members}
    moved = list(_moved(kinds, _reader(repository, before), _reader(repository, now), new=not brief))
    parts = moved[:_MOST] + ([f"{len(moved) - _MOST} more names"] if len(moved) > _MOST else [])
    there = (name for name, kind in kinds.items() if kind is not ChangeKind.DELETED)
    left = list(dict.fromkeys(name.partition("/")[0] for name in there if part_of(name) is Part.OPERATION))
    parts += [f"an operation of git's under way ({', '.join(left[:_MOST])})"] if left else []
    parts += [] if brief else _rest(kinds, named=bool(parts))
    if parts and any(change.has(Trait.CHANGED_MEANWHILE) for change in members):
        parts.append("somebody else changed these records too, and some of this is theirs")
    return "; ".join(parts)


def _rest(kinds: Mapping[str, ChangeKind], *, named: bool) -> list[str]:
    """What else changed: objects, the index; the records where nothing is to be told, nor was anything `named`."""
    objects = [kind for name, kind in kinds.items() if name.startswith(_LOOSE)]
    parts = list[str]()
    for kind, word in ((ChangeKind.CREATED, "made"), (ChangeKind.DELETED, "removed")):
        count = objects.count(kind)
        parts += [f"{count} object{'s' * (count != 1)} {word}"] if count else []
    parts += ["the index written"] if _STAGED in kinds else []
    others = [name for name in kinds if not name.startswith(_TOLD) and name != _STAGED]
    return parts if parts or named else [f"git's own records ({', '.join((others or list(kinds))[:_MOST])})"]


def _moved(
    changed: Iterable[str], before: Callable[[str], str], now: Callable[[str], str], *, new: bool
) -> Iterator[str]:
    """Each name that stands for another commit now, HEAD among them, and each `new` one if these are wanted."""
    names = [name for name in changed if name == "HEAD" or name.startswith("refs/")]
    packed = _packed_names(before(_PACKED)).items() ^ _packed_names(now(_PACKED)).items()
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
    """Reads one of git's files; empty when it is not there, or too large."""

    def read(inner: str) -> str:
        content = content_at(files, f"{repository}{_MARK}{inner}")
        return "" if content is None else content.decode("utf-8", "replace")

    return read


def _value(name: str, read: Callable[[str], str]) -> str:
    """What a name stands for: the beginning of a commit's name, or another name."""
    value = read(name).strip() or _packed_names(read(_PACKED)).get(name, "")
    if value.startswith("ref: "):
        return _shown(value.removeprefix("ref: "))
    return value[:_SHORT]


def _packed_names(text: str) -> dict[str, str]:
    lines = (line.partition(" ") for line in text.splitlines() if line[:1] not in ("#", "^", ""))
    return {name: commit for commit, _, name in lines}


def _shown(name: str) -> str:
    kind = next(((place, word) for place, word in _KINDS if name.startswith(place)), ("", ""))
    return f"{kind[1]}{name.removeprefix(kind[0])}"[:_LONGEST]
