"""What a repository means that the task made: git makes it again outside, from checked objects and its settings."""

from __future__ import annotations

import os
import re
import stat
from collections.abc import Iterator
from pathlib import Path

from artoo.contracts.changes import ChangeKind, Conflict, Node, printable_path
from artoo.contracts.settling import ChangeClass
from artoo.workspace.changes.effect import Effect
from artoo.workspace.git import files
from artoo.workspace.git.context import Context, Found
from artoo.workspace.git.judge_refs import HEADS, Meaning, RefJudge
from artoo.workspace.git.layout import Part, Repository, part_of
from artoo.workspace.git.plan import CHECKOUT, SYMBOLIC, ExtraFile, GitAct, IndexChange, RefChange
from artoo.workspace.git.quarantine import Entry, Quarantine
from artoo.workspace.git.run import GitFailed
from artoo.workspace.git.state import State, state_inside

_MOST_BRANCHES = 100
_MOST_EXTRA = 1 << 20
_SETTINGS = re.compile(
    r"core\.(repositoryformatversion|filemode|bare|logallrefupdates|ignorecase|precomposeunicode|symlinks)\n.*"
    r"|remote\..*\.(fetch|tagopt)\n.*|branch\..*\.(remote|merge|rebase)\n.*|user\.(name|email)\n.*"
    r"|extensions\.(objectformat|refstorage)\n.*"
    r"|remote\..*\.url\n(https?://|ssh://|git://|file://|/|\./|\.\./|[\w.-]+@[\w.-]+:)[^\n]*"
)
"""Settings that name no program and lead git nowhere else, as `KEY\\nVALUE`."""

_OWN_SETTINGS = ("core.repositoryformatversion", "extensions.objectformat", "extensions.refstorage")
_IN_COMMENTS = re.compile(rb"(\s*(#[^\n]*)?\n?)*")


def judge_created(context: Context, repository: Repository, work: Path) -> Found:
    """Judge a repository that was not there. `work`: an empty directory. Raises GitFailed, OSError."""
    directory = printable_path(repository.directory)
    found = Found(taken={one.path for one in repository.effects.values()})
    if repository.is_worktree:
        why = (
            "a linked worktree that the task added; it stays in the workspace, and git worktree add makes it again"
        )
        found.conflicts.append(Conflict(path=directory, reason=why))
        return found
    if mark := files.begun(repository):
        why = f"an operation of git is under way in it ({mark}); the repository stays in the workspace"
        found.conflicts.append(Conflict(path=directory, reason=why))
        return found
    (work / "tmp").mkdir()
    place = Path(os.fsdecode(repository.directory))
    state = state_inside(context.program, place, context.run_inside, work / "tmp")
    quarantine = Quarantine.make(work / "quarantine", None, state.object_format, context.program)
    act = _act(context, repository, state)
    shallow = _source(repository, "shallow")
    if shallow:
        (work / "quarantine" / "shallow").write_bytes(shallow)
        act = act.model_copy(update={"shallow": tuple(shallow.decode("ascii", "replace").split())})
    staged = [entry.split() for one in act.index for entry in one.new]
    blobs = [oid for mode, oid, _ in staged if mode != "160000"]
    wanted = list(dict.fromkeys((*state.tips, *blobs)))
    act = act.model_copy(update={"pack": context.pack(repository, quarantine, work, wanted, ()) if wanted else ""})
    meanings = [*_meanings(context, repository, quarantine, state, act)]
    meanings += [Meaning(one.inner, ChangeClass.PERSISTENCE, files.PROGRAMS.reason) for one in act.extras]
    found.classes += [one.change(repository.directory, ChangeKind.OVERWRITTEN) for one in meanings]
    found.acts.append(act.model_copy(update={"shown": tuple((CHECKOUT, one.path) for one in found.classes)}))
    return found


def _act(context: Context, repository: Repository, state: State) -> GitAct:
    refs = [RefChange(name=name, old="", new=new, group=CHECKOUT) for name, new in sorted(state.refs.items())]
    refs.append(RefChange(name="HEAD", old=f"{SYMBOLIC}{HEADS}none", new=state.head, group=CHECKOUT))
    index = tuple(
        IndexChange(path=printable_path(path), old=(), new=entries) for path, entries in sorted(state.index.items())
    )
    settings = [one for one in state.settings if one[0] not in _OWN_SETTINGS]
    settings.append(("core.repositoryformatversion", "0" if state.object_format == "sha1" else "1"))
    if state.object_format != "sha1":
        settings.append(("extensions.objectformat", state.object_format))
    top = os.path.dirname(repository.directory)
    return GitAct(
        task_id=context.question.directory.task_id,
        git=context.program,
        git_dir=printable_path(repository.directory),
        object_format=state.object_format,
        heads=("", state.head),
        commits=("", state.commit),
        refs=tuple(refs),
        index=index,
        stash_new=state.stash,
        needs=(printable_path(top),) if os.path.basename(repository.directory) == b".git" else (),
        created=True,
        settings=tuple(settings),
        extras=tuple(_extras(repository)),
    )


def _meanings(
    context: Context, repository: Repository, quarantine: Quarantine, state: State, act: GitAct
) -> tuple[Meaning, ...]:
    """Return what the new repository means: settings that are not plain, and what its branches bring."""
    strange = sorted({key for key, value in act.settings if not _SETTINGS.fullmatch(f"{key}\n{value}")})
    branches = [
        new for name, new in state.refs.items() if not name.startswith("refs/remotes/") and SYMBOLIC not in new
    ]
    commits = quarantine.beyond(state.tips, ())
    count = "1,000 commits or more" if len(commits) >= 1000 else f"{len(commits)} commit{'s' * (len(commits) != 1)}"
    meaning = Meaning(f"new repository: {count}", ChangeClass.SILENT)
    if strange:
        why = f"its settings may start programs, or lead git elsewhere: {', '.join(strange)}"
        meaning = Meaning(meaning.label, ChangeClass.PERSISTENCE, why)
    if len(branches) > _MOST_BRANCHES:
        return meaning.with_content((ChangeClass.HISTORY, "it has too many branches to be judged"))
    bare = not act.needs
    top = repository.directory if bare else os.path.dirname(repository.directory)
    judge = RefJudge(quarantine, (), (), (), top, context.question.judge_path)
    there = {one.path for one in context.every if one.after is not None}
    trees = {} if bare else {path: said for tip in branches for path, said in quarantine.tree(tip).items()}
    trees |= {path: said for one in act.index for path, said in [(os.fsencode(one.path), one.new[0])] if one.new}
    entries = [
        Entry(path, *said.split()[:2], existed=False)
        for path, said in trees.items()
        if top + b"/" + path not in there
    ]
    return meaning.with_content(judge.content(entries))


def _extras(repository: Repository) -> Iterator[ExtraFile]:
    """Return hooks and the like, which git does not make. Raises GitFailed if they are too large or no files."""
    total = 0
    for inner, one in repository.effects.items():
        if part_of(inner) is not Part.PROGRAMS or inner in ("config", "shallow") or files.is_taken(one, inner):
            continue
        if one.after is None or one.after.node is not Node.FILE:
            raise GitFailed(f"{inner} is no file")
        content = _read(one)
        total += len(content)
        if total > _MOST_EXTRA:
            raise GitFailed("its hooks are too large")
        if inner != "info/exclude" or not _IN_COMMENTS.fullmatch(content):
            yield ExtraFile(inner=inner, content=content.decode("latin-1"), mode=one.after.mode & 0o777)


def _source(repository: Repository, inner: str) -> bytes:
    one = repository.effects.get(inner)
    return b"" if one is None or one.after is None else _read(one)


def _read(effect: Effect) -> bytes:
    """Read the task's version of a file, never through a link. Raises OSError."""
    descriptor = os.open(effect.source, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    with os.fdopen(descriptor, "rb") as file:
        if not stat.S_ISREG(os.fstat(descriptor).st_mode):
            raise GitFailed("a hook is no file")
        return file.read(_MOST_EXTRA + 1)
