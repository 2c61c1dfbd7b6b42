"""Bring an approved act into the user's repository by git's own commands, and take it back.

move       check all old values ─► objects (index-pack --strict) ─► one transaction of refs ─► HEAD ─► index ─► stash
move_back  check all new values ─► the same in reverse; objects stay until git collects them

Both may be called again after a crash in the middle: what already has its new value is left alone.
"""

from __future__ import annotations

import os
import re
from collections.abc import Sequence
from pathlib import Path

from artoo.contracts.changes import Conflict, path_bytes
from artoo.contracts.errors import SandboxError
from artoo.workspace.git.create import create, is_as_left, take_away
from artoo.workspace.git.plan import SYMBOLIC, GitAct, objects_named
from artoo.workspace.git.run import Git, GitFailed
from artoo.workspace.git.state import State, state_outside
from artoo.workspace.git.update import bring_objects, restore_logs, set_index, set_refs, set_stash

__all__ = ["GitAct", "forget", "move", "move_back"]

_UNDER_WAY = ("MERGE_HEAD", "CHERRY_PICK_HEAD", "REVERT_HEAD", "rebase-merge", "rebase-apply", "BISECT_LOG")


def move(act: GitAct) -> None:
    """Apply the act. Idempotent. Raises SandboxError if the user moved something since it was approved."""
    git = _git_of(act)
    try:
        if act.created:
            create(act, git)
            return
        now = state_outside(git)
        if moved := _moved(act, now):
            raise SandboxError(f"{act.git_dir}: {'; '.join(moved)}: nothing of the task was applied there")
        bring_objects(git, act.pack)
        _keep(git, act, "lost", act.lost)
        set_refs(git, act.refs, now, "artoo: apply task " + act.task_id)
        set_index(git, {one.path: one.new for one in act.index}, act.object_format)
        _set_stash(git, act, now)
    except (GitFailed, OSError) as error:
        raise SandboxError(f"git could not change {act.git_dir}: {error}") from error


def move_back(act: GitAct) -> tuple[Conflict, ...]:
    """Undo the act. Idempotent; returns what the user changed since, and then leaves all of the act as it is.

    Raises SandboxError if git refuses.
    """
    git = _git_of(act)
    try:
        if not git.directory.is_dir():
            return ()  # the user removed the repository, or a crash came before it was made
        if act.created:
            if not is_as_left(act, git):
                return (Conflict(path=act.git_dir, reason="the repository was used since: it stays as it is"),)
            take_away(git)
            return ()
        back = _reversed(act)
        now = state_outside(git)
        if moved := _moved(back, now) + _busy(git, back):
            said = f"{'; '.join(moved)}: refs and index stay as they are{_advice(act)}"
            return (Conflict(path=act.git_dir, reason=said),)
        _keep(git, act, "undone", objects_named(one.old for one in back.refs))
        set_refs(git, back.refs, now, "artoo: undo task " + act.task_id)
        restore_logs(git, back.refs)
        set_index(git, {one.path: one.new for one in back.index}, act.object_format)
        _set_stash(git, back, now)
    except (GitFailed, OSError) as error:
        raise SandboxError(f"git could not restore {act.git_dir}: {error}") from error
    return ()


def forget(act: GitAct) -> None:
    """Delete the refs that keep lost and undone commits, when the act can no longer be undone. Idempotent.

    A repository that is gone or refuses keeps them: they only take room.
    """
    git = _git_of(act)
    try:
        names = git.text("for-each-ref", "--format=%(refname)", _place(act, "")).split()
        if names:
            git.run("update-ref", "--stdin", stdin="".join(f"delete {name}\n" for name in names).encode())
    except (GitFailed, OSError):
        return


def _set_stash(git: Git, act: GitAct, now: State) -> None:
    if act.stash_old != act.stash_new:
        set_stash(git, act.stash_new, now.stash)


def _git_of(act: GitAct) -> Git:
    return Git(act.git, Path(os.fsdecode(path_bytes(act.git_dir))))


def _reversed(act: GitAct) -> GitAct:
    """Return the act with old and new values exchanged."""
    return act.model_copy(
        update={
            "refs": tuple(one.model_copy(update={"old": one.new, "new": one.old}) for one in act.refs),
            "index": tuple(one.model_copy(update={"old": one.new, "new": one.old}) for one in act.index),
            "stash_old": act.stash_new,
            "stash_new": act.stash_old,
        }
    )


def _moved(act: GitAct, now: State) -> list[str]:
    """Return what is neither as the act found it nor as it would leave it."""
    said: list[str] = []
    for one in act.refs:
        value = now.head if one.name == "HEAD" else now.refs.get(one.name, "")
        if one.name == "HEAD" and not now.commit and not value.startswith(SYMBOLIC):
            value = ""
        if value not in (one.old, one.new):
            said.append(f"{one.name} was moved since")
    for one in act.index:
        if now.index.get(path_bytes(one.path), ()) not in (one.old, one.new):
            said.append(f"{one.path} was staged since")
    if act.stash_old != act.stash_new and now.stash not in (act.stash_old, act.stash_new):
        said.append("the stash was changed since")
    if act.has_checkout and (now.head not in act.heads or now.commit not in act.commits):
        said.append("HEAD was moved since")
    return said[:10]


def _busy(git: Git, back: GitAct) -> list[str]:
    """Say that a merge or the like is under way that the user began after the act."""
    if not back.has_checkout:
        return []
    return [
        f"{name} shows that the user began something since"
        for name in _UNDER_WAY
        if (git.directory / name).exists()
    ]


def _advice(act: GitAct) -> str:
    """Return how the user takes back what a task committed on a branch."""
    for one in act.refs:
        if one.name.startswith("refs/heads/") and one.old and one.new:
            return f"; git revert {one.old[:10]}..{one.new[:10]} takes back the task's commits"
    return ""


# --- refs ---------------------------------------------------------------------------------------------------------


def _place(act: GitAct, kind: str) -> str:
    task = re.sub(r"[^A-Za-z0-9-]+", "-", act.task_id).strip("-") or "task"
    return f"refs/artoo/{task}/{kind}"


def _keep(git: Git, act: GitAct, kind: str, objects: Sequence[str]) -> None:
    """Name objects, so that git does not collect them while the act can be undone."""
    lines = [f"update {_place(act, kind)}/{one} {one}\n" for one in objects]
    if lines:
        git.run("update-ref", "--stdin", stdin="".join(lines).encode())
