"""What the real files were when a view first changed them: the base against which settling finds conflicts.

One JSON object a line, appended before the change is folded into the view. The first line of a path counts; a last
line that a crash cut is none.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Container, Iterable, Iterator, Mapping
from pathlib import Path

from pydantic import BaseModel, ConfigDict, ValidationError

from artoo.contracts.changes import Node, path_bytes
from artoo.contracts.errors import SandboxError
from artoo.world.began import Meanwhile
from artoo.world.files import parent_of
from artoo.world.git_index import INDEX
from artoo.world.git_layout import Part, part_of, repository_of
from artoo.world.journal import StateRecord
from artoo.world.nodes import NodeState, digest_file
from artoo.world.scan import Touched
from artoo.world.union import RealFiles


class Base(BaseModel):
    """One path of the person's, absolute and printable, as the view found it.

    `changed_ns` is its ctime, which tells only of what cannot be read whether it is as it was. `sha256` (hex) of a
    file's content; None for what is no file, or could not be read. `overtaken`: it was changed while the command
    ran that changed it in the view, and nobody knows which version that command saw.
    """

    model_config = ConfigDict(frozen=True, extra="forbid", defer_build=True)

    path: str
    was: StateRecord
    changed_ns: int
    sha256: str | None = None
    overtaken: bool = False


def read_base(file: Path) -> dict[str, Base]:
    """By path. Raises SandboxError when a line in the middle is damaged."""
    try:
        lines = file.read_bytes().split(b"\n")
    except FileNotFoundError:
        return {}
    except OSError as error:
        raise SandboxError(f"{file} cannot be read: {error.strerror}") from error
    found: dict[str, Base] = {}
    for number, line in enumerate(lines[:-1]):  # what comes after the last newline was cut by a crash
        try:
            base = Base.model_validate_json(line)
        except ValidationError as error:
            raise SandboxError(f"{file}, line {number + 1} is damaged: {error}; keep it and report this") from error
        found.setdefault(base.path, base)
    return found


def append_base(file: Path, bases: Iterable[Base]) -> None:
    """Adds lines in one write. Raises OSError (disk full); then nothing was added."""
    data = b"".join(base.model_dump_json().encode() + b"\n" for base in bases)
    if not data:
        return
    descriptor = os.open(file, os.O_RDWR | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o600)
    try:
        whole = _whole_length(descriptor)
        try:
            view = memoryview(data)
            while view:
                view = view[os.write(descriptor, view) :]
        except OSError:
            os.ftruncate(descriptor, whole)
            raise
    finally:
        os.close(descriptor)


def _whole_length(descriptor: int) -> int:
    """The length up to the last whole line; a part of a line that a crash left is cut off."""
    size = os.fstat(descriptor).st_size
    if size == 0 or os.pread(descriptor, 1, size - 1) == b"\n":
        return size
    content = os.pread(descriptor, size, 0)
    whole = content.rfind(b"\n") + 1
    os.ftruncate(descriptor, whole)
    return whole


def unchanged_since(bases: Mapping[str, Base]) -> Callable[[str, NodeState], tuple[NodeState, str] | None]:
    """What is known of the person's files that are as the view found them: for `scan`.

    A file's inode and both of its times say so, to the nanosecond. Nobody can set the time at which it was last
    changed; that a clock was set back to just that one is left to the act, which reads what it takes away.
    """

    def known(path: str, now: NodeState) -> tuple[NodeState, str] | None:
        base = bases.get(path)
        if base is None or base.sha256 is None:
            return None
        was = base.was
        if (was.inode, was.device, was.size, was.mtime_ns) != (now.inode, now.device, now.size, now.mtime_ns):
            return None
        if base.changed_ns != now.ctime_ns:
            return None
        return now._replace(xattrs=tuple(was.attributes().items())) if was.xattrs else now, base.sha256

    return known


def bases_of(known: Container[str], touched: Iterable[Touched], meanwhile: Meanwhile) -> Iterator[Base]:
    """What is to be kept of things of the person's that a layer touches, as far as it is not known.

    `meanwhile`: while the command ran that touched them.
    """
    for one in touched:
        path = one.shown
        was = StateRecord.of(one.state)
        if path not in known and was is not None:
            digest = one.digest or _digest(*one.place) if was.node is Node.FILE else None
            changed = one.state.ctime_ns
            overtaken = not one.state.is_directory and changed in meanwhile and not _is_gits_index(path)
            yield Base(path=path, was=was, changed_ns=changed, sha256=digest, overtaken=overtaken)


def _is_gits_index(path: str) -> bool:
    """Git writes it at every look, so what it stages decides. Any other file may be called the same."""
    if not path.endswith(f"/{INDEX}"):
        return False
    file = Path(os.fsdecode(path_bytes(path)))
    files = RealFiles()
    repository = repository_of(file.parent, files, files)
    return repository is not None and part_of(str(file.relative_to(repository))) is Part.INDEX


def _digest(root: str, relative: str) -> str | None:
    try:
        with parent_of(root, relative) as (directory, name):
            return digest_file(directory, name)
    except OSError:  # unreadable, or gone meanwhile: then its inode and times must do
        return None
