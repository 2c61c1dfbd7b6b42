"""Word and classify changes of refs, commits, index, stash and new repositories, as the review shows them."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass

from artoo.contracts.changes import printable_path
from artoo.contracts.settling import ChangeClass
from artoo.workspace.changes.change_set import JudgePath
from artoo.workspace.changes.effect import Verdict
from artoo.workspace.git.quarantine import ABSENT, MOST_COUNTED, Quarantine, TreeEntry
from artoo.workspace.git.state import SYMBOLIC, GitAct, RefChange, StashEntry

HEADS, TAGS, REMOTES = "refs/heads/", "refs/tags/", "refs/remotes/"
_HIDES = re.compile(r"[A-Z_]*HEAD|stash|-.*|[0-9a-f]{40}|[0-9a-f]{64}")
_ABBREVIATED = re.compile(r"[0-9a-f]{4,64}")
_MOST_NAMED = 50
_SUBMODULE, _LINK = "160000", "120000"

_PLAIN_SETTING = re.compile(
    r"core\.(repositoryformatversion|filemode|bare|logallrefupdates|ignorecase|precomposeunicode|symlinks)\n.*"
    r"|remote\..*\.(fetch|tagopt)\n.*|branch\..*\.(merge|rebase)\n.*|branch\..*\.remote\n[\w./-]+|user\.(name|email)\n.*"
    r"|extensions\.objectformat\n.*"
    r"|remote\..*\.url\n(https?://|ssh://|git://|file://|/|\./|\.\./|[\w.-]+@[\w.-]+:)[^\n]*"
)
"""Matches a setting, as `KEY\\nVALUE`, that names no program and points git to no other place."""

PROGRAMS = Verdict(ChangeClass.PERSISTENCE, "git starts programs from there, or reads where they are")

Content = tuple[ChangeClass, str]


@dataclass(frozen=True, slots=True)
class Meaning:
    """The class of a change made with git, and the reason for it. `label`: the words in brackets after the
    repository's path in a review."""

    label: str
    change_class: ChangeClass
    reason: str

    @classmethod
    def of(cls, label: str, loss: str, content: Content) -> tuple[Meaning, ...]:
        """Return the meanings of a loss (which may be empty) and of the files in commits. If both need approval,
        there are two."""
        change_class, reason = content
        if not loss:
            return (cls(label, change_class, reason),)
        lost = cls(label, ChangeClass.HISTORY, loss)
        return (lost, cls(f"{label}; files", change_class, reason)) if reason else (lost,)


@dataclass(frozen=True, slots=True)
class RefJudge:
    """Judges the refs of one repository.

    `known`: the objects to which the user's refs point. `names`: all refs. `elsewhere`: branches that are checked
    out in other worktrees. `top`: the worktree directory, or the repository's own directory if it has none.
    `arriving`: the paths that file changes of the same change set write.
    """

    quarantine: Quarantine
    known: Sequence[str]
    names: Collection[str]
    elsewhere: Collection[str]
    top: bytes
    judge_path: JudgePath
    arriving: Collection[bytes] = ()

    def meanings(self, one: RefChange) -> tuple[Meaning, ...]:
        """Return the meanings of the change of one ref."""
        loss = self.loss(one)
        judged = one.new and SYMBOLIC not in one.new and not one.name.startswith(REMOTES)
        content = self.content([one.new], one if one.old else None) if judged else (ChangeClass.SILENT, "")
        return Meaning.of(self._label(one, loss), loss, content)

    def stash(self, old: Sequence[StashEntry], new: Sequence[StashEntry]) -> tuple[Meaning, ...]:
        """Return the meanings of a changed stash."""
        if old == new:
            return ()
        dropped = sum(one not in new for one in old)
        loss = f"{dropped} of its entries are dropped" if dropped else ""
        if not loss and new[len(new) - len(old) :] != old:
            loss = "its entries change their order"
        label = f"stash: {len(new)} entr{'y' if len(new) == 1 else 'ies'}, {len(old)} before"
        return Meaning.of(label, loss, self.content([one.commit for one in new if one not in old]))

    def index(self, paths: int, staged: Iterable[TreeEntry], dropped: Collection[str]) -> tuple[Meaning, ...]:
        """Return the meanings of a changed index. `dropped`: the paths whose staged content is in no commit."""
        loss = f"staged content is dropped: {', '.join(dropped)}" if dropped else ""
        return Meaning.of(f"index: {paths} path{'s' * (paths != 1)}", loss, self.content((), staged=staged))

    def new_repository(
        self, act: GitAct, commits: Collection[str], staged: Iterable[TreeEntry]
    ) -> Iterator[Meaning]:
        """Yield the meanings of a new repository, from its settings, its hooks, and files only in its commits."""
        strange = sorted({key for key, value in act.settings if not _PLAIN_SETTING.fullmatch(f"{key}\n{value}")})
        label = f"new repository: {_counted(commits)}"
        content = self.content((), staged=staged)
        if strange:
            why = f"its settings may start programs or lead git elsewhere: {', '.join(strange)}"
            yield Meaning(label, ChangeClass.PERSISTENCE, why)
            label += "; files"
        if content[1] or not strange:
            yield Meaning(label, *content)
        for one in act.extras:
            yield Meaning(one.inner, ChangeClass.PERSISTENCE, PROGRAMS.reason)

    def loss(self, one: RefChange) -> str:
        """Return why the change of a ref loses or hides commits. Return "" for a ref that is new or only moves
        forward."""
        forward = bool(one.old and one.new) and SYMBOLIC not in one.old + one.new
        forward = forward and self.quarantine.follows(one.old, one.new)
        if one.name == "HEAD":
            return "" if forward else f"HEAD moves from {_short(one.old)} to {_short(one.new)}"
        return next((why for holds, why in self._losses(one, forward=forward) if holds), "")

    def _losses(self, one: RefChange, *, forward: bool) -> Iterable[tuple[bool, str]]:
        is_tag = one.name.startswith(TAGS)
        return (
            (not one.new, "it is removed"),
            (SYMBOLIC in one.old + one.new, "it stands for another ref"),
            (one.name.startswith(REMOTES), "it records what the remote has"),
            (not one.name.startswith((HEADS, TAGS, "refs/notes/")), "it may change what git shows"),
            (self._names_no_commit(one), "it names something that is no commit"),
            (not one.old and self._hides(one.name), "its name hides another one"),
            (is_tag and bool(one.old), "the tag is moved"),
            (bool(one.old) and not forward, "it is moved to commits that do not follow the old ones"),
            (one.name in self.elsewhere, "it is checked out in another worktree"),
        )

    def _names_no_commit(self, one: RefChange) -> bool:
        """True if a ref does not point to a commit. For example, a tag may point to a tree. Branches always point
        to commits."""
        return bool(one.new) and not one.name.startswith(HEADS) and not self.quarantine.is_commit(one.new)

    def _hides(self, name: str) -> bool:
        short = _short(name)
        if _HIDES.fullmatch(short) or short in {_short(each) for each in self.names if each != name}:
            return True
        return bool(_ABBREVIATED.fullmatch(short)) and self.quarantine.is_abbreviation(short)

    def _label(self, one: RefChange, loss: str) -> str:
        name = f"tag {_short(one.name)}" if one.name.startswith(TAGS) else _short(one.name)
        if not one.new:
            return f"{name} removed"
        if SYMBOLIC in one.new:
            return f"{name} at {_short(one.new)}"
        new = self.quarantine.beyond([one.new], self.known)
        if not new:
            return f"{name} {'moved' if one.old else 'new'}"
        how = ", new" if not one.old else " rewritten" if loss else ""
        return f"{name}{how}: {_counted(new)}: {printable_path(self.quarantine.subject(new[0]))}"

    def content(
        self, tips: Sequence[str], moved: RefChange | None = None, staged: Iterable[TreeEntry] = ()
    ) -> Content:
        """Return the most dangerous class among the files in new commits that the tips reach, and a reason with
        their paths.

        `moved`: the branch that moved to these commits. Its old files count as edited or deleted. A new ref
        replaces no file.
        """
        brought = self.quarantine.brought(tips, self.known)
        if brought is None:
            return ChangeClass.HISTORY, "it brings too many commits to be judged"
        entries = [one._replace(existed=False) for one in brought if one.mode != ABSENT]
        if moved is not None and SYMBOLIC not in moved.old and moved.name.startswith((HEADS, "HEAD")):
            # Commits that are already known bring files too, unless these files are among the file changes, where
            # they are judged.
            there = self.quarantine.difference(moved.old, moved.new)
            entries += [one for one in there if one.existed or self.top + b"/" + one.path not in self.arriving]
        found: dict[Content, dict[bytes, None]] = {}
        for entry in (*entries, *staged):
            content = self._entry(entry)
            if content[0] is not ChangeClass.SILENT:
                found.setdefault(content, {})[entry.path] = None
        if not found:
            return ChangeClass.SILENT, ""
        parts = [f"{_listed(paths)} ({why})" for (_, why), paths in found.items()]
        return min((one for one, _ in found), key=lambda one: one.danger), f"it brings {', '.join(parts)}"

    def _entry(self, entry: TreeEntry) -> Content:
        if entry.renamed:
            renamed = f"is renamed to {printable_path(entry.renamed)}"
            return (ChangeClass.EDIT, renamed) if entry.exact else (ChangeClass.DELETION, f"{renamed} and edited")
        if entry.mode == ABSENT:
            return ChangeClass.DELETION, "is deleted"
        if entry.mode == _SUBMODULE:
            return ChangeClass.LINK, "another commit of a submodule"
        target = self.quarantine.link_target(entry.object) if entry.mode == _LINK else b""
        return self.judge_path(self.top + b"/" + entry.path, int(entry.mode, 8), entry.existed, target)


def _counted(commits: Collection[str]) -> str:
    """Return the number of commits as text."""
    if len(commits) >= MOST_COUNTED:
        return f"{MOST_COUNTED:,} commits or more"
    return f"{len(commits)} commit{'s' * (len(commits) != 1)}"


def _short(name: str) -> str:
    bare = name.removeprefix(SYMBOLIC)
    return next((bare.removeprefix(kind) for kind in (HEADS, TAGS, REMOTES) if bare.startswith(kind)), bare)


def _listed(paths: Collection[bytes]) -> str:
    shown = [printable_path(one) for one in list(paths)[:_MOST_NAMED]]
    return ", ".join(shown) + (f" and {len(paths) - _MOST_NAMED} more" if len(paths) > _MOST_NAMED else "")
