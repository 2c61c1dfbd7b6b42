"""One act, all or nothing: prepare, commit the journal, converge, mark it done; on failure take it back."""

from __future__ import annotations

import time
import uuid
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path

from artoo.contracts.changes import ApplyReport
from artoo.contracts.errors import SandboxError
from artoo.ports.sandbox import ActNote, TaskLedger
from artoo.world.began import Meanwhile
from artoo.world.converge import backward, converge, forward, is_ours, now_at, opened_up
from artoo.world.journal import Journal, Left, Note, Record, Step, exclusive
from artoo.world.nodes import fingerprint
from artoo.world.prepare import Preparation, conflicts_of, remove_landings
from artoo.world.scan import Effect, readable_layers
from artoo.world.stage import remove_tree


def apply_effects(
    effects: Sequence[Effect],
    *,
    task_id: str,
    undo_home: Path,
    ledger: TaskLedger,
    note: ActNote | None = None,
    name: str | None = None,
    keep_layers: bool = False,
    meanwhile: Meanwhile | None = None,
) -> ApplyReport:
    """Makes the effects, all or none; `note` is in the journal before the first of them. Blocking.

    `name` is the record's (`new_name`); `keep_layers` leaves the contents in their layers too; `meanwhile` is when
    a command ran whose effects these are. Conflicts are reported and nothing is changed.
    Raises SandboxError when the system refuses (disk full, no permission): all is then as before, or, if even
    that failed, will be after the next start.
    """
    if not effects:
        return ApplyReport(applied=True)
    with exclusive(undo_home), readable_layers(effects):
        conflicts = conflicts_of(effects, meanwhile)
        if conflicts:
            return ApplyReport(applied=False, conflicts=tuple(conflicts))
        record = Record.begin(undo_home, task_id, name or new_name())
        steps = _prepare(record, Preparation(record, effects, keep_layers=keep_layers), task_id, note)
        left = _carry_out(record, steps)
        write_down(steps, left, ledger)
        return ApplyReport(applied=True, paths=tuple(step.path for step in steps), transaction=record.name)


def new_name() -> str:
    """A name for an act's record, after all earlier ones."""
    return f"{time.time_ns():020d}-{uuid.uuid4().hex[:12]}"


def _prepare(record: Record, preparation: Preparation, task_id: str, note: ActNote | None) -> list[Step]:
    try:
        steps = preparation.steps()
        noted = Journal(task_id=task_id, created_at=time.time(), steps=tuple(steps), note=Note.of(note))
        record.commit(noted)
    except BaseException as error:
        remove_landings(record.landings())
        remove_tree(record.place)
        if isinstance(error, OSError):
            raise SandboxError(f"the changes could not be applied ({error}); nothing was changed") from error
        raise
    return steps


def _carry_out(record: Record, steps: Sequence[Step]) -> Mapping[str, Left]:
    try:
        converge([forward(step, record) for step in steps])
        left = left_by(steps)
        record.mark_done(left)
    except OSError as error:
        take_back(record, steps)
        raise SandboxError(f"the changes could not be applied ({error}); all was put back") from error
    remove_landings(record.landings())
    return left


def take_back(record: Record, steps: Sequence[Step]) -> None:
    """Returns to the state before and forgets the act; what somebody else changed meanwhile stays as it is.

    Raises SandboxError when that fails; recovery will retry.
    """
    try:
        with opened_up(steps):
            converge([move for step in steps if is_ours(move := backward(step, record))])
    except OSError as error:
        raise SandboxError(
            f"the changes failed half way and could not be put back ({error}); "
            "free space or permissions, then start artoo again: it will finish this first"
        ) from error
    remove_landings(record.landings())
    remove_tree(record.place)


def left_by(steps: Sequence[Step]) -> dict[str, Left]:
    """What is at each path now that the act is done; a path that cannot be read is left out, and nobody's."""
    left: dict[str, Left] = {}
    with opened_up(steps):
        for step in steps:
            with suppress(OSError):
                now = now_at(step.root, step.relative)
                left[step.path] = None if now is None else fingerprint(now)
    return left


def write_down(steps: Sequence[Step], left: Mapping[str, Left], ledger: TaskLedger) -> None:
    """Records in the ledger what an act left, in the order of its steps."""
    for step in steps:
        if step.in_place and step.path not in ledger.made:  # changed with leave, but not made by this task
            continue
        ledger.record(step.path, left.get(step.path))
