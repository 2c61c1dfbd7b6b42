"""Makes a view's difference, or a chosen part of it, real: once, whole, whenever the process dies.

    applying.json ─► the journalled act (`transaction`) ─► told ─► the view goes, or what was applied leaves it

The layers lend the act their files: one that is taken back, because it failed or a crash cut it, gives them back,
and can be tried again.
Whoever calls holds the view (`ViewPlace.locked`).
"""

from __future__ import annotations

import errno
import logging
import os
from collections.abc import Collection, Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from pydantic import BaseModel, ConfigDict, ValidationError

from artoo.contracts.changes import ApplyReport, path_bytes, printable_path
from artoo.contracts.errors import SandboxError
from artoo.disk.whole import sync_directory, write_durably, write_whole
from artoo.ports.sandbox import ActNote
from artoo.world.base import Base, append_base, read_base
from artoo.world.difference import Difference
from artoo.world.files import parent_of
from artoo.world.git_keep import keeping_refs
from artoo.world.git_unit import Unit
from artoo.world.journal import Record, StateRecord
from artoo.world.kept_notes import notes_of
from artoo.world.leaving import part_from, take_out
from artoo.world.move import now_at
from artoo.world.nodes import digest_file
from artoo.world.opaque import uncover
from artoo.world.pending import (
    PendingRecord,
    SettledRecord,
    forget_pending,
    note_settled,
    settled_records,
    write_pending,
)
from artoo.world.remove import remove_tree
from artoo.world.scan import Effect
from artoo.world.transaction import apply_effects, new_name
from artoo.world.view_place import PATIENCE_SECONDS, TRUNK, ViewPlace, Views

logger = logging.getLogger(__name__)

_END = b"\n"
"""The last byte of a mark: what has none, a power cut left of one that was not durable yet."""
_HOLE = b"\0"
"""No mark holds it either: what was not written yet of a file whose end was."""
_NO_ACT = "none"
SETTLING = "settling"
"""The act of the note that settling leaves in the journal; its outcome is the Settled message."""


class Told(BaseModel):
    """What is to be known of an act of somebody who settles after the task's end: a line of `settled.jsonl`, and,
    of a part, how the rest waits (`pending.json`). Both are written when it is done, whoever has to finish it."""

    model_config = ConfigDict(frozen=True, extra="forbid", defer_build=True)

    settled: SettledRecord
    rest: PendingRecord | None = None


class Mark(BaseModel):
    """`applying.json`: which record of the journal will say whether it happened. `whole`: then the view goes, but
    for open forks, in which a task that was cut off goes on. Without a record nothing is applied, and it has
    happened when this is written: the view is discarded."""

    model_config = ConfigDict(frozen=True, extra="forbid", defer_build=True)

    record: str
    whole: bool
    paths: tuple[str, ...]
    told: Told | None = None


@dataclass(frozen=True, slots=True)
class Applied:
    """What became of an apply. `whole`: everything took effect, and nothing is left but forks of a cut-off task."""

    report: ApplyReport
    whole: bool = False


def apply_difference(
    place: ViewPlace,
    artoo_home: Path,
    difference: Difference,
    *,
    digest: str,
    paths: Collection[str] | None = None,
    note: str = "",
    told: Told | None = None,
) -> Applied:
    """Applies a difference, all or nothing, or of it the `paths` and what they need. Blocking.

    `digest` is that of the difference that was agreed to; `paths` are printable, and a directory stands for all in
    it. `note` is kept with the act; `told` is known as soon as it took effect. Raises SandboxError when another
    difference was agreed to, a path is not in it, or the system refuses; then nothing has changed.
    """
    if difference.digest != digest:
        raise SandboxError("what was agreed to is not what is there now: look at the difference again")
    chosen = list(difference.effects) if paths is None else part_of(difference, paths)
    whole = len(chosen) == len(difference.effects) and not difference.conflicts
    kept = _kept(place, artoo_home, difference, chosen)
    name = new_name(artoo_home / "undo")
    applied = tuple(one.shown for one in chosen)
    mark = Mark(record=name, whole=whole, paths=applied, told=told)
    _write(place, mark)
    try:
        report = apply_effects(
            [*chosen, *kept],
            task_id=place.task_id,
            undo_home=artoo_home / "undo",
            note=ActNote(act=SETTLING, call=digest, outcome=note) if note else None,
            name=name,
            first=(place.applying, place.base),
            trunk=place.layer_home(TRUNK) if whole and not place.has_forks else None,
        )
    except BaseException:
        if not _record(place, artoo_home, mark).place.exists():
            with suppress(OSError):  # the mark stands, and whoever opens the view next does it
                _give_up(place, mark)
        raise
    if not report.applied:
        _forget(place)
        return Applied(report)
    try:
        _finish(place, mark)
    except (OSError, SandboxError) as error:
        # It did take effect; the mark stands, and whoever opens the view next finishes it.
        logger.warning("what was applied of task %s is not out of its view yet: %s", place.task_id, error)
    return Applied(report, whole)


def _kept(place: ViewPlace, artoo_home: Path, difference: Difference, chosen: Sequence[Effect]) -> list[Effect]:
    try:
        return keeping_refs(place, artoo_home, difference, chosen)
    except OSError as error:
        raise _not_applied(error) from error


def discard(place: ViewPlace, settled: SettledRecord) -> None:
    """Forgets a view at somebody's word, and tells it. On a full disk the view goes first: it may be what fills it.

    Raises OSError when it is gone, and there is no room to tell so.
    """
    mark = Mark(record="", whole=True, paths=(), told=Told(settled=settled))
    try:
        write_durably(place.applying, _written(mark))
    except OSError:
        place.remove()
        note_settled(place.base.parent, settled)
        return
    _finish(place, mark)


def finish_cut(place: ViewPlace, artoo_home: Path) -> bool:
    """Ends an apply that a crash cut, after the journal was recovered; whether there was one that took effect."""
    mark = _read_mark(place.applying)
    if mark is None:
        return False
    record = _record(place, artoo_home, mark) if mark.record else None
    if record is not None and record.place.exists() and not record.done:
        raise _not_recovered(place)
    took_effect = record is None or record.place.exists()
    try:
        if took_effect:
            _finish(place, mark)
        else:
            _give_up(place, mark)
    except OSError as error:
        way_out = "free space" if error.errno in (errno.ENOSPC, errno.EDQUOT) else "mend that first"
        raise SandboxError(f"the view {place.base} cannot be put in order ({error}); {way_out}") from error
    return took_effect


def _read_mark(path: Path) -> Mark | None:
    """None: there is none. Raises SandboxError. One without its end was never durable, so no act was begun."""
    try:
        said = path.read_bytes()
    except FileNotFoundError:
        return None
    except OSError as error:
        raise _unreadable(path, error) from error
    try:
        return Mark.model_validate_json(said)
    except ValidationError as error:
        if said.endswith(_END) and _HOLE not in said:
            raise _unreadable(path, error) from error
        return Mark(record=_NO_ACT, whole=False, paths=())


def _unreadable(path: Path, error: Exception) -> SandboxError:
    return SandboxError(f"{path} cannot be read: {error}; keep it and report this")


def _not_recovered(place: ViewPlace) -> SandboxError:
    return SandboxError(
        f"an apply of task {place.task_id} was cut and is not recovered yet; each start of artoo tries it, and"
        " says what is in its way: mend that first"
    )


def is_unfinished(artoo_home: Path, task_id: str) -> bool:
    """Whether the view does not know yet what became of an apply: until then its record has to stay."""
    return Views(artoo_home).place(task_id).applying.exists()


def finish_apply(artoo_home: Path, task_id: str) -> None:
    """What took effect is out of the view, before it is undone. Raises SandboxError. Blocking."""
    place = Views(artoo_home).place(task_id)
    if not is_unfinished(artoo_home, task_id):
        return
    with place.locked(PATIENCE_SECONDS):
        finish_cut(place, artoo_home)
        if not place.exists:  # who held it has removed it, and the lock has made it anew
            place.remove()


def told_of(artoo_home: Path, task_id: str) -> str | None:
    """The note of the last act with which the task itself was settled; None: it applied nothing by itself.

    So a process that died right after it had applied is told from a person who applied or discarded later.
    """
    settled = [note.outcome for note in notes_of(artoo_home / "undo", task_id) if note.act == SETTLING]
    return settled[-1] if settled else None


def part_of(difference: Difference, paths: Collection[str]) -> list[Effect]:
    """The effects at the paths, all in directories that are named, and what they cannot be without.

    A new thing needs the directories above it; a directory goes only with everything that is in it, what is moved
    only with where it stands now, and what git has of a commit only as a whole (`git_unit`). Raises SandboxError
    for a path that is not in the difference.
    """
    by_path = {effect.path: effect for effect in difference.effects}
    wanted: set[bytes] = set()
    for printable in paths:
        raw = path_bytes(printable).rstrip(b"/")
        found = [path for path in by_path if raw and (path == raw or path.startswith(raw + b"/"))]
        if not found:
            raise SandboxError(f"{printable} is not among what the task would change; `artoo diff` lists it")
        wanted.update(found)
    moved = {path_bytes(one.path): path_bytes(one.moved_to) for one in difference.classes if one.moved_to}
    seen: set[bytes] = set()
    while left := wanted - seen:
        seen |= left
        wanted.update(other for path in left for other in _needed(by_path, path))
        wanted.update(
            other for path in left for other in _of_git(difference.units, by_path[path]) if other in by_path
        )
        wanted.update(target for path in left if (target := moved.get(path)) in by_path)
    return [effect for effect in difference.effects if effect.path in wanted]


def _of_git(units: Iterable[Unit], effect: Effect) -> Iterator[bytes]:
    for unit in units:
        yield from unit.needed_by(effect.path, removed=effect.after is None)


def _needed(by_path: dict[bytes, Effect], path: bytes) -> Iterable[bytes]:
    effect = by_path[path]
    if effect.before is not None and effect.before.is_directory and not effect.in_place:
        yield from (other for other in by_path if other.startswith(path + b"/"))
    if effect.after is None:
        return
    for end in range(1, len(path)):
        above = by_path.get(path[:end]) if path[end : end + 1] == b"/" else None
        if above is not None and above.after is not None and not above.in_place:
            yield above.path


# --- after the act ------------------------------------------------------------------------------------------------


def _finish(place: ViewPlace, mark: Mark) -> None:
    """It is told, and what was applied leaves the view. May be repeated. Raises OSError."""
    if mark.told is not None:
        _tell(place, mark.told, mark.record)
    if mark.whole and not (mark.record and place.has_forks):
        place.remove()
        return
    if mark.whole:
        forget_pending(place)
    elif mark.told is not None and mark.told.rest is not None:
        write_pending(place, mark.told.rest)
    for layer in place.trunk():
        uncover(layer, _below(layer.root, mark.paths))  # first: what it hides must not be what was just applied
        take_out(layer, mark.paths)
    _rebase(place, mark.paths)
    _forget(place)


def _give_up(place: ViewPlace, mark: Mark) -> None:
    """It did not take effect, and what was left of it is somebody else's. May be repeated. Raises OSError."""
    for layer in place.trunk():
        part_from(layer, mark.paths)
    _forget(place)


def _tell(place: ViewPlace, told: Told, act: str) -> None:
    """Once, however often it is finished."""
    views = place.base.parent
    line = told.settled.model_copy(update={"act": act})
    if line not in settled_records(views):
        note_settled(views, line)


def _below(root: Path, paths: Iterable[str]) -> Iterator[bytes]:
    """Those of the paths that are below a root, relative to it."""
    start = os.fsencode(root) + b"/"
    return (raw.removeprefix(start) for path in paths if (raw := path_bytes(path)).startswith(start))


def _rebase(place: ViewPlace, paths: Sequence[str]) -> None:
    """For what was applied, what is there now is the base from here on."""
    file = place.base_file()
    bases = read_base(file)
    applied = set(paths)
    kept = [base for path, base in bases.items() if path not in applied]
    for layer in place.trunk():
        root = printable_path(os.fsencode(layer.root))
        kept += [base for path in paths if (base := _base_now(root, path)) is not None]
    fresh = file.with_name("base.jsonl.rebased")
    fresh.unlink(missing_ok=True)
    append_base(fresh, kept)
    write_durably(file, fresh.read_bytes() if kept else b"")
    fresh.unlink(missing_ok=True)


def _base_now(root: str, path: str) -> Base | None:
    relative = path.removeprefix(f"{root}/")
    now = None
    with suppress(PermissionError):  # in a directory that the act closed to its owner: who changes it looks anew
        now = now_at(root, relative) if relative != path else None
    was = StateRecord.of(now)
    if now is None or was is None:
        return None
    digest = None
    with suppress(OSError), parent_of(root, relative) as (directory, name):
        digest = digest_file(directory, name) if now.node.value == "file" else None
    return Base(path=path, was=was, changed_ns=now.ctime_ns, sha256=digest)


def _record(place: ViewPlace, artoo_home: Path, mark: Mark) -> Record:
    return Record(artoo_home / "undo" / place.base.name / mark.record)


def _write(place: ViewPlace, mark: Mark) -> None:
    """It is durable before the act is, and no sooner: both are synced at once."""
    try:
        write_whole(place.applying, _written(mark), sync=False)
    except OSError as error:
        raise _not_applied(error) from error


def _written(mark: Mark) -> bytes:
    return mark.model_dump_json().encode() + _END


def _not_applied(error: OSError) -> SandboxError:
    return SandboxError(f"the changes could not be applied ({error}); nothing was changed")


def _forget(place: ViewPlace) -> None:
    place.applying.unlink(missing_ok=True)
    sync_directory(place.base)
    remove_tree(place.base / "keep")
