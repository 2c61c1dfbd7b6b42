"""Apply an approved move of refs, index and stash to the user's repository by git, and undo it.

It does so with git commands.

move       check old values ─► objects (index-pack --strict) ─► one transaction of refs ─► HEAD ─► index ─► stash
move_back  check new values ─► the same in reverse; objects stay until git collects them

Both may be called again after a crash in the middle, because values that are already right are skipped.
"""

from __future__ import annotations

import os
import re
import shutil
from collections.abc import Iterable, Sequence
from pathlib import Path

from artoo.contracts.changes import Conflict, path_bytes
from artoo.contracts.errors import SandboxError
from artoo.workspace.git.run import Git, GitFailed
from artoo.workspace.git.state import (
    STASH,
    SYMBOLIC,
    GitAct,
    IndexChange,
    RefChange,
    StashEntry,
    State,
    objects_named,
    state_outside,
)

__all__ = ["GitAct", "forget", "move", "move_back"]

_UNDER_WAY = ("MERGE_HEAD", "CHERRY_PICK_HEAD", "REVERT_HEAD", "rebase-merge", "rebase-apply", "BISECT_LOG")
_MARK = "artoo-made"
"""A file that an act writes to each repository that it makes. It is written last, so any newer file was changed
after the act."""


def move(act: GitAct) -> None:
    """Apply the act. Idempotent. Raises SandboxError if the user has changed one of these values since the
    approval."""
    git = _git_of(act)
    try:
        if act.created:
            _create(act, git)
            return
        now = state_outside(git)
        if moved := _moved(act, now):
            raise SandboxError(f"{act.git_dir}: {'; '.join(moved)}: nothing of the task was applied there")
        # Objects are added first, because a ref must never point to a missing object.
        _bring_objects(git, act.pack)
        _keep(git, act, "lost", act.lost)
        _set_values(git, act, now, f"artoo: apply task {act.task_id}")
    except (GitFailed, OSError) as error:
        raise SandboxError(f"git could not change {act.git_dir}: {error}") from error


def move_back(act: GitAct) -> tuple[Conflict, ...]:
    """Undo the act. Idempotent. If the user has changed a value since, nothing is undone, and the conflicts are
    returned.

    Raises SandboxError if git refuses.
    """
    git = _git_of(act)
    if not git.directory.is_dir():
        return ()  # the user has removed the repository, or a crash happened before it was made
    try:
        if act.created:
            return _take_away(act, git)
        back, now = _reversed(act), state_outside(git)
        if moved := _moved(back, now) + _begun_since(git, back):
            said = f"{'; '.join(moved)}: refs and index stay as they are{_advice(act)}"
            return (Conflict(path=act.git_dir, reason=said),)
        _keep(git, act, "undone", objects_named(one.new for one in act.refs))
        _set_values(git, back, now, f"artoo: undo task {act.task_id}")
    except (GitFailed, OSError) as error:
        raise SandboxError(f"git could not restore {act.git_dir}: {error}") from error
    return ()


def forget(act: GitAct) -> None:
    """Delete the refs that keep lost and undone commits. This is called when the act can no longer be undone.
    Idempotent.

    Errors are ignored, because the refs only use disk space.
    """
    git = _git_of(act)
    try:
        names = git.run("for-each-ref", "--format=delete %(refname)", _place(act))
        if names:
            git.run("update-ref", "--stdin", stdin=names)
    except (GitFailed, OSError):
        return


def _git_of(act: GitAct) -> Git:
    return Git(act.git, Path(os.fsdecode(path_bytes(act.git_dir))))


def _reversed(act: GitAct) -> GitAct:
    """Return the act with old and new values exchanged."""
    refs = tuple(one.model_copy(update={"old": one.new, "new": one.old}) for one in act.refs)
    index = tuple(one.model_copy(update={"old": one.new, "new": one.old}) for one in act.index)
    return act.model_copy(
        update={"refs": refs, "index": index, "stash_old": act.stash_new, "stash_new": act.stash_old}
    )


def _value(one: RefChange, now: State) -> str:
    return now.head if one.name == "HEAD" else now.refs.get(one.name, "")


def _moved(act: GitAct, now: State) -> list[str]:
    """Return messages about values that are neither the old nor the new ones of the act."""
    said = [f"{one.name} was moved since" for one in act.refs if _value(one, now) not in (one.old, one.new)]
    said += [
        f"{one.path} was staged since"
        for one in act.index
        if now.index.get(path_bytes(one.path), ()) not in (one.old, one.new)
    ]
    if act.stash_old != act.stash_new and now.stash not in (act.stash_old, act.stash_new):
        said.append("the stash was changed since")
    if act.has_checkout and not said and (now.head not in act.heads or now.commit not in act.commits):
        said.append("HEAD was moved since")
    return said[:10]


def _begun_since(git: Git, back: GitAct) -> list[str]:
    """Return messages about operations that the user has not finished. Meanwhile HEAD and index must not be
    undone."""
    begun = [name for name in _UNDER_WAY if (git.directory / name).exists()]
    return [f"{name} says that the user began something since" for name in begun if back.has_checkout]


def _advice(act: GitAct) -> str:
    """Return advice on how the user can revert the commits of a task on a branch."""
    for one in act.refs:
        if one.name.startswith("refs/heads/") and one.old and one.new:
            return f"; git revert {one.old[:10]}..{one.new[:10]} takes back the task's commits"
    return ""


# --- setting values -----------------------------------------------------------------------------------------------


def _bring_objects(git: Git, pack: str) -> None:
    """Add the objects of a pack after git has checked each of them."""
    if pack:
        with open(path_bytes(pack), "rb") as source:
            git.run("index-pack", "--stdin", "--strict", source=source)


def _place(act: GitAct) -> str:
    return f"refs/artoo/{re.sub('[^A-Za-z0-9-]+', '-', act.task_id).strip('-') or 'task'}"


def _keep(git: Git, act: GitAct, kind: str, objects: Iterable[str]) -> None:
    """Make refs to objects, so that git does not delete the objects while the operation can be undone."""
    lines = "".join(f"update {_place(act)}/{kind}/{one} {one}\n" for one in objects)
    git.run("update-ref", "--stdin", stdin=lines.encode())


def _set_values(git: Git, act: GitAct, now: State, message: str) -> None:
    """Set refs, index and stash to the new values of the act, and leave everything else unchanged."""
    left = [one for one in act.refs if _value(one, now) != one.new]
    plain = [one for one in left if SYMBOLIC not in one.old + one.new]
    made = [one.name for one in plain if one.new]
    gone = [one for one in plain if not one.new]
    # The ref `a/b` cannot be made while `a` exists, so git needs two transactions: one to delete, one to create.
    if any(
        f"{name}/".startswith(f"{one.name}/") or one.name.startswith(f"{name}/") for one in gone for name in made
    ):
        _transaction(git, gone, message)
        plain = [one for one in plain if one.new]
    _transaction(git, plain, message)
    for one in left:
        name = _raw(one.name)
        if one.new.startswith(SYMBOLIC):
            git.run("symbolic-ref", "-m", message, name, _raw(one.new.removeprefix(SYMBOLIC)))
        elif one.old.startswith(SYMBOLIC):
            git.run("update-ref", "--no-deref", "-m", message, *([name, one.new] if one.new else ["-d", name]))
    _set_index(git, act.index, act.object_format)
    if act.stash_old != act.stash_new:
        _set_stash(git, act.stash_new, now.stash)


def _transaction(git: Git, refs: Sequence[RefChange], message: str) -> None:
    lines = ["start"]
    for one in refs:
        verb = "delete" if not one.new else "update" if one.old else "create"
        lines += ["option no-deref", " ".join(filter(None, (verb, _raw(one.name), one.new, one.old)))]
    git.run("update-ref", "-m", message, "--stdin", stdin=os.fsencode("\n".join([*lines, "prepare", "commit", ""])))


def _raw(name: str) -> str:
    """Return the name that git uses for a printable name."""
    return os.fsdecode(path_bytes(name))


def _set_index(git: Git, changes: Sequence[IndexChange], object_format: str) -> None:
    """Set the index entries of some paths. The entries of other paths are kept."""
    nothing = b"0 " + b"0" * (64 if object_format == "sha256" else 40)
    lines = [
        entry + b"\t" + path_bytes(one.path)
        for one in changes
        for entry in (nothing, *(entry.encode() for entry in one.new))
    ]
    if lines:
        git.run("update-index", "-z", "--index-info", stdin=b"\0".join(lines) + b"\0")


def _set_stash(git: Git, entries: Sequence[StashEntry], now: Sequence[StashEntry]) -> None:
    """Set the stash to this list, newest entry first. Entries that are newer than the last common one are dropped,
    then the new ones are pushed."""
    common = 0
    while common < min(len(now), len(entries)) and now[-1 - common] == entries[-1 - common]:
        common += 1
    # `reflog delete` works only if one entry remains. If none remains, the whole stash is deleted.
    if not common and now:
        git.run("update-ref", "-d", STASH)
    for _ in range(len(now) - common if common else 0):
        git.run("reflog", "delete", "--updateref", "--rewrite", f"{STASH}@{{0}}")
    for one in reversed(entries[: len(entries) - common]):
        who = {"GIT_COMMITTER_NAME": one.name, "GIT_COMMITTER_EMAIL": one.email, "GIT_COMMITTER_DATE": one.date}
        git.run("update-ref", "--create-reflog", "-m", one.message, STASH, one.commit, variables=who)


# --- new repositories ---------------------------------------------------------------------------------------------


def _create(act: GitAct, git: Git) -> None:
    """Make a repository under a temporary name and rename it, so that no partial repository is ever visible."""
    place = git.directory
    if (place / _MARK).exists():
        return
    temporary = place.with_name(f"{place.name}.artoo-new")
    shutil.rmtree(temporary, ignore_errors=True)
    place.parent.mkdir(parents=True, exist_ok=True)
    temporary.mkdir()
    try:
        _owned_as(temporary, place.parent)
        made = Git(git.program, temporary)
        made.run("init", "-q", "--template=", f"--object-format={act.object_format}")
        (temporary / "config").unlink()
        for key, value in act.settings:
            made.run("config", "--file", "config", "--add", key, value)
        if act.shallow:
            _write(temporary / "shallow", act.shallow.encode(), 0o644)
        _bring_objects(made, act.pack)
        _set_values(made, act, State(act.object_format), f"artoo: apply task {act.task_id}")
        for extra in act.extras:
            _write(temporary / extra.inner, extra.content.encode("latin-1"), extra.mode)
        _write(temporary / _MARK, act.task_id.encode(), 0o644)
        temporary.rename(place)
    finally:
        shutil.rmtree(temporary, ignore_errors=True)


def _take_away(act: GitAct, git: Git) -> tuple[Conflict, ...]:
    """Remove a repository that an operation made, unless it was used since. A newer index alone does not count as
    use, because git also rewrites it by itself."""
    made = (git.directory / _MARK).stat().st_ctime_ns if (git.directory / _MARK).exists() else 0
    paths = (Path(directory, name) for directory, _, names in os.walk(git.directory) for name in names)
    if any(path.lstat().st_ctime_ns > made for path in paths if path != git.directory / "index"):
        return (Conflict(path=act.git_dir, reason="the repository was used since: it stays as it is"),)
    aside = git.directory.with_name(f"{git.directory.name}.artoo-undone")
    shutil.rmtree(aside, ignore_errors=True)
    git.directory.rename(aside)
    shutil.rmtree(aside)
    return ()


def _write(path: Path, content: bytes, mode: int) -> None:
    path.parent.mkdir(exist_ok=True)
    path.write_bytes(content)
    path.chmod(mode)
    for one in (path.parent, path):
        _owned_as(one, path.parent.parent)


def _owned_as(path: Path, other: Path) -> None:
    if os.geteuid() == 0:
        seen = other.stat()
        os.chown(path, seen.st_uid, seen.st_gid)
