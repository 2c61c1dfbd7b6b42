"""Everything that a task changes, read from its workspace: classified, and bound to a digest.

workspace next to the user's files ─► scan ─► three_way ─► git ─► describe ─► risk_table ─► ChangeSet
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from artoo.contracts.changes import Change, Conflict
from artoo.contracts.settling import ChangeClass, ClassifiedChange, Rewritten
from artoo.ports.workspace import Files
from artoo.workspace.changes.effect import Effect
from artoo.workspace.directory import WorkspaceDirectory, WorkspaceRecord


@dataclass(frozen=True, slots=True)
class Verdict:
    """The class of a path that a specialist decided (git, for instance), and the reason shown to the user.

    `rewrites`: what the repository loses to which the path belongs.
    """

    change_class: ChangeClass
    reason: str = ""
    rewrites: Rewritten | None = None


@dataclass(frozen=True, slots=True)
class GitQuestion:
    """What git's specialist is given. `before`: the user's files now; `after`: the files as the workspace has them.

    `effects` holds everything that differs and is in no conflict, in path order, git's own files included.
    `conflicting`: effects at paths that the user changed too.
    """

    directory: WorkspaceDirectory
    record: WorkspaceRecord
    effects: Sequence[Effect]
    conflicting: Sequence[Effect]
    before: Files
    after: Files


@dataclass(frozen=True, slots=True)
class GitPart:
    """What git's own files in a workspace mean.

    `taken`: paths of effects that git itself brings over (objects, refs, index, ...): they are no file changes.
    `says`: the class of effects that stay file changes (configuration, hooks). `classes`: one change for each thing
    that git changes instead (a moved ref), already classified. `conflicts` likewise. `digest` of exactly this part:
    an approval is bound to it. `plan` is what `workspace/git` needs to apply it; nobody else looks into it.
    """

    taken: frozenset[bytes] = frozenset()
    says: Mapping[bytes, Verdict] = field(default_factory=dict[bytes, Verdict])
    classes: tuple[ClassifiedChange, ...] = ()
    conflicts: tuple[Conflict, ...] = ()
    digest: str = ""
    plan: object = None


JudgeGit = Callable[[GitQuestion], GitPart]


def no_git(question: GitQuestion) -> GitPart:
    """Judge nothing: every path is an ordinary file."""
    return GitPart()


@dataclass(frozen=True, slots=True)
class ChangeSet:
    """What a task changes against the user's files.

    `effects`, `changes` and `classes` go together by index, in path order; `git.classes` come on top, and conflicts
    are in neither. `digest` (sha256, hex) of exactly this: what would be there, and what it would replace. `flood`:
    why there is so much that the user is asked about it. `notes`: bounds that were met, for the reader; what lies
    beyond a bound is asked about, never silent.
    """

    effects: tuple[Effect, ...] = ()
    changes: tuple[Change, ...] = ()
    classes: tuple[ClassifiedChange, ...] = ()
    conflicts: tuple[Conflict, ...] = ()
    digest: str = ""
    flood: str | None = None
    git: GitPart = field(default_factory=GitPart)
    notes: tuple[str, ...] = ()

    @property
    def empty(self) -> bool:
        """True if the user's files are already as the workspace has them."""
        return not (self.effects or self.conflicts or self.git.classes or self.git.conflicts)

    @property
    def all_classes(self) -> tuple[ClassifiedChange, ...]:
        """File changes and git's, in the order of their paths."""
        return tuple(sorted((*self.classes, *self.git.classes), key=lambda one: one.path))

    @property
    def all_conflicts(self) -> tuple[Conflict, ...]:
        return (*self.conflicts, *self.git.conflicts)

    @property
    def silent(self) -> bool:
        """True if none of it needs approval."""
        loud = any(one.change_class is not ChangeClass.SILENT for one in self.all_classes)
        return not loud and not self.all_conflicts and self.flood is None


def read_change_set(
    directory: WorkspaceDirectory, artoo_home: Path, *, judge_git: JudgeGit = no_git, after: Files | None = None
) -> ChangeSet:
    """Read the change set of a workspace in which no process runs. Blocking.

    `after`: its files if a sandbox lives; None: they are read from the disk (`files.layered`). Raises SandboxError
    when they cannot be read completely.
    """
    raise NotImplementedError
