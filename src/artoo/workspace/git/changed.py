"""What a task did to a repository that the user has: its new values against the user's, and what they mean."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from artoo.contracts.changes import ChangeKind, Conflict, path_bytes, printable_path
from artoo.contracts.settling import ChangeClass
from artoo.workspace.git import files
from artoo.workspace.git.context import Context, Found
from artoo.workspace.git.judge_refs import Meaning, RefJudge, checked_out_elsewhere
from artoo.workspace.git.layout import Repository
from artoo.workspace.git.plan import CHECKOUT, STASH, SYMBOLIC, GitAct, IndexChange, RefChange, objects_named
from artoo.workspace.git.quarantine import ABSENT, Entry, Quarantine
from artoo.workspace.git.run import Git, GitFailed
from artoo.workspace.git.state import State, state_inside, state_outside

_MOST_REFS = 2_000
_LONGEST_LOG = 1 << 20
_GITLINK = "160000 "


def judge_changed(context: Context, repository: Repository, work: Path) -> Found:
    """Judge a repository that was there. `work`: an empty directory. Raises GitFailed, OSError."""
    user = Git(context.program, Path(os.fsdecode(repository.directory)))
    (work / "tmp").mkdir()
    old = state_outside(user)
    new = state_inside(context.program, user.directory, context.run_inside, work / "tmp")
    if old.object_format != new.object_format:
        raise GitFailed("the task made another kind of repository of it")
    quarantine = Quarantine.make(work / "quarantine", user, old.object_format, context.program)
    return _Changed(context, repository, user, old, new, quarantine).judge(work)


@dataclass(slots=True)
class _Changed:
    """The comparison of one repository. `blocked`: groups that stay in the workspace."""

    context: Context
    repository: Repository
    user: Git
    old: State
    new: State
    quarantine: Quarantine
    found: Found = field(default_factory=Found)
    blocked: set[str] = field(default_factory=set[str])

    def judge(self, work: Path) -> Found:
        refs = self._refs()
        if len(refs) > _MOST_REFS:
            raise GitFailed(f"{len(refs)} refs change, which are too many to be judged")
        index = self._index()
        self._block(refs, index)
        refs = [one for one in refs if one.group not in self.blocked]
        index = () if CHECKOUT in self.blocked else index
        stash = self.new.stash if STASH not in self.blocked else self.old.stash
        known = self._known()
        fresh = [one.commit for one in stash if one not in self.old.stash]
        wanted = [*objects_named(one.new for one in refs), *fresh, *_objects(index)]
        pack = ""
        if wanted:
            pack = self.context.pack(self.repository, self.quarantine, work, list(dict.fromkeys(wanted)), known)
        act = GitAct(
            task_id=self.context.question.directory.task_id,
            git=self.context.program,
            git_dir=printable_path(self.repository.directory),
            object_format=self.old.object_format,
            heads=(self.old.head, self.new.head),
            commits=(self.old.commit, self.new.commit),
            pack=pack,
            refs=tuple(refs),
            index=tuple(index),
            stash_old=self.old.stash,
            stash_new=stash,
        )
        self._classify(act, known)
        self._judge_files(act)
        return self.found

    # --- what changes ---------------------------------------------------------------------------------------------

    def _refs(self) -> list[RefChange]:
        """Return every ref that the task moved, HEAD too. In a linked worktree only HEAD is its own."""
        names = () if self.repository.is_worktree else sorted({*self.old.refs, *self.new.refs})
        found = [
            self._ref(name, self.old.refs.get(name, ""), self.new.refs.get(name, ""))
            for name in names
            if self.old.refs.get(name) != self.new.refs.get(name)
        ]
        if self.old.head != self.new.head:
            found.append(self._ref("HEAD", self.old.head, self.new.head))
        return found

    def _ref(self, name: str, old: str, new: str) -> RefChange:
        heads = (self.old.head, self.new.head)
        group = CHECKOUT if name == "HEAD" or f"{SYMBOLIC}{name}" in heads else name
        return RefChange(name=name, old=old, new=new, group=group, log="" if new else self._log(name))

    def _log(self, name: str) -> str:
        """Return the reflog of a ref that is removed: git removes it too."""
        log = self.user.directory / "logs" / os.fsdecode(path_bytes(name))
        if log.is_symlink() or not log.is_file() or log.stat().st_size > _LONGEST_LOG:
            return ""
        return log.read_bytes().decode("latin-1")

    def _index(self) -> tuple[IndexChange, ...]:
        """Return the paths whose entries differ; what only the user staged meanwhile is left out."""
        paths = sorted(
            path for path in {*self.old.index, *self.new.index} if self._staged(path, self.old, self.new)
        )
        if self._clashes("index"):
            base = self.quarantine.tree(self.old.commit)
            of_user = {path for path in paths if self.new.index.get(path, ()) == _entries(base, path)}
            paths = [path for path in paths if path not in of_user]
        return tuple(
            IndexChange(
                path=printable_path(path), old=self.old.index.get(path, ()), new=self.new.index.get(path, ())
            )
            for path in paths
        )

    @staticmethod
    def _staged(path: bytes, old: State, new: State) -> bool:
        return old.index.get(path) != new.index.get(path)

    # --- what must stay -------------------------------------------------------------------------------------------

    def _block(self, refs: Iterable[RefChange], index: Sequence[IndexChange]) -> None:
        """Find what cannot be brought over: an operation under way, and what the user moved meanwhile."""
        if mark := files.begun(self.repository):
            self._stay(CHECKOUT, mark, f"an operation of git is under way in the workspace ({mark})")
        for one in refs:
            if self._moved_by_user(one):
                self._stay(one.group, "", f"{one.name} was moved meanwhile")
        if self._clashes("index"):
            base = self.quarantine.tree(self.old.commit)
            for one in index:
                if one.old != _entries(base, path_bytes(one.path)):
                    self._stay(CHECKOUT, "", f"{one.path} was staged meanwhile")
        for path in self._working_files(index):
            if path in self.context.clashing:
                self._stay(CHECKOUT, "", f"{printable_path(path)} belongs to it, and was changed meanwhile")
        if self.old.stash != self.new.stash and self._clashes(STASH, f"logs/{STASH}"):
            self._stay(STASH, "", "the stash was changed meanwhile")
        if self._flags() != self._flags(new=True):
            self._stay("", "", "marks of the index (assume-unchanged, skip-worktree) are not brought over")

    def _stay(self, group: str, inner: str, why: str) -> None:
        first = group not in self.blocked
        self.blocked.add(group)
        if first:
            path = "/".join(filter(None, (printable_path(self.repository.directory), inner)))
            self.found.conflicts.append(Conflict(path=path, reason=f"{why}; it stays in the workspace"))

    def _clashes(self, *inner: str) -> bool:
        start = self.repository.directory + b"/"
        return any(start + path_bytes(one) in self.context.clashing for one in inner)

    def _moved_by_user(self, one: RefChange) -> bool:
        if self._clashes(one.name):
            base = self.context.bases.get(f"{printable_path(self.repository.directory)}/{one.name}")
            # The user's git may only have packed the ref: then its value is still the one that the task found.
            found = None if base is None or base.overtaken else base.sha256
            return found != hashlib.sha256(f"{one.old}\n".encode()).hexdigest()
        return self._clashes("packed-refs") and os.fsdecode(path_bytes(one.name)) not in self.repository.effects

    def _flags(self, *, new: bool = False) -> dict[bytes, int]:
        state = self.new if new else self.old
        return {
            path: flag for path, flag in state.flags.items() if path in self.old.index and path in self.new.index
        }

    def _top(self) -> bytes | None:
        """Return the directory of the working files, as the user's repository says; None for a bare one."""
        directory = self.repository.directory
        if self.repository.is_worktree:
            said = (self.user.directory / "gitdir").read_bytes().strip()
            return os.path.dirname(os.path.normpath(os.path.join(directory, said)))
        told = self.user.run("config", "--path", "core.worktree", accept=(0, 1)).rstrip(b"\n")
        if told:
            return os.path.normpath(os.path.join(directory, told))
        return os.path.dirname(directory) if os.path.basename(directory) == b".git" else None

    def _working_files(self, index: Iterable[IndexChange]) -> set[bytes]:
        top = self._top()
        if top is None:
            return set()
        effects = {one.path for one in self.context.every}
        return {path for one in index if (path := top + b"/" + path_bytes(one.path)) in effects}

    # --- what it means --------------------------------------------------------------------------------------------

    def _known(self) -> tuple[str, ...]:
        """Return what the user's refs name, as far as it is there."""
        gone = frozenset(self.quarantine.missing(self.old.tips))
        return tuple(one for one in self.old.tips if one not in gone)

    def _classify(self, act: GitAct, known: Sequence[str]) -> None:
        elsewhere = checked_out_elsewhere(self.repository.directory, self.context.moving)
        top = self._top() or self.repository.directory
        names = {*self.old.refs, *self.new.refs}
        judge = RefJudge(self.quarantine, known, names, elsewhere, top, self.context.question.judge_path)
        meanings = [(one.group, one, meaning) for one in act.refs for meaning in judge.meanings(one)]
        staged = self._index_meaning(act, judge, with_commits=any(group == CHECKOUT for group, _, _ in meanings))
        lost = list(objects_named(one.old for one in judge.moved))
        lost += [oid for one in judge.moved for oid in _logged(one.log)]
        rewrites = judge.rewritten(self.repository.directory, self._tips_after(act))
        shown: list[tuple[str, str]] = []
        for group, one, meaning in meanings:
            kind = ChangeKind.OVERWRITTEN if one.new else ChangeKind.DELETED
            change = meaning.change(self.repository.directory, kind, rewrites)
            self.found.classes.append(change)
            shown.append((group, change.path))
        for group, meaning in (*staged[0], *self._stash_meaning(act, judge)):
            change = meaning.change(self.repository.directory, ChangeKind.OVERWRITTEN)
            self.found.classes.append(change)
            shown.append((group, change.path))
        dropped = [one.commit for one in act.stash_old if one not in act.stash_new]
        objects = list(dict.fromkeys((*lost, *staged[1], *dropped)))
        gone = frozenset(self.quarantine.missing(objects))
        if shown:
            needs = tuple(map(printable_path, sorted(self._working_files(act.index))))
            kept = tuple(one for one in objects if one not in gone)
            self.found.acts.append(act.model_copy(update={"shown": tuple(shown), "lost": kept, "needs": needs}))

    def _tips_after(self, act: GitAct) -> tuple[str, ...]:
        """Return what refs, HEAD and stash would name."""
        after = dict(self.old.refs) | {one.name: one.new for one in act.refs if one.name != "HEAD"}
        head = self.old.commit if CHECKOUT in self.blocked else self.new.commit
        return objects_named((*after.values(), head, *(one.commit for one in act.stash_new)))

    def _index_meaning(
        self, act: GitAct, judge: RefJudge, *, with_commits: bool
    ) -> tuple[list[tuple[str, Meaning]], list[str]]:
        """Return what the index means besides the commits, and staged contents that nothing else would hold."""
        if not act.index:
            return [], []
        tree = self.quarantine.tree(self.old.commit)
        dropped = self._dropped(act, tree)
        entries = [entry for one in act.index for entry in _index_entries(one)]
        brought = self.quarantine.tree(self.new.commit) if with_commits else {}
        loud = [one for one in entries if brought.get(one.path, "") != f"{one.mode} {one.object} 0"]
        content = judge.content(loud)
        count = f"index: {len(act.index)} path{'s' if len(act.index) > 1 else ''}"
        why = "staged content is dropped: " + ", ".join(dropped) if dropped else ""
        meaning = Meaning(count, ChangeClass.HISTORY if why else ChangeClass.SILENT, why)
        told = [(CHECKOUT, one) for one in meaning.with_content(content) if one.reason or not with_commits]
        return told, list(dropped.values())

    def _dropped(self, act: GitAct, tree: Mapping[bytes, str]) -> dict[str, str]:
        """Return staged contents of the user, by path, that neither commits nor the index hold afterwards."""
        found: dict[str, str] = {}
        for one in act.index:
            for entry in one.old:
                mode, oid, stage = entry.split()
                if stage == "0" and mode != "160000" and tree.get(path_bytes(one.path)) != entry:
                    found[one.path] = oid
        if not found:
            return found
        commits = self.quarantine.brought(self._tips_after(act), self._known()) or ()
        held = {entry.object for entry in commits} | {value.split()[1] for value in tree.values()}
        held |= {entry.split()[1] for entries in self.new.index.values() for entry in entries}
        return {path: oid for path, oid in found.items() if oid not in held}

    def _stash_meaning(self, act: GitAct, judge: RefJudge) -> list[tuple[str, Meaning]]:
        old, new = act.stash_old, act.stash_new
        if old == new:
            return []
        dropped = len([one for one in old if one not in new])
        count = f"stash: {len(new)} entries, {len(old)} before"
        why = f"{dropped} of its entries are dropped" if dropped else ""
        if not why and new[len(new) - len(old) :] != old:
            why = "its entries change their order"
        meaning = Meaning(count, ChangeClass.HISTORY if why else ChangeClass.SILENT, why)
        fresh = [one.commit for one in new if one not in old]
        brought = self.quarantine.brought(fresh, judge.known)
        entries = None if brought is None else [_fresh(one) for one in brought if one.mode != ABSENT]
        return [(STASH, one) for one in meaning.with_content(judge.content(entries))]

    def _judge_files(self, act: GitAct) -> None:
        """Classify what stays files; what ended with a commit goes with it."""
        for inner, one in self.repository.effects.items():
            if files.is_taken(one, inner):
                self.found.taken.add(one.path)
        self.found.says |= files.judge_files(self.repository)
        ended = files.ended(self.repository)
        if CHECKOUT in self.blocked:
            self.found.taken |= {one.path for one in ended.values()}
        elif ended and self._is_committed():
            self.found.says |= {one.path: files.SILENT for one in ended.values()}
        going = frozenset(one.path for one in ended.values()) | self._working_files(act.index)
        self.found.going[act.git_dir] = going - self.found.taken

    def _is_committed(self) -> bool:
        """True if every operation that ended has become a commit on top of the old one."""
        if self.old.commit == self.new.commit or not self.quarantine.follows(self.old.commit, self.new.commit):
            return False
        for mark in files.ended_marks(self.repository):
            if mark not in files.COMMITTED:
                return False
            if mark == "MERGE_HEAD":
                merged = (self.user.directory / mark).read_text("ascii", "replace").split()
                if not all(self.quarantine.follows(one, self.new.commit) for one in merged):
                    return False
        return True


def _entries(tree: Mapping[bytes, str], path: bytes) -> tuple[str, ...]:
    return (tree[path],) if path in tree else ()


def _objects(index: Iterable[IndexChange]) -> list[str]:
    return [entry.split()[1] for one in index for entry in one.new if not entry.startswith(_GITLINK)]


def _index_entries(one: IndexChange) -> list[Entry]:
    """Return what an index change brings; a path that leaves the index keeps its file and its commits."""
    said = [entry.split() for entry in one.new]
    return [Entry(path_bytes(one.path), mode, oid, bool(one.old)) for mode, oid, stage in said if stage == "0"]


def _fresh(entry: Entry) -> Entry:
    return Entry(entry.path, entry.mode, entry.object, False)


def _logged(log: str) -> list[str]:
    """Return the commits that a reflog names."""
    return [words[1] for line in log.splitlines() if len(words := line.split(" ", 2)) == 3 and words[1].strip("0")]
