"""Make a repository that the task made, from nothing but checked objects, refs, index and approved settings."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

from artoo.contracts.changes import path_bytes
from artoo.workspace.git.plan import GitAct
from artoo.workspace.git.run import Git, GitFailed
from artoo.workspace.git.state import state_outside
from artoo.workspace.git.update import bring_objects, owned_as, set_index, set_refs, set_stash

_MADE = frozenset(
    {"HEAD", "config", "objects", "refs", "logs", "index", "packed-refs", "shallow", "info", "hooks"}
    | {"ORIG_HEAD", "FETCH_HEAD", "gc.log", "description", "branches"}
)
"""What may lie in a repository that nobody used since: the act's own, and what git writes when it only looks."""


def create(act: GitAct, git: Git) -> None:
    """Make the repository next to its place and rename it there. Idempotent. Raises GitFailed, OSError."""
    place = git.directory
    if os.path.lexists(place) and (not place.is_dir() or any(place.iterdir())):
        if place.is_dir() and is_as_left(act, git):
            return
        raise GitFailed("something else is there now")
    temporary = place.with_name(f"{place.name}.artoo-new")
    shutil.rmtree(temporary, ignore_errors=True)
    temporary.mkdir()
    owned_as(temporary, place.parent)
    made = Git(git.program, temporary)
    made.run("init", "-q", "--template=", f"--object-format={act.object_format}")
    (temporary / "config").unlink()
    for key, value in act.settings:
        made.run("config", "--file", "config", "--add", key, value)
    if act.shallow:
        _write(temporary / "shallow", "".join(f"{one}\n" for one in act.shallow).encode(), 0o644)
    bring_objects(made, act.pack)
    set_refs(made, act.refs, state_outside(made), "artoo: apply task " + act.task_id)
    set_index(made, {one.path: one.new for one in act.index}, act.object_format)
    set_stash(made, act.stash_new, ())
    for extra in act.extras:
        _write(temporary / extra.inner, extra.content.encode("latin-1"), extra.mode)
    temporary.rename(place)


def is_as_left(act: GitAct, git: Git) -> bool:
    """True if nothing of the repository changed since it was made. Raises GitFailed, OSError."""
    if not git.directory.is_dir() or not set(os.listdir(git.directory)) - _used_by_submodules(git) <= _MADE:
        return False
    now = state_outside(git)
    refs = {one.name: one.new for one in act.refs if one.name != "HEAD"}
    index = {path_bytes(one.path): one.new for one in act.index}
    if (dict(now.refs), now.head, now.commit) != (refs, act.heads[1], act.commits[1]) or now.stash != act.stash_new:
        return False
    settings = git.run("config", "--file", "config", "--no-includes", "--list", "-z")
    listed = [tuple(os.fsdecode(one).partition("\n")[::2]) for one in settings.split(b"\0") if one]
    loose = git.text("count-objects", "-v").splitlines()[0]
    return (
        dict(now.index) == index
        and sorted(listed) == sorted(act.settings)
        and loose == "count: 0"
        and _extras(act, git)
    )


def take_away(git: Git) -> None:
    """Remove the repository, by renaming it first: half of one must never stand there."""
    aside = git.directory.with_name(f"{git.directory.name}.artoo-undone")
    shutil.rmtree(aside, ignore_errors=True)
    git.directory.rename(aside)
    shutil.rmtree(aside)


def _used_by_submodules(git: Git) -> set[str]:
    """Return the directory of submodules' repositories if their own acts have already emptied it."""
    modules = git.directory / "modules"
    return set() if any(files for _, _, files in os.walk(modules)) else {"modules"}


def _extras(act: GitAct, git: Git) -> bool:
    known = {one.inner: one.content.encode("latin-1") for one in act.extras}
    for name in ("hooks", "info"):
        for directory, _, files in os.walk(git.directory / name):
            for file in files:
                path = Path(directory, file)
                inner = str(path.relative_to(git.directory))
                if (inner not in known and inner != "info/refs") or (
                    inner in known and path.read_bytes() != known[inner]
                ):
                    return False
    return True


def _write(path: Path, content: bytes, mode: int) -> None:
    path.parent.mkdir(exist_ok=True)
    path.write_bytes(content)
    path.chmod(mode)
    for one in (path.parent, path):
        owned_as(one, path.parent.parent)
