"""`artoo undo TASK`: restores, path by path, what a task changed, where the user has not changed it since."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator
from pathlib import Path

from artoo.contracts.changes import Conflict, Node, UndoReport
from artoo.contracts.errors import SandboxError
from artoo.workspace.commit.dirfd_ops import Walker
from artoo.workspace.commit.manifest import Record, Step, all_records, exclusive, printable, records_of
from artoo.workspace.commit.restore import carry_out, changes_in, directories_of, judge, settle_record, slots_needed
from artoo.workspace.commit.slots import Slots
from artoo.workspace.commit.temporary_modes import unlocked
from artoo.workspace.git.act import GitAct, move_back


def tasks_with_records(artoo_home: Path) -> list[str]:
    """Return the ids of all tasks that have records of applies."""
    return list(dict.fromkeys(record.task_id for record in all_records(artoo_home / "undo")))


def undo(artoo_home: Path, task_id: str) -> UndoReport:
    """Restore what the task changed, its newest apply first. Blocking; may be repeated, also after a crash.

    Raises SandboxError if there is nothing to undo, or if the system refuses.
    """
    undo_home = artoo_home / "undo"
    restored: dict[str, None] = {}
    refused: dict[str, str] = {}
    separate: list[str] = []
    with exclusive(undo_home):
        every = [one for one in all_records(undo_home) if one.task_id == task_id]
        old = {printable(one.place): one.problem() for one in every if one.made_by_older_version}
        records = [one for one in records_of(undo_home, task_id) if one.done]
        if not records and old:
            raise SandboxError(f"task {task_id} cannot be undone: {'; '.join(filter(None, old.values()))}")
        if not records:
            raise SandboxError(f"nothing is kept of task {task_id}; `artoo undo --list` shows what can be undone")
        for record in reversed(records):
            steps = record.manifest().steps
            verdicts = undo_record(record)
            for path, reason in verdicts.items():
                if reason is None:
                    restored[path] = None
                else:
                    part = "only its last change was undone: " if path in restored else ""
                    refused.setdefault(path, part + reason)
            separate += _separate(step for step in steps if verdicts.get(step.path, "") is None)
    refused |= {path: reason for path, reason in old.items() if reason is not None}
    return UndoReport(
        task_id=task_id,
        restored=tuple(path for path in restored if path not in refused),
        refused=tuple(Conflict(path=path, reason=reason) for path, reason in refused.items()),
        separate=tuple(dict.fromkeys(path for path in separate if path not in refused)),
    )


def undo_record(record: Record, only: Collection[str] | None = None) -> dict[str, str | None]:
    """Undo one apply as far as possible, or `only` these paths of an undo that a crash interrupted.

    Return for each path None, or why it was left alone; that stays on record. Raises SandboxError.
    """
    manifest = record.manifest()
    begun = record.undoing()
    asked = [step for step in manifest.steps if only is None or step.path in only]
    others = [step for step in manifest.steps if only is not None and step.path not in only]
    try:
        with unlocked(record, directories_of(changes_in(asked))) as modes:
            slots = Slots(record, beside=manifest.beside)
            slots.assign(*slots_needed(asked))
            acts = [(act, move_back(act)) for act in reversed(manifest.git)]
            held = _held_by_git([act for act, conflicts in acts if conflicts], asked)
            plan = judge(record, [one for one in asked if one.path not in held], slots, modes, begun)
            plan.refused.update(held)
            if plan.moves:
                record.begin_undo(begun | plan.paths)
            carry_out(record, plan, slots, modes)
            left = [step for step in asked if step.path in plan.refused] + others
            slots.clean({step.number for step in left})
        git = tuple(act for act, conflicts in reversed(acts) if conflicts)
        settle_record(record, manifest.model_copy(update={"git": git}), left)
    except OSError as error:
        raise SandboxError(f"not everything could be restored: {error}; fix that and repeat the undo") from error
    verdicts: dict[str, str | None] = {step.path: plan.refused.get(step.path) for step in asked}
    verdicts |= {path: None for act, conflicts in acts for path in act.paths if not conflicts}
    return verdicts | {one.path: one.reason for _, conflicts in acts for one in conflicts}


def _held_by_git(acts: Iterable[GitAct], steps: Iterable[Step]) -> dict[str, str]:
    """Return the paths that belong to what is checked out in repositories that stay as they are."""
    needs = [(need, act.git_dir) for act in acts for need in act.needs]
    return {
        step.path: f"it belongs to {repository}, which stays as it is"
        for step in steps
        for need, repository in needs
        if step.path == need or step.path.startswith(need + "/")
    }


def _separate(steps: Iterable[Step]) -> Iterator[str]:
    """Yield files that are files of their own now, while other names that they had lead to another file."""
    with Walker() as walker:
        for step in steps:
            before = step.before
            if before is None or before.node is not Node.FILE or before.links == 1 or step.in_place:
                continue
            now = walker.look(step.where)
            if now is not None and now.inode != before.inode:
                yield step.path
