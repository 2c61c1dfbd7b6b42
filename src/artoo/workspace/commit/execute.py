"""Replace paths step by step, forward or backward, and detect the user's edits meanwhile.

Each old version is checked *after* it was moved away, because programs can no longer reach it by its path then.
After the path was exchanged with its slot, or moved into it, the slot must contain the version that was seen
before. If it contains another version, this version is moved back.
"""

from __future__ import annotations

import errno
import os
from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress

from artoo.workspace.commit.dirfd_ops import exchange, put_new, same_version, set_metadata
from artoo.workspace.commit.manifest import Step, holder_of, is_directory
from artoo.workspace.files.walker import Place, Walker
from artoo.workspace.fs.names import printable, text_of
from artoo.workspace.fs.stat import NodeState, chmod_at, glance

_WORKING_MODE = 0o700


class ChangedMeanwhile(OSError):
    """Raised if the user changed a path between the check and the replacement. The user's version is kept.
    `filename`: the path."""

    def __init__(self, shown: str) -> None:
        super().__init__(errno.ESTALE, "it was changed at this moment", shown)


def execute(steps: Sequence[Step]) -> None:
    """Execute all steps. Raises OSError or `ChangedMeanwhile`. Some of the steps are done then, and can be
    restored."""
    outermost_first = sorted(steps, key=lambda one: one.path.count("/"))
    deepest_first = outermost_first[::-1]
    worked_in = {holder_of(step.where) for step in steps} if os.geteuid() != 0 else set[str]()
    _each(_open_directory, (one for one in outermost_first if one.where in worked_in and is_closed(one.before)))
    # Paths are removed before others are created, because a name may change from a file to a directory or back.
    _each(_take_away, (one for one in deepest_first if one.takes_away))
    _each(_make_directory, (one for one in outermost_first if one.makes_directory))
    _each(_put, (one for one in steps if one.puts))
    # Modes and times of directories are set last, because every change of their entries updates the times.
    _each(_finish_directory, (one for one in deepest_first if is_directory(one.after)))


def _each(operation: Callable[[Step, Walker, Walker], None], steps: Iterable[Step]) -> None:
    """Do one operation for each step. The path is added to an error, because the system reports only relative
    names."""
    with Walker() as targets, Walker() as slots:
        for step in steps:
            try:
                operation(step, targets, slots)
            except OSError as error:
                if isinstance(error, ChangedMeanwhile):
                    raise
                raise OSError(error.errno, error.strerror, step.path) from error


def _open_directory(step: Step, targets: Walker, _: Walker) -> None:
    """Make a read-only directory writable for the other steps. A later step removes it or sets its final mode."""
    assert step.before is not None
    chmod_at(*targets.place(step.where), step.before.mode | _WORKING_MODE)


def _take_away(step: Step, targets: Walker, slots: Walker) -> None:
    """Remove an empty directory, or move a file or link into its slot and check it there."""
    target = targets.place(step.where)
    if is_directory(step.before):
        os.rmdir(target[1], dir_fd=target[0])
        return
    slot = slots.place(text_of(step.slot))
    try:
        put_new(target, slot)
    except FileNotFoundError as error:
        raise ChangedMeanwhile(step.path) from error
    if not same_version(glance(*slot), step.before):
        with suppress(FileExistsError):  # the user has already saved a newer version at the path
            put_new(slot, target)
        raise ChangedMeanwhile(step.path)


def _make_directory(step: Step, targets: Walker, _: Walker) -> None:
    directory, name = targets.place(step.where)
    try:
        os.mkdir(name, _WORKING_MODE, dir_fd=directory)
    except FileExistsError as error:
        raise ChangedMeanwhile(step.path) from error


def _put(step: Step, targets: Walker, slots: Walker) -> None:
    """Move the content of the slot to the path, and the replaced file into the slot."""
    slot = slots.place(text_of(step.slot))
    try:
        target = targets.place(step.where)
        if step.before is None or step.takes_away:
            put_new(slot, target)
        else:
            _replace(step, slot, target)
    except (FileExistsError, FileNotFoundError, NotADirectoryError) as error:
        raise ChangedMeanwhile(step.path) from error


def _replace(step: Step, slot: Place, target: Place) -> None:
    if not same_version(glance(*target), step.before):
        raise ChangedMeanwhile(step.path)
    new = glance(*slot)
    if not exchange(slot, target):
        os.rename(slot[1], target[1], src_dir_fd=slot[0], dst_dir_fd=target[0])
        return
    if same_version(glance(*slot), step.before):
        return
    exchange(slot, target)  # moves the user's version back
    # the user has saved again meanwhile, so this newest version stays at the path
    if not same_version(glance(*slot), new):
        exchange(slot, target)
    raise ChangedMeanwhile(step.path)


def _finish_directory(step: Step, targets: Walker, _: Walker) -> None:
    """Set the final mode, owner and attributes of a directory. Its times are set only if it is new."""
    assert step.after is not None
    place = targets.place(step.where)
    if step.stays and not same_version(glance(*place), step.before):
        raise ChangedMeanwhile(step.path)
    set_metadata(place, step.after, times=not step.stays)


def is_closed(state: NodeState | None) -> bool:
    """True for a directory in which its owner may not create entries."""
    return state is not None and state.is_directory and state.mode & _WORKING_MODE != _WORKING_MODE


def to_sync(steps: Sequence[Step]) -> list[str]:
    """Return the directories to sync after these steps, because their entries or metadata changed."""
    changed = {holder_of(step.where) for step in steps if not step.stays}
    return list(changed | {step.where for step in steps if is_directory(step.after)})


# --- blocked steps ------------------------------------------------------------------------------------------------


def blocked(steps: Sequence[Step], walker: Walker) -> dict[str, str]:
    """Return the paths of the steps that cannot be executed, each with the reason.

    A path needs a parent directory that exists now or after the steps. A directory is removed only if no entry
    remains in it.
    """
    found: dict[str, str] = {}
    there = {step.where: False for step in steps if step.takes_away and is_directory(step.before)}
    for step in sorted(steps, key=lambda one: one.path.count("/")):
        if step.after is None:
            continue
        above = holder_of(step.where)
        if above not in there:
            there[above] = is_directory(walker.look(above))
        if not there[above]:
            found[step.path] = "the directory that held it is not there"
        elif step.makes_directory:
            there[step.where] = True
    return found | _held([step for step in steps if step.takes_away and step.path not in found], walker)


def _held(steps: Iterable[Step], walker: Walker) -> dict[str, str]:
    """Return the directories that cannot be removed because an entry remains in them, with the reason."""
    going: dict[str, set[str]] = defaultdict(set)
    found: dict[str, str] = {}
    for step in sorted(steps, key=lambda one: -one.path.count("/")):
        above, name = holder_of(step.where), step.where.rpartition("/")[2]
        if is_directory(step.before) and (left := set(walker.names(step.where)) - going[step.where]):
            found[step.path] = f"it holds {printable(min(left))}, which is not the task's"
        else:
            going[above].add(name)
    return found
