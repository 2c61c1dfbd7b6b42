"""What moved refs mean for the user: what is silent, what is history, and what new commits bring."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import dataclass, field

from artoo.contracts.changes import ChangeKind, printable_path
from artoo.contracts.settling import ChangeClass, ClassifiedChange, Rewritten
from artoo.workspace.git.plan import SYMBOLIC, RefChange, objects_named
from artoo.workspace.git.quarantine import ABSENT, Entry, Quarantine

JudgePath = Callable[[bytes, int, bool, bytes], tuple[ChangeClass, str]]
"""The class of a file: absolute path, mode as `stat.st_mode`, whether something was there, target of a link."""

HEADS, TAGS = "refs/heads/", "refs/tags/"
_SHORTENED = (HEADS, TAGS, "refs/remotes/")
_HIDES = re.compile(r"[A-Z_]*HEAD|stash|-.*|[0-9a-f]{40}|[0-9a-f]{64}")
_MOST_NAMED = 50
_SUBMODULE = "160000"
_LINK = "120000"


@dataclass(frozen=True, slots=True)
class Meaning:
    """A class and its reason. `label`: what the change is called, in brackets behind the repository's path."""

    label: str
    change_class: ChangeClass
    reason: str = ""

    def with_content(self, content: tuple[ChangeClass, str]) -> tuple[Meaning, ...]:
        """Return what the files of the commits mean too: on its own where the refs need approval themselves."""
        change_class, reason = content
        if not reason:
            return (self,)
        if self.change_class is ChangeClass.SILENT:
            return (Meaning(self.label, change_class, reason),)
        return self, Meaning(f"{self.label}; files", change_class, reason)

    def change(self, repository: bytes, kind: ChangeKind, rewrites: Rewritten | None = None) -> ClassifiedChange:
        """Return the change that the user sees."""
        history = self.change_class is ChangeClass.HISTORY
        return ClassifiedChange(
            path=f"{printable_path(repository)} ({self.label})",
            change_class=self.change_class,
            kind=kind,
            reason=self.reason,
            rewrites=rewrites if history else None,
        )


@dataclass(slots=True)
class RefJudge:
    """Judges the refs of one repository. `top`: the directory of the working files, or the repository's own.

    `known`: what the user's refs named before. `elsewhere`: branches that are checked out in other worktrees.
    """

    quarantine: Quarantine
    known: Sequence[str]
    names: Collection[str]
    elsewhere: Collection[str]
    top: bytes
    judge_path: JudgePath
    moved: list[RefChange] = field(default_factory=list[RefChange])

    def meanings(self, one: RefChange) -> tuple[Meaning, ...]:
        """Return what one ref's change means, and remember it if the old value is lost."""
        loss = self._loss(one)
        if loss and (one.old or one.name == "HEAD"):
            self.moved.append(one)
        change_class = ChangeClass.HISTORY if loss else ChangeClass.SILENT
        found = Meaning(self._label(one, loss), change_class, loss)
        return (found,) if self._is_remote(one) else found.with_content(self.content(self._entries(one)))

    def _loss(self, one: RefChange) -> str:
        """Return why the change needs approval by name; empty for a ref that is new or only moves forward."""
        if one.name == "HEAD":
            return self._head_loss(one)
        if not one.new:
            return "it is removed"
        if one.new.startswith(SYMBOLIC) or one.old.startswith(SYMBOLIC):
            return "it stands for another ref"
        if self._is_remote(one):
            return "it records what the remote has"
        if not one.name.startswith((HEADS, TAGS, "refs/notes/")):
            return "it is no branch and no tag, and may change what git shows"
        if not one.old:
            return self._hides(one.name)
        if one.name.startswith(TAGS):
            return "the tag is moved"
        if not self.quarantine.follows(one.old, one.new):
            return "it is moved to commits that do not follow the old ones"
        return "it is checked out in another worktree" if one.name in self.elsewhere else ""

    def _head_loss(self, one: RefChange) -> str:
        if SYMBOLIC in one.old or SYMBOLIC in one.new:
            return f"HEAD moves from {_short(one.old)} to {_short(one.new)}"
        return (
            ""
            if self.quarantine.follows(one.old, one.new)
            else "HEAD moves to commits that do not follow the old ones"
        )

    def _hides(self, name: str) -> str:
        short = _short(name)
        others = {_short(each) for each in self.names if each != name}
        return "its name hides another one" if short in others or _HIDES.fullmatch(short) else ""

    @staticmethod
    def _is_remote(one: RefChange) -> bool:
        return one.name.startswith("refs/remotes/")

    def _label(self, one: RefChange, loss: str) -> str:
        short = _short(one.name)
        name = f"tag {short}" if one.name.startswith(TAGS) else short
        if not one.new:
            return f"{name} removed"
        if SYMBOLIC in one.new:
            return f"{name} at {_short(one.new)}"
        new = self.quarantine.beyond([one.new], self.known)
        if not new:
            return f"{name} {'moved' if one.old else 'new'}"
        count = f"{len(new)} commit{'s' if len(new) > 1 else ''}"
        subject = printable_path(self.quarantine.subject(new[0]))
        return f"{name}{' rewritten' if loss and one.old else '' if one.old else ', new'}: {count}: {subject}"

    # --- what commits bring ---------------------------------------------------------------------------------------

    def _entries(self, one: RefChange) -> Iterable[Entry] | None:
        """Return what the new commits bring; of a ref that is new every file counts as new, for it replaces none."""
        if not one.new or one.new.startswith(SYMBOLIC):
            return ()
        brought = self.quarantine.brought([one.new], self.known)
        if brought is None:
            return None
        fresh = [Entry(each.path, each.mode, each.object, False) for each in brought if each.mode != ABSENT]
        if not one.old or one.old.startswith(SYMBOLIC) or not one.name.startswith((HEADS, "HEAD")):
            return fresh
        return (*fresh, *(each for each in self.quarantine.difference(one.old, one.new) if each.existed))

    def content(self, entries: Iterable[Entry] | None) -> tuple[ChangeClass, str]:
        """Return the most dangerous class among entries, and which ones have it."""
        if entries is None:
            return ChangeClass.HISTORY, "it brings too many commits to be judged"
        found: dict[tuple[ChangeClass, str], dict[bytes, None]] = {}
        for entry in entries:
            change_class, why = self._entry(entry)
            if change_class is not ChangeClass.SILENT:
                found.setdefault((change_class, why), {})[entry.path] = None
        if not found:
            return ChangeClass.SILENT, ""
        parts = [
            f"deletes {_listed(paths)}"
            if change_class is ChangeClass.DELETION
            else f"brings {_listed(paths)}: {why}"
            for (change_class, why), paths in found.items()
        ]
        return min((one for one, _ in found), key=lambda one: one.danger), "it " + "; it ".join(parts)

    def _entry(self, entry: Entry) -> tuple[ChangeClass, str]:
        if entry.mode == ABSENT:
            return ChangeClass.DELETION, "is deleted"
        if entry.mode == _SUBMODULE:
            return ChangeClass.LINK, "another commit of a submodule"
        target = self.quarantine.content(entry.object) if entry.mode == _LINK else b""
        return self.judge_path(self.top + b"/" + entry.path, int(entry.mode, 8), entry.existed, target)

    # --- what is lost ---------------------------------------------------------------------------------------------

    def rewritten(self, repository: bytes, tips: Iterable[str]) -> Rewritten | None:
        """Return how many branches and tags are moved or removed, and how many commits lose their last name."""
        branches, tags = (sum(one.name.startswith(kind) for one in self.moved) for kind in (HEADS, TAGS))
        if not self.moved:
            return None
        lost = self.quarantine.beyond(objects_named(one.old for one in self.moved), tips)
        return Rewritten(repository=printable_path(repository), branches=branches, tags=tags, commits=len(lost))


def _short(name: str) -> str:
    bare = name.removeprefix(SYMBOLIC)
    return next((bare.removeprefix(kind) for kind in _SHORTENED if bare.startswith(kind)), bare)


def _listed(paths: Collection[bytes]) -> str:
    shown = [printable_path(one) for one in list(paths)[:_MOST_NAMED]]
    return ", ".join(shown) + (f" and {len(paths) - _MOST_NAMED} more" if len(paths) > _MOST_NAMED else "")


def checked_out_elsewhere(directory: bytes, moving: Collection[bytes]) -> frozenset[str]:
    """Return the branches at which linked worktrees are, but for those whose index moves with the task's."""
    place = directory + b"/worktrees"
    found: set[str] = set()
    for name in os.listdir(place) if os.path.isdir(place) else ():
        try:
            with open(place + b"/" + name + b"/HEAD", "rb") as file:
                said = file.read(4096).decode("utf-8", "surrogateescape").strip()
        except OSError:
            continue
        if said.startswith(SYMBOLIC) and place + b"/" + name not in moving:
            found.add(said.removeprefix(SYMBOLIC))
    return frozenset(found)
