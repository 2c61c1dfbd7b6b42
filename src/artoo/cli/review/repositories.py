"""What changed files of a git repository mean, for people: branches, tags, commits, not names of files in `.git`.

Only what the place of a file says is told here. Whether something is lost git itself was asked
(`world.git_history`), and that is the change's class and reason.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from artoo.cli.review.words import ReviewWords
from artoo.contracts.changes import ChangeKind
from artoo.contracts.settling import ChangeClass, ClassifiedChange

_MARK = "/.git/"
_NAMES = (("refs/heads/", "branch"), ("refs/tags/", "tag"), ("refs/remotes/", "remote"), ("refs/notes/", "notes"))


@dataclass(frozen=True, slots=True)
class Inside:
    """A path in a repository: the directory of its files, and the path below its `.git`."""

    repository: str
    inner: str

    @classmethod
    def of(cls, path: str) -> Inside | None:
        """None for what is in no `.git`."""
        repository, found, inner = path.partition(_MARK)
        return cls(repository, inner) if found else None


def meaning(change: ClassifiedChange, words: ReviewWords) -> str:
    """`branch main`, `the stash`; empty for what has no name among people."""
    inside = Inside.of(change.path)
    is_directory = change.size_before is None and change.size_after is None
    if inside is None or is_directory:
        return ""
    inner = inside.inner
    for place, kind in _NAMES:
        if inner.startswith(place):
            return words.git[kind].format(name=inner.removeprefix(place))
    if inner.startswith("logs/"):
        return words.git["log"].format(name=inner.removeprefix("logs/").removeprefix("refs/heads/"))
    return {"HEAD": words.git["head"], "refs/stash": words.git["stash"], "index": words.git["index"]}.get(inner, "")


def names_first(changes: Iterable[ClassifiedChange]) -> list[ClassifiedChange]:
    """Branches and tags before git's other files: of a repository that is rewritten they are what people know."""
    return sorted(changes, key=lambda one: f"{_MARK}refs/" not in one.path)


def apart(
    changes: Iterable[ClassifiedChange],
) -> tuple[list[ClassifiedChange], dict[str, list[ClassifiedChange]]]:
    """Harmless changes in repositories, by repository, apart from all others. What needs a yes is never folded."""
    others: list[ClassifiedChange] = []
    inside: dict[str, list[ClassifiedChange]] = {}
    for change in changes:
        found = Inside.of(change.path)
        if found is None or change.change_class is not ChangeClass.SILENT:
            others.append(change)
        else:
            inside.setdefault(found.repository, []).append(change)
    return others, inside


def told(changes: Sequence[ClassifiedChange], words: ReviewWords) -> str:
    """`branch work (new), what is checked out, 3 new objects`: the harmless changes of one repository."""
    parts: list[str] = []
    objects = 0
    for change in changes:
        inner = change.path.partition(_MARK)[2]
        if inner.startswith("objects/"):
            objects += change.kind is ChangeKind.CREATED and change.size_after is not None
        elif not inner.startswith("logs/") and (named := meaning(change, words)):
            new = change.kind is ChangeKind.CREATED and inner.startswith("refs/")
            parts.append(words.git["new"].format(name=named) if new else named)
    if objects:
        parts.append(words.git["objects"].format(count=f"{objects:,}"))
    return words.joint.join(parts) or words.git["notes_only"]
