"""How a task's commits can be had whose branch stays where it is, because something beside it is in conflict.

Their objects can be applied, and `git cherry-pick` puts them on top of what is there now. That is safe only where
they begin at the commit at which the task began. What somebody committed after the task had copied a file or the
index, and before its own first commit, would be taken back; of history that it rewrote commits would come twice.
"""

from __future__ import annotations

import tempfile
from collections.abc import Iterable, Sequence
from pathlib import Path

from artoo.contracts.changes import Conflict
from artoo.ports.world import Files
from artoo.world.git_shadow import CannotJudge, shadow_of
from artoo.world.git_unit import Unit
from artoo.world.scan import Effect

_SHORT = 10
"""Digits of a commit's name that a person is told."""


def with_takeover(
    conflicts: Iterable[tuple[Effect, Conflict]],
    units: Iterable[Unit],
    looks: tuple[Files, Files],
    began: str | None,
    apart: Sequence[str] = (),
) -> tuple[Conflict, ...]:
    """The conflicts; those at branches say how what was committed there can be had. Blocking.

    `looks`: the files as they are, and as they would be. `began`: where HEAD was when the task began, if that is
    known. `apart`: where git itself is not taken from.
    """
    found = {path: (unit, commit) for unit in units for path, commit in unit.branches.items()}
    told: list[Conflict] = []
    for effect, conflict in conflicts:
        if effect.path in found:
            unit, commit = found[effect.path]
            how = _how(commit, safe=_begins_at(began, commit, unit.repository, looks, apart))
            conflict = conflict.model_copy(update={"reason": f"{conflict.reason}; with the rest applied, {how}"})
        told.append(conflict)
    return tuple(told)


def _how(commit: str, *, safe: bool) -> str:
    short = commit[:_SHORT]
    if safe:
        return f"git cherry-pick ..{short} takes over what the task committed"
    return f"git show {short} shows what the task committed; taken over, it may take back what is committed now"


def _begins_at(
    began: str | None, commit: str, repository: Path, looks: tuple[Files, Files], apart: Sequence[str]
) -> bool:
    """Whether `began` is where the task's commits and HEAD, as it is now, part."""
    if began is None:
        return False
    try:
        with tempfile.TemporaryDirectory(prefix="artoo-git-") as directory:
            was, would_be = (
                shadow_of(repository, files, Path(directory, name), apart=apart)
                for name, files in zip(("was", "would_be"), looks, strict=True)
            )
            head = was.git("rev-parse", "--verify", "HEAD").strip()
            return would_be.git("merge-base", "--all", head, commit).split() == [began]
    except (CannotJudge, OSError):
        return False
