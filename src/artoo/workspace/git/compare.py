"""Compare one repository inside and outside, pack its new objects, and say what blocks an apply.

The words in which the review names each difference are in `meaning.py`.

state outside and inside ─► changes ─► blocked groups ─► pack (inside) ─► quarantine ─► meanings ─► act
"""

from __future__ import annotations

import hashlib
import os
import stat
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from artoo.contracts.changes import ChangeKind, Conflict, path_bytes, printable_path
from artoo.contracts.settling import ChangeClass, ClassifiedChange, Rewritten
from artoo.workspace.changes.base import Base
from artoo.workspace.changes.change_set import GitQuestion
from artoo.workspace.changes.effect import Effect, Verdict
from artoo.workspace.fs.names import printable
from artoo.workspace.git.layout import Kind, PathPurpose, Repository, is_taken, part_of, under_way
from artoo.workspace.git.meaning import HEADS, PROGRAMS, REMOTES, TAGS, Meaning, RefJudge
from artoo.workspace.git.quarantine import ABSENT, Quarantine, TreeEntry
from artoo.workspace.git.run import Git, GitFailed
from artoo.workspace.git.state import (
    CHECKOUT,
    STASH,
    SYMBOLIC,
    ExtraFile,
    GitAct,
    IndexChange,
    Inside,
    RefChange,
    RunInside,
    State,
    objects_named,
    state_outside,
)

_MOST_REFS = 2_000
_MOST_EXTRA = 1 << 20

SILENT = Verdict(ChangeClass.SILENT)
_OF_PART = {
    PathPurpose.PROGRAMS: PROGRAMS,
    PathPurpose.OPERATION: Verdict(
        ChangeClass.HISTORY, "it ends an operation of git that was under way, a merge or a rebase"
    ),
    PathPurpose.UNKNOWN: Verdict(ChangeClass.PERSISTENCE, "it is in a repository, and git documents no such file"),
    PathPurpose.NESTED: Verdict(
        ChangeClass.PERSISTENCE, "it is among the repositories of submodules, and in none of them"
    ),
}
_CUT = Verdict(ChangeClass.HISTORY, "it changes how much of the history git shows")


@dataclass(slots=True)
class GitFindings:
    """The findings about all repositories. `going`: effects on files that are applied only together with the
    checkout."""

    acts: list[GitAct] = field(default_factory=list[GitAct])
    classes: list[ClassifiedChange] = field(default_factory=list[ClassifiedChange])
    conflicts: list[Conflict] = field(default_factory=list[Conflict])
    taken: set[bytes] = field(default_factory=set[bytes])
    says: dict[bytes, Verdict] = field(default_factory=dict[bytes, Verdict])
    going: dict[str, frozenset[bytes]] = field(default_factory=dict[str, frozenset[bytes]])

    def judge_files(self, repository: Repository) -> None:
        """Mark the effects that git itself transfers as taken, and classify the effects that remain file
        changes."""
        for inner, one in repository.effects.items():
            verdict = _CUT if inner in ("shallow", "info/grafts") else _OF_PART.get(part_of(inner))
            if is_taken(inner, one):
                self.taken.add(one.path)
            elif verdict is not None:
                self.says[one.path] = verdict

    def stays(self, repository: Repository, why: str, inner: str = "") -> None:
        """Report a part of the repository that cannot be applied, and the reason."""
        path = "/".join(filter(None, (printable_path(repository.directory), inner)))
        self.conflicts.append(Conflict(path=path, reason=f"{why}; it stays in the workspace"))


@dataclass(frozen=True, slots=True)
class Context:
    """One change set, and the objects that are needed to run git on it. `every`: all effects, including those in
    conflict.

    `clashing`: the paths in conflict. `moving`: repositories whose index the task changed. `bases`: the user's
    versions that the task found.
    """

    question: GitQuestion
    run_inside: RunInside
    program: str
    every: Mapping[bytes, Effect]
    clashing: Collection[bytes]
    moving: Collection[bytes]
    bases: Mapping[str, Base]


class Comparison:
    """Compares the user's version and the task's version of one repository. The user's may be missing. Raises
    GitFailed, OSError."""

    def __init__(self, context: Context, repository: Repository, work: Path) -> None:
        """Read the state of both repositories with git. `work`: an empty directory."""
        self._context, self._repository, self._work = context, repository, work
        self._shown = printable_path(repository.directory)
        self._created = repository.kind is Kind.CREATED
        self._user = Git(context.program, Path(os.fsdecode(repository.directory)))
        (work / "tmp").mkdir()
        self._inside = Inside(context.program, self._user.directory, context.run_inside, work / "tmp")
        self._new = self._inside.state()
        # Git's answers from inside the sandbox are not trusted. A false answer only leads to another operation, and
        # that operation is judged by its real effect.
        kind = self._new.object_format
        self._old = State(kind) if self._created else state_outside(self._user)
        if self._old.object_format != kind:
            raise GitFailed("the task made another kind of repository of it")
        user = None if self._created else self._user
        self._quarantine = Quarantine(work / "quarantine", context.program, kind, user)
        self._tree = self._quarantine.tree(self._old.commit)
        self._top = self._worktree()
        self._blocked: set[str] = set()

    def add_to(self, found: GitFindings) -> None:
        """Judge the repository, and add the result to `found`."""
        if self._created and (mark := next(self._under_way(), None)) is not None:
            found.taken |= {one.path for one in self._repository.effects.values()}
            found.stays(self._repository, f"an operation of git is under way in the workspace ({mark})", mark)
            return
        refs, index = self._refs(), self._index()
        if len(refs) > _MOST_REFS and not self._created:
            raise GitFailed(f"{len(refs)} refs change, which are too many to be judged")
        if not self._created:
            self._block(refs, index, found)
        act = GitAct(
            task_id=self._context.question.directory.task_id,
            git=self._context.program,
            git_dir=self._shown,
            object_format=self._old.object_format,
            heads=(self._old.head, self._new.head),
            commits=(self._old.commit, self._new.commit),
            refs=tuple(one for one in refs if one.group not in self._blocked),
            index=() if CHECKOUT in self._blocked else index,
            stash_old=self._old.stash,
            stash_new=self._old.stash if STASH in self._blocked else self._new.stash,
            needs=tuple(map(printable_path, sorted(self._working_files(index)))),
        )
        if self._created:
            act = self._with_settings(act)
        gone = self._quarantine.missing(self._old.tips)
        known = tuple(one for one in self._old.tips if one not in gone)
        act = act.model_copy(update={"pack": self._pack(act, known)})
        changes, lost = self._meanings(act, known)
        found.classes += [change for _, change in changes]
        if changes:
            shown = tuple((group, change.path) for group, change in changes)
            found.acts.append(act.model_copy(update={"shown": shown, "lost": lost}))
        self._judge_files(act, found)

    # --- what changes ---------------------------------------------------------------------------------------------

    def _refs(self) -> list[RefChange]:
        """Return every ref that the task moved, including HEAD. In a linked worktree only HEAD is compared."""
        old, new = dict(self._old.refs), dict(self._new.refs)
        if self._repository.is_worktree:
            old, new = {}, {}
        old["HEAD"], new["HEAD"] = self._old.head or f"{SYMBOLIC}{HEADS}none", self._new.head
        heads = (self._old.head, self._new.head)
        return [
            RefChange(
                name=name,
                old=old.get(name, ""),
                new=new.get(name, ""),
                group=CHECKOUT if self._created or name == "HEAD" or f"{SYMBOLIC}{name}" in heads else name,
            )
            for name in sorted({*old, *new})
            if old.get(name) != new.get(name)
        ]

    def _index(self) -> tuple[IndexChange, ...]:
        """Return the index entries that differ, except those of paths that only the user has staged meanwhile."""
        old, new = self._old.index, self._new.index
        paths = sorted(path for path in {*old, *new} if old.get(path) != new.get(path))
        # The user's git rewrites the index at every `git status`, so different bytes of the file mean nothing.
        if self._clashes("index"):
            paths = [path for path in paths if new.get(path, ()) != self._committed(path)]
        return tuple(
            IndexChange(path=printable_path(path), old=old.get(path, ()), new=new.get(path, ())) for path in paths
        )

    def _committed(self, path: bytes) -> tuple[str, ...]:
        return (self._tree[path],) if path in self._tree else ()

    def _with_settings(self, act: GitAct) -> GitAct:
        """Add the fields that are needed only if the act creates a repository."""
        own = ("core.repositoryformatversion", "extensions.objectformat", "extensions.refstorage")
        settings = [one for one in self._new.settings if one[0] not in own]
        settings.append((own[0], "0" if act.object_format == "sha1" else "1"))
        if act.object_format != "sha1":
            settings.append((own[1], act.object_format))
        shallow = self._repository.effects.get("shallow")
        return act.model_copy(
            update={
                "created": True,
                "settings": tuple(settings),
                "shallow": "" if shallow is None else _read(shallow).decode("ascii", "replace"),
                "extras": tuple(self._extras()),
                "needs": () if self._top is None else (printable_path(self._top),),
            }
        )

    def _extras(self) -> Iterator[ExtraFile]:
        """Yield the hooks and similar files of a new repository. Files of git's own template are left out."""
        for inner, one in self._repository.effects.items():
            if (
                part_of(inner) is PathPurpose.PROGRAMS
                and inner not in ("config", "shallow")
                and not is_taken(inner, one)
            ):
                content = _read(one)
                if inner != "info/exclude" or any(
                    line.strip()[:1] not in (b"#", b"") for line in content.splitlines()
                ):
                    mode = 0o644 if one.after is None else one.after.mode & 0o777
                    yield ExtraFile(inner=inner, content=content.decode("latin-1"), mode=mode)

    # --- blocked groups -------------------------------------------------------------------------------------------

    def _block(self, refs: Sequence[RefChange], index: Sequence[IndexChange], found: GitFindings) -> None:
        """Block the groups that cannot be applied, because an operation is unfinished or the user has changed
        them."""
        for group, why, inner in self._reasons(refs, index):
            if group not in self._blocked:
                self._blocked.add(group)
                found.stays(self._repository, why, inner)

    def _reasons(self, refs: Sequence[RefChange], index: Sequence[IndexChange]) -> Iterator[tuple[str, str, str]]:
        for mark in self._under_way():
            yield CHECKOUT, f"an operation of git is under way in the workspace ({mark})", mark
        for one in refs:
            if self._moved_by_user(one):
                yield one.group, f"{one.name} was moved meanwhile", ""
        for one in refs:
            if (other := self._in_the_way(one, refs)) is not None:
                yield one.group, f"{one.name} cannot be made while there is {other}", ""
        for one in index if self._clashes("index") else ():
            if one.old != self._committed(path_bytes(one.path)):
                yield CHECKOUT, f"{one.path} was staged meanwhile", ""
        for path in self._working_files(index):
            if path in self._context.clashing:
                yield CHECKOUT, f"{printable_path(path)} belongs to it, and was changed meanwhile", ""
        if self._old.stash != self._new.stash and (self._clashes(STASH) or self._clashes(f"logs/{STASH}")):
            yield STASH, "the stash was changed meanwhile", ""

    def _under_way(self) -> Iterator[str]:
        """Yield the names of files by which git marks an unfinished merge, rebase or similar operation of the
        task."""
        for inner, one in self._repository.effects.items():
            if one.after is not None and not one.in_place and under_way(inner):
                yield inner.partition("/")[0]

    def _clashes(self, inner: str) -> bool:
        return self._repository.directory + b"/" + path_bytes(inner) in self._context.clashing

    def _moved_by_user(self, one: RefChange) -> bool:
        if self._clashes(one.name):
            base = self._context.bases.get(f"{self._shown}/{one.name}")
            # If the user's git has only moved the ref into its packed file, the value is still the one that the
            # task found.
            found = None if base is None or base.overtaken else base.sha256
            return found != hashlib.sha256(f"{one.old}\n".encode()).hexdigest()
        return self._clashes("packed-refs") and os.fsdecode(path_bytes(one.name)) not in self._repository.effects

    def _in_the_way(self, one: RefChange, refs: Sequence[RefChange]) -> str | None:
        """Return an existing ref of the user that prevents a new one, as `a` prevents `a/b`. Return None if there
        is none."""
        if one.old or not one.new:
            return None
        stay = self._old.refs.keys() - {
            other.name for other in refs if not other.new and other.group not in self._blocked
        }
        return next(
            (name for name in stay if one.name.startswith(f"{name}/") or name.startswith(f"{one.name}/")), None
        )

    def _worktree(self) -> bytes | None:
        """Return the worktree directory, by the settings of the user's repository. Return None for a bare
        repository."""
        directory = self._repository.directory
        told = b""
        if self._repository.is_worktree:
            told = os.path.dirname((self._user.directory / "gitdir").read_bytes().strip())
        elif not self._created:
            told = self._user.run("config", "--path", "core.worktree", accept=(0, 1)).rstrip(b"\n")
        if told:
            return os.path.normpath(os.path.join(directory, told))
        return os.path.dirname(directory) if os.path.basename(directory) == b".git" else None

    def _working_files(self, index: Iterable[IndexChange]) -> set[bytes]:
        if self._top is None or self._created:
            return set()
        return {path for one in index if (path := self._top + b"/" + path_bytes(one.path)) in self._context.every}

    # --- meanings -------------------------------------------------------------------------------------------------

    def _pack(self, act: GitAct, known: Sequence[str]) -> str:
        """Pack the missing objects inside the sandbox, check the pack outside of it, and return its printable
        path."""
        staged = [entry.split() for one in act.index for entry in one.new]
        wanted = objects_named(
            (
                *(one.new for one in act.refs),
                *(one.commit for one in act.stash_new if one not in act.stash_old),
                *(oid for mode, oid, _ in staged if mode != "160000"),
            )
        )
        # Often no object is missing, for example if the task only deleted a branch. The sandbox is not started
        # again in that case.
        missing = self._quarantine.missing(wanted) if wanted else ()
        pack = (
            self._context.question.directory.base / "git" / hashlib.sha256(self._repository.directory).hexdigest()
        )
        if act.shallow:
            (self._work / "quarantine" / "shallow").write_text(act.shallow)
        if missing:
            pack.parent.mkdir(mode=0o700, exist_ok=True)
            self._inside.pack(sorted(missing), known).rename(pack)
            self._quarantine.add(pack)
        if wanted:
            self._quarantine.require_complete(wanted, known)
        return printable(pack) if missing else ""

    def _meanings(
        self, act: GitAct, known: Sequence[str]
    ) -> tuple[list[tuple[str, ClassifiedChange]], tuple[str, ...]]:
        """Return the changes that the user sees, each with its group, and the objects that would be lost."""
        names, top = {*self._old.refs, *self._new.refs}, self._top or self._repository.directory
        context, elsewhere = self._context, self._elsewhere()
        judge_path = context.question.judge_path
        judge = RefJudge(self._quarantine, known, names, elsewhere, top, judge_path, context.every.keys())
        if self._created:
            return [(CHECKOUT, self._change(one)) for one in self._of_new(act, judge)], ()
        moved = [one for one in act.refs if judge.loss(one) and one.old]
        dropped = [one.commit for one in act.stash_old if one not in act.stash_new]
        staged = self._dropped(act)
        rewrites = self._rewritten(moved, act)
        shown = [
            (one.group, self._change(meaning, rewrites, removed=not one.new))
            for one in act.refs
            for meaning in judge.meanings(one)
        ]
        shown += [(CHECKOUT, self._change(one)) for one in self._of_index(act, judge, staged)]
        shown += [(STASH, self._change(one)) for one in judge.stash(act.stash_old, act.stash_new)]
        logs = [oid for one in moved if not one.new for oid in self._logged(one.name)]
        lost = list(objects_named((*(one.old for one in moved), *logs, *dropped, *staged.values())))
        gone = self._quarantine.missing(lost)
        return shown, tuple(one for one in lost if one not in gone)

    def _change(
        self, one: Meaning, rewrites: Rewritten | None = None, *, removed: bool = False
    ) -> ClassifiedChange:
        return ClassifiedChange(
            path=f"{self._shown} ({one.label})",
            change_class=one.change_class,
            kind=ChangeKind.DELETED if removed else ChangeKind.OVERWRITTEN,
            reason=one.reason,
            rewrites=rewrites if one.change_class is ChangeClass.HISTORY else None,
        )

    def _elsewhere(self) -> set[str]:
        """Return the branches that are checked out in linked worktrees whose index the task does not change."""
        heads = self._user.directory.glob("worktrees/*/HEAD")
        still = [one for one in heads if os.fsencode(one.parent) not in self._context.moving]
        return {one.read_text("utf-8", "replace").strip().removeprefix(SYMBOLIC) for one in still}

    def _logged(self, name: str) -> list[str]:
        """Return the commits in the reflog of a removed ref, because git removes the reflog together with the
        ref."""
        raw = os.fsdecode(path_bytes(name))
        return self._user.run("log", "-g", "--format=%H", raw, "--", accept=(0, 128)).decode().split()

    def _rewritten(self, moved: Sequence[RefChange], act: GitAct) -> Rewritten | None:
        if not moved:
            return None
        branches, tags = (sum(one.name.startswith(kind) for one in moved) for kind in (HEADS, TAGS))
        commits = self._quarantine.beyond(objects_named(one.old for one in moved), self._tips_after(act))
        return Rewritten(repository=self._shown, branches=branches, tags=tags, commits=len(commits))

    def _tips_after(self, act: GitAct) -> tuple[str, ...]:
        """Return the objects to which refs, HEAD and stash will point after the apply."""
        after = dict(self._old.refs) | {one.name: one.new for one in act.refs if one.name != "HEAD"}
        head = self._old.commit if CHECKOUT in self._blocked else self._new.commit
        return objects_named((*after.values(), head, *(one.commit for one in act.stash_new)))

    def _of_index(self, act: GitAct, judge: RefJudge, dropped: Mapping[str, str]) -> tuple[Meaning, ...]:
        """Return the meanings of the index changes, except changes that new commits contain."""
        if not act.index:
            return ()
        with_commits = any(one.group == CHECKOUT for one in act.refs)
        committed = self._quarantine.tree(self._new.commit) if with_commits else {}
        staged = [
            TreeEntry(path_bytes(one.path), entry[:6], entry.split()[1], bool(one.old))
            for one in act.index
            for entry in one.new
            if committed.get(path_bytes(one.path)) != entry
        ]
        staged += self._unstaged(act, committed if with_commits else self._tree)
        found = judge.index(len(act.index), staged, dropped)
        return tuple(one for one in found if one.reason or not with_commits)

    def _unstaged(self, act: GitAct, committed: Mapping[bytes, str]) -> Iterator[TreeEntry]:
        """Yield the paths that were removed from the index although the new commit contains them and their files
        remain."""
        top = self._top or self._repository.directory
        for one in act.index:
            path = path_bytes(one.path)
            if one.old and not one.new and path in committed and top + b"/" + path not in self._context.every:
                yield TreeEntry(path, ABSENT, "", existed=True)

    def _dropped(self, act: GitAct) -> dict[str, str]:
        """Return the contents that the user has staged and that will be in no commit and not in the index after the
        apply, by path."""
        entries = ((one.path, entry.split(), entry) for one in act.index for entry in one.old)
        found = {
            path: oid
            for path, (mode, oid, stage), entry in entries
            if stage == "0" and mode != "160000" and self._tree.get(path_bytes(path)) != entry
        }
        if not found:
            return found
        gone = self._quarantine.missing(self._old.tips)
        known = [one for one in self._old.tips if one not in gone]
        commits = self._quarantine.brought(self._tips_after(act), known) or ()
        held = {entry.object for entry in commits} | {value.split()[1] for value in self._tree.values()}
        held |= {entry.split()[1] for entries in self._new.index.values() for entry in entries}
        return {path: oid for path, oid in found.items() if oid not in held}

    def _of_new(self, act: GitAct, judge: RefJudge) -> Iterator[Meaning]:
        """Yield the meanings of a new repository. Files that the user has or the task writes are judged as such."""
        tips = [one.new for one in act.refs if SYMBOLIC not in one.new and not one.name.startswith(REMOTES)]
        shown = {path for path, one in self._context.every.items() if one.after is not None}
        trees = [] if self._top is None else [self._quarantine.tree(tip) for tip in tips]
        staged = {path: said for tree in trees for path, said in tree.items()}
        staged |= {path_bytes(one.path): one.new[0] for one in act.index if one.new}
        entries = [
            TreeEntry(path, said[:6], said.split()[1], existed=os.path.lexists(judge.top + b"/" + path))
            for path, said in staged.items()
            if judge.top + b"/" + path not in shown and not self._is_users(judge.top + b"/" + path, said.split()[1])
        ]
        return judge.new_repository(act, self._quarantine.beyond(self._new.tips, ()), entries)

    def _is_users(self, path: bytes, oid: str) -> bool:
        """True if the user's file at a path has the content of a blob, so that checking out the blob would change
        nothing."""
        try:
            content = os.readlink(path) if os.path.islink(path) else Path(os.fsdecode(path)).read_bytes()
        except OSError:  # the path does not exist, or is not a readable file
            return False
        kind = hashlib.sha256 if self._old.object_format == "sha256" else hashlib.sha1
        return kind(b"blob %d\0" % len(content) + content).hexdigest() == oid

    # --- files ----------------------------------------------------------------------------------------------------

    def _judge_files(self, act: GitAct, found: GitFindings) -> None:
        """Classify the effects that remain file changes.

        If the task ended an operation with a commit, the files that mark the operation are removed only if the
        commit is applied.
        """
        if self._created:
            found.taken |= {one.path for one in self._repository.effects.values()}
            return
        found.judge_files(self._repository)
        ended = {
            inner: one for inner, one in self._repository.effects.items() if part_of(inner) is PathPurpose.OPERATION
        }
        paths = {one.path for one in ended.values() if one.after is None}
        if CHECKOUT in self._blocked:
            found.taken |= paths
        elif paths and self._is_merged(list(filter(under_way, ended))):
            found.says |= dict.fromkeys(paths, SILENT)
        found.going[self._shown] = frozenset(paths | self._working_files(act.index)) - found.taken

    def _is_merged(self, marks: Sequence[str]) -> bool:
        """True if the task only ended a merge, and its commit contains the commits that were to be merged."""
        merged = self._user.directory / "MERGE_HEAD"
        tips = merged.read_text("ascii", "replace").split() if marks == ["MERGE_HEAD"] else []
        return bool(tips) and all(
            self._quarantine.follows(one, self._new.commit) for one in (*tips, self._old.commit)
        )


def _read(effect: Effect) -> bytes:
    """Read the task's version of a file. Links are not followed."""
    descriptor = os.open(effect.source, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    with os.fdopen(descriptor, "rb") as file:
        content = file.read(_MOST_EXTRA + 1) if stat.S_ISREG(os.fstat(descriptor).st_mode) else None
    if content is None or len(content) > _MOST_EXTRA:
        raise GitFailed(f"{effect.shown} is no file, or too large")
    return content
