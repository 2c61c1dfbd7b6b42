"""One act, all or nothing: prepare, commit the journal, converge, mark it done; on failure take it back."""

from __future__ import annotations

import os
import time
import uuid
from collections.abc import Generator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path

from artoo.contracts.changes import ApplyReport, Conflict
from artoo.contracts.errors import SandboxError
from artoo.ports.sandbox import ActNote
from artoo.world.converge import converge, forget_aside
from artoo.world.files import Reach
from artoo.world.git_busy import wait_for_git
from artoo.world.journal import Journal, Note, Record, Step, exclusive, records
from artoo.world.move import Move, forward, held_directories, is_separate, is_state, returned, seen_at, without_way
from artoo.world.prepare import Preparation, conflicts_of, remove_landings, tidy_landings
from artoo.world.remove import remove_tree
from artoo.world.scan import Effect, readable_layers
from artoo.world.taken import directories, give_back, take, tidy
from artoo.world.unlocked import Modes, keep_given, unlocked


def apply_effects(
    effects: Sequence[Effect],
    *,
    task_id: str,
    undo_home: Path,
    note: ActNote | None = None,
    name: str | None = None,
    first: Sequence[Path] = (),
    trunk: Path | None = None,
) -> ApplyReport:
    """Makes the effects, all or none; `note` is in the journal before the first of them. Blocking.

    `name` is the record's (`new_name`); `first` are files and directories that must be durable before it is. The
    contents leave their layers, and are there again if the act is taken back; it may take the `trunk` with it, a
    directory of layers that hold nothing else (`taken`). Conflicts are reported and nothing is changed. Raises
    SandboxError when the system refuses (disk full, no permission): everything is then as before, or, if even that
    failed, will be after the next start.
    """
    if not effects:
        return ApplyReport(applied=True)
    wait_for_git(effect.place for effect in effects)
    with exclusive(undo_home), readable_layers(effects) as opened:
        conflicts = _conflicts(effects)
        if conflicts:
            return ApplyReport(applied=False, conflicts=tuple(conflicts))
        record = Record.begin(undo_home, task_id, name or new_name(undo_home))
        journal = _prepare(record, effects, None if opened else trunk, note, first)
        _carry_out(record, journal)
        return ApplyReport(applied=True, paths=tuple(step.path for step in journal.steps), transaction=record.name)


def _conflicts(effects: Sequence[Effect]) -> list[Conflict]:
    try:
        return conflicts_of(effects)
    except OSError as error:  # somebody has closed a directory since the effects were read
        raise _not_applied(error) from error


def _not_applied(error: OSError) -> SandboxError:
    return SandboxError(f"the changes could not be applied ({error}); nothing was changed")


def new_name(undo_home: Path) -> str:
    """A name for an act's record, after all earlier ones, also if the clock was set back since."""
    latest = max((record.place.name for record in records(undo_home)), default="").partition("-")[0]
    number = max(time.time_ns(), int(latest) + 1 if latest.isdecimal() else 0)
    return f"{number:020d}-{uuid.uuid4().hex[:12]}"


def forget(record: Record) -> None:
    """Removes a record; what a crash leaves of it is never done again. Raises OSError."""
    record.uncommit()
    remove_tree(record.place)


def _prepare(
    record: Record, effects: Sequence[Effect], trunk: Path | None, note: ActNote | None, first: Sequence[Path]
) -> Journal:
    try:
        preparation = Preparation(record, effects, trunk)
        journal = Journal(
            task_id=record.task_id,
            created_at=time.time(),
            steps=tuple(preparation.steps()),
            note=Note.of(note),
            taken=None if preparation.taken is None else preparation.taken.lstat().st_ino,
        )
        preparation.make_durable([*record.write(journal), *first])
        record.commit()
    except BaseException as error:
        with suppress(OSError):  # on a disk that fails: a start removes what is not committed
            remove_landings(record.landings())
            forget(record)
        if isinstance(error, OSError):
            raise _not_applied(error) from error
        raise
    return journal


def _carry_out(record: Record, journal: Journal) -> None:
    steps = journal.steps
    try:
        take(record, journal)
        converge([forward(step, record) for step in steps], anew=True, beside=directories(record, journal))
        record.mark_done()
    except OSError as error:
        rest = take_back(record, steps)
        but = f" but what was in {rest[0]}, where something else is now" if rest else ""
        if apart := [step.path for step in steps if is_separate(step)]:
            but += f"; {apart[0]} is a file of its own now, other names that it had lead to another"
        raise SandboxError(f"the changes could not be applied ({error}); all was put back{but}") from error
    tidy_landings(record)
    tidy(record, steps)


@contextmanager
def _told_half_way() -> Generator[None]:
    """What goes wrong while an act is taken back is a SandboxError that says how things stand."""
    try:
        yield
    except OSError as error:
        raise SandboxError(
            f"the changes failed half way and could not be put back ({error}); "
            "free space or permissions, then start artoo again: it puts them back first"
        ) from error


def take_back(record: Record, steps: Sequence[Step]) -> tuple[str, ...]:
    """Returns to the state before and forgets the act; what somebody else changed meanwhile stays as it is.

    What the act had removed and what has no place to come back to stays on record, for an undo later; its paths are
    returned. Raises SandboxError when that fails; recovery will retry.
    """
    with _told_half_way():
        with unlocked(record, steps, lenders=True) as modes:
            rest = bring_back(record, steps, modes)
        forget_but(record, rest)
    return tuple(step.path for step in rest)


@_told_half_way()
def bring_back(record: Record, steps: Sequence[Step], modes: Modes) -> list[Step]:
    """The files of `take_back`, where all that is locked is open, and had these modes; the steps that could not be
    taken back. Raises SandboxError; then it can be repeated."""
    with suppress(OSError):  # on a full disk; `recover` looks for each before-image, too
        record.begin_return()
    with Reach() as reach:
        moves = [move for step in steps if (move := returned(step, record, reach)) is not None]
        for move in moves:
            forget_aside(move, reach)
    lost = {move.path for move in without_way(moves)}
    moves = [move for move in moves if move.path not in lost]
    held = {move.path for move in held_directories(moves)}
    back = [move for move in moves if move.path not in held]
    converge(back)
    keep_given(modes, back)
    return _without_place(record, steps, moves)


@_told_half_way()
def forget_but(record: Record, rest: Sequence[Step]) -> None:
    """The act is taken back but for these steps, and nothing is open any more. Raises SandboxError."""
    give_back(record, record.journal())
    remove_landings(record.landings())
    if rest:
        record.keep_rest(rest)
    else:
        forget(record)


def _without_place(record: Record, steps: Sequence[Step], moves: Sequence[Move]) -> list[Step]:
    """What the act had removed and was not brought back; none when no content is among it."""
    back = {move.path for move in moves}
    removed = [step for step in steps if step.after is None and step.path not in back]
    with Reach() as reach:
        rest = [step for step in removed if not is_state(seen_at(reach, step.root, step.relative), step.before)]
    images = (record.image(step) for step in rest)
    return rest if any(image is not None and os.path.lexists(image) for image in images) else []
