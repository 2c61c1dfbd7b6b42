"""What the judges of one change set share, and what they find."""

from __future__ import annotations

import hashlib
import os
import stat
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from artoo.contracts.changes import Conflict, printable_path
from artoo.contracts.settling import ClassifiedChange
from artoo.workspace.changes.base import Base
from artoo.workspace.changes.change_set import GitQuestion
from artoo.workspace.changes.effect import Effect
from artoo.workspace.changes.verdict import Verdict
from artoo.workspace.git.layout import Repository
from artoo.workspace.git.plan import GitAct
from artoo.workspace.git.quarantine import Quarantine
from artoo.workspace.git.run import GitFailed
from artoo.workspace.git.state import RunInside, pack_inside


@dataclass(slots=True)
class Found:
    """What was found in one repository, or in all. `going`: file effects that go with what is checked out."""

    acts: list[GitAct] = field(default_factory=list[GitAct])
    classes: list[ClassifiedChange] = field(default_factory=list[ClassifiedChange])
    conflicts: list[Conflict] = field(default_factory=list[Conflict])
    taken: set[bytes] = field(default_factory=set[bytes])
    says: dict[bytes, Verdict] = field(default_factory=dict[bytes, Verdict])
    going: dict[str, frozenset[bytes]] = field(default_factory=dict[str, frozenset[bytes]])

    def add(self, other: Found) -> None:
        """Add what was found in another repository."""
        self.acts += other.acts
        self.classes += other.classes
        self.conflicts += other.conflicts
        self.taken |= other.taken
        self.says |= other.says
        self.going |= other.going


@dataclass(frozen=True, slots=True)
class Context:
    """One change set, and the means to ask git about it.

    `every`: all effects, conflicting ones included. `clashing`: the paths of those. `moving`: directories of
    repositories whose index the task changed. `bases`: the user's versions that the task found.
    """

    question: GitQuestion
    run_inside: RunInside
    program: str
    every: Sequence[Effect]
    clashing: Collection[bytes]
    moving: Collection[bytes]
    bases: Mapping[str, Base]

    def pack(
        self,
        repository: Repository,
        quarantine: Quarantine,
        work: Path,
        wanted: Sequence[str],
        known: Sequence[str],
    ) -> str:
        """Have what is missing packed inside, check it in the quarantine, and return the printable path of the pack.

        Empty if nothing is missing. Raises GitFailed, OSError.
        """
        missing = quarantine.missing(wanted)
        if not missing:
            quarantine.require_complete(wanted, known)
            return ""
        directory = Path(os.fsdecode(repository.directory))
        made = pack_inside(self.program, directory, self.run_inside, work / "tmp", missing, known)
        if not stat.S_ISREG(made.lstat().st_mode):
            raise GitFailed("what git packed cannot be read")
        store = self.question.directory.base / "git"
        store.mkdir(mode=0o700, exist_ok=True)
        pack = store / f"{hashlib.sha256(repository.directory).hexdigest()[:16]}.pack"
        made.rename(pack)
        quarantine.add(pack, wanted, known)
        return printable_path(os.fsencode(pack))
