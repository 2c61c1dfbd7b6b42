"""Review and merge of a submission: what it would do, whether Law 1 wants the operator, and doing it whole."""

from __future__ import annotations

import os
import time
import uuid
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from artoo.contracts.agents import SubmittedChange
from artoo.contracts.changes import (
    ApplyReport,
    Change,
    ChangeKind,
    Conflict,
    Node,
    digest_of,
    path_bytes,
    printable_path,
)
from artoo.contracts.confirmation import AskedAct
from artoo.contracts.errors import SandboxError
from artoo.ports.sandbox import TaskLedger
from artoo.tools.layers.effects import Outlook, outlook
from artoo.tools.layers.layer import PROJECT, TREES, Layer
from artoo.tools.layers.submission import copy_changed, parent_and_name, submitted
from artoo.tools.text_file import NotPlainFile, read_limited
from artoo.tools.unified import unified
from artoo.world.classify import Places
from artoo.world.decide import Decision, decide
from artoo.world.describe import describe
from artoo.world.files import set_metadata
from artoo.world.journal import StateRecord
from artoo.world.nodes import read_state
from artoo.world.scan import Effect
from artoo.world.stage import remove_tree
from artoo.world.transaction import apply_effects

DIFF_BYTES = 16 * 1024
MOST_DIFF_LINES = 400
"""Lines of diffs that one submission shows, all its files together."""


POLICY_KINDS: dict[ChangeKind, str] = {
    ChangeKind.CREATED: "create",
    ChangeKind.OVERWRITTEN: "edits",
    ChangeKind.DELETED: "delete",
    ChangeKind.DIRECTORY_REPLACED: "delete",
    ChangeKind.METADATA: "mode",
    ChangeKind.LINK: "link",
    ChangeKind.SPECIAL: "special",
}
"""What the policy language calls each kind of change."""


@dataclass(frozen=True, slots=True)
class Proposal:
    """What a merge would do to the real files now. An approval is bound to `digest`.

    `conflicts`: what the user changed meanwhile; with one, nothing can be merged. `decision` is the gate's.
    """

    changes: tuple[Change, ...]
    conflicts: tuple[Conflict, ...]
    decision: Decision
    shown: tuple[SubmittedChange, ...]

    @property
    def digest(self) -> str:
        return digest_of(self.changes)

    @property
    def asks(self) -> tuple[str, ...]:
        """Why the operator must agree, one reason a line; empty: nothing but ordinary new files."""
        lines = [f"{change.path}: {reason}" for change, reason in self.decision.ask]
        return (*lines, self.decision.flood) if self.decision.flood is not None else tuple(lines)

    @property
    def acts(self) -> tuple[AskedAct, ...]:
        """What needs a yes, as policies name it."""
        acts = [
            AskedAct(verb=POLICY_KINDS[change.kind], target=change.path, sensitive=change.sensitive)
            for change, _ in self.decision.ask
        ]
        if self.decision.flood is not None:
            acts.append(AskedAct(verb="flood", target=self.decision.flood))
        return tuple(acts)


def propose(layer: Layer, artoo_home: Path) -> Proposal:
    """Looks at a submission beside the real files. Blocking; raises SandboxError when it cannot be read."""
    try:
        found = submitted(layer)
        seen = outlook(found, _originals(layer), layer.submitted)
        changes = _described(layer, artoo_home, seen)
        return Proposal(changes, seen.conflicts, decide(changes), tuple(_shown(layer, changes)))
    except OSError as error:
        raise SandboxError(f"the submission cannot be compared with {layer.origin.project}: {error}") from error


def merge(layer: Layer, artoo_home: Path, digest: str) -> ApplyReport:
    """Makes the changes, all or none, undone by `artoo undo <board task>`. Blocking.

    `digest` is that of the proposal that was approved; conflicts, and a proposal that reads otherwise now, change
    nothing. May be repeated after a crash: what is done already is not done again. Raises SandboxError.
    """
    started_ns = time.time_ns()
    stage = layer.place / f"merge-{uuid.uuid4().hex}"
    try:
        found = submitted(layer)
        stage.mkdir(mode=0o700)
        copy_changed(found, layer.submitted, stage)
        seen = outlook(found, _originals(layer), stage)
        if seen.conflicts:
            return ApplyReport(applied=False, conflicts=seen.conflicts)
        if digest_of(_described(layer, artoo_home, seen)) != digest:
            raise SandboxError("the files are not as they were when this was approved: look at it again")
        return apply_effects(
            [_dressed(effect) for effect in seen.effects],
            task_id=layer.origin.board_task,
            undo_home=artoo_home / "undo",
            started_ns=started_ns,
            ledger=TaskLedger(),
        )
    except OSError as error:
        raise SandboxError(f"the submission could not be merged ({error}); nothing was changed") from error
    finally:
        remove_tree(stage)


def _originals(layer: Layer) -> dict[str, Path]:
    return {tree: layer.original_of(tree) for tree in TREES}


def _described(layer: Layer, artoo_home: Path, seen: Outlook) -> tuple[Change, ...]:
    return describe(seen.effects, Places.of(layer.real_roots, artoo_home), TaskLedger())


def _dressed(effect: Effect) -> Effect:
    """The staged content with owner, mode and attributes as they are to be, and its state as it lies there."""
    after = effect.after
    if after is None or effect.in_place or after.is_directory or after.node is Node.LINK:
        return effect
    wanted = StateRecord.of(after)
    assert wanted is not None
    with parent_and_name(effect.layer.upper / os.fsdecode(effect.relative)) as (directory, name):
        set_metadata(directory, name, wanted, times=True)
        state = read_state(directory, name)
    return Effect(effect.layer, effect.relative, effect.before, state, False, False, effect.appended, effect.digest)


# --- what people and reviewers see ------------------------------------------------------------------------------


def _shown(layer: Layer, changes: tuple[Change, ...]) -> Iterator[SubmittedChange]:
    left = MOST_DIFF_LINES
    reasons = {change.path: reason for change, reason in decide(changes).ask}
    for change in changes:
        lines = _diff(layer, change)
        lines = lines if len(lines) <= left else (f"(a diff of {len(lines)} lines)",)
        left -= len(lines)
        yield SubmittedChange(
            change=change.kind,
            path=_short(layer, change),
            size_before=change.size_before,
            size_after=change.size_after,
            detail=change.detail,
            asks=reasons.get(change.path),
            diff=lines,
        )


def _short(layer: Layer, change: Change) -> str:
    prefix = printable_path(os.fsencode(layer.origin.project)) + "/"
    return change.path.removeprefix(prefix)


def _diff(layer: Layer, change: Change) -> tuple[str, ...]:
    """What changes in a small text file."""
    if change.kind not in (ChangeKind.CREATED, ChangeKind.OVERWRITTEN) or change.size_after is None:
        return ()
    if max(change.size_after, change.size_before or 0) > DIFF_BYTES:
        return ()
    real = Path(os.fsdecode(path_bytes(change.path)))
    tree = next((tree for tree in TREES if real.is_relative_to(layer.original_of(tree))), PROJECT)
    frozen = layer.submitted / tree / real.relative_to(layer.original_of(tree))
    before = b"" if change.size_before is None else _read(real)
    return unified(before, _read(frozen))


def _read(path: Path) -> bytes:
    try:
        return read_limited(path, DIFF_BYTES)[0]
    except (OSError, NotPlainFile):
        return b""
