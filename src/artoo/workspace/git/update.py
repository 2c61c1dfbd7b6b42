"""Set refs, reflogs, index and stash of a repository to given values, and leave everything else as it is."""

from __future__ import annotations

import os
import shutil
from collections.abc import Generator, Iterable, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path

from artoo.contracts.changes import path_bytes
from artoo.workspace.git.plan import STASH, SYMBOLIC, RefChange, StashEntry
from artoo.workspace.git.run import Git, GitFailed
from artoo.workspace.git.state import State

_LOCK_OF_ARTOO = b"artoo\n"


def bring_objects(git: Git, pack: str) -> None:
    """Add the objects of a pack after git has checked each of them. Raises GitFailed, OSError."""
    if pack:
        with open(path_bytes(pack), "rb") as source:
            git.run("index-pack", "--stdin", "--strict", source=source)


def set_refs(git: Git, refs: Sequence[RefChange], now: State, message: str) -> None:
    """Move all refs in one transaction with their old values, then those that stand for others."""
    left = [one for one in refs if (now.head if one.name == "HEAD" else now.refs.get(one.name, "")) != one.new]
    plain = [one for one in left if not (one.new.startswith(SYMBOLIC) or one.old.startswith(SYMBOLIC))]
    gone = [one for one in plain if not one.new]
    if _one_in_the_way(gone, plain):  # a/b cannot be made while there is a: git takes them in two steps only
        _transaction(git, gone, message)
        plain = [one for one in plain if one.new]
    _transaction(git, plain, message)
    for one in left:
        if one.new.startswith(SYMBOLIC):
            git.run("symbolic-ref", "-m", message, _raw(one.name), _raw(one.new.removeprefix(SYMBOLIC)))
        elif one.old.startswith(SYMBOLIC):
            target = [_raw(one.name), one.new] if one.new else ["-d", _raw(one.name)]
            git.run("update-ref", "--no-deref", "-m", message, *target)


def _one_in_the_way(gone: Iterable[RefChange], refs: Sequence[RefChange]) -> bool:
    made = [one.name for one in refs if one.new]
    return any(name.startswith(f"{one.name}/") or one.name.startswith(f"{name}/") for one in gone for name in made)


def _transaction(git: Git, refs: Sequence[RefChange], message: str) -> None:
    if not refs:
        return
    lines = ["start"]
    for one in refs:
        lines.append("option no-deref")
        if not one.new:
            lines.append(f"delete {_raw(one.name)} {one.old}")
        elif not one.old:
            lines.append(f"create {_raw(one.name)} {one.new}")
        else:
            lines.append(f"update {_raw(one.name)} {one.new} {one.old}")
    lines += ["prepare", "commit"]
    git.run("update-ref", "-m", message, "--stdin", stdin=os.fsencode("\n".join(lines) + "\n"))


def _raw(name: str) -> str:
    """Return a printable name as git has it."""
    return os.fsdecode(path_bytes(name))


def restore_logs(git: Git, refs: Iterable[RefChange]) -> None:
    """Put the reflogs of branches back that came with their deletion: git has no command for it."""
    for one in refs:
        log = git.directory / "logs" / _raw(one.name)
        if one.log and log.is_file() and not log.is_symlink():
            old = one.log.encode("latin-1")
            if not (now := log.read_bytes()).startswith(old):
                _write_beside(log, old + now)


def _write_beside(path: Path, content: bytes) -> None:
    """Replace a file of git atomically; it keeps its owner and mode."""
    found = path.stat()
    temporary = path.with_name(f"{path.name}.artoo")
    temporary.write_bytes(content)
    if os.geteuid() == 0:
        os.chown(temporary, found.st_uid, found.st_gid)
    temporary.chmod(found.st_mode & 0o7777)
    temporary.replace(path)


# --- index and stash ----------------------------------------------------------------------------------------------


def set_index(git: Git, wanted: Mapping[str, tuple[str, ...]], object_format: str) -> None:
    """Set the entries of some paths, and leave everything else of the index as it is, what git noted of files too."""
    if not wanted:
        return
    lines: list[bytes] = []
    nothing = b"0" * (64 if object_format == "sha256" else 40)
    for path, entries in wanted.items():
        raw = path_bytes(path)
        lines.append(b"0 " + nothing + b"\t" + raw + b"\0")
        lines += [entry.encode() + b"\t" + raw + b"\0" for entry in entries]
    with _index_locked(git) as temporary:
        git.run(
            "update-index",
            "-z",
            "--index-info",
            stdin=b"".join(lines),
            variables={"GIT_INDEX_FILE": str(temporary)},
        )


@contextmanager
def _index_locked(git: Git) -> Generator[Path]:
    """Hold git's own lock on the index, and put a changed copy in its place at the end."""
    lock, index = git.directory / "index.lock", git.directory / "index"
    temporary = git.directory / "index.artoo"
    if lock.is_file() and lock.read_bytes() == _LOCK_OF_ARTOO:
        lock.unlink()  # an earlier try died here; the caller holds the workspace, so no other artoo is at work
    try:
        descriptor = os.open(lock, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW, 0o644)
    except FileExistsError as error:
        raise GitFailed(f"{lock} exists: another git is at work") from error
    try:
        with os.fdopen(descriptor, "wb") as file:
            file.write(_LOCK_OF_ARTOO)
        temporary.unlink(missing_ok=True)
        if index.exists():
            shutil.copyfile(index, temporary)
            owned_as(temporary, git.directory)
        yield temporary
        temporary.replace(index)
    finally:
        temporary.unlink(missing_ok=True)
        lock.unlink(missing_ok=True)


def owned_as(path: Path, other: Path) -> None:
    if os.geteuid() == 0:
        found = other.stat()
        os.chown(path, found.st_uid, found.st_gid)


def set_stash(git: Git, entries: Sequence[StashEntry], now: Sequence[StashEntry]) -> None:
    """Make the stash this list, newest first: drop down to what both have in common, then push the rest."""
    common = 0
    while common < min(len(now), len(entries)) and now[-1 - common] == entries[-1 - common]:
        common += 1
    if not common and now:
        git.run("update-ref", "-d", STASH)
    elif common:
        for _ in range(len(now) - common):
            git.run("reflog", "delete", "--updateref", "--rewrite", f"{STASH}@{{0}}")
    for one in reversed(entries[: len(entries) - common]):
        who = {
            "GIT_COMMITTER_NAME": one.name,
            "GIT_COMMITTER_EMAIL": one.email,
            "GIT_COMMITTER_DATE": one.date,
        }
        git.run("update-ref", "--create-reflog", "-m", one.message, STASH, one.commit, variables=who)
