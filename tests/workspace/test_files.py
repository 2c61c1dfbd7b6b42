"""Files read from outside: they are what commands see, and nothing outside of the root is ever read."""

from __future__ import annotations

import asyncio
import errno
import os
import shutil
import stat
import threading
from contextlib import suppress
from pathlib import Path

import pytest
from task_world import World

from artoo.contracts.errors import SandboxError
from artoo.ports.workspace import Files
from artoo.workspace.changes.path_class import Places
from artoo.workspace.files import beneath
from artoo.workspace.files.beneath import write_beneath
from artoo.workspace.files.layered import offline_files
from artoo.workspace.files.rooted import RootedFiles, real_files
from artoo.workspace.files.visible import VisibleFiles


@pytest.fixture(params=["openat2", "steps"])
def rooted(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A root directory, read by the system call and by single steps, as on macOS."""
    if request.param == "steps":
        monkeypatch.setattr(beneath, "_has_openat2", lambda: False)
    root = tmp_path / "root"
    (root / "home" / "sub").mkdir(parents=True)
    (root / "home" / "sub" / "f").write_text("inside")
    (tmp_path / "secret").write_text("outside")
    return root


def opened(root: Path) -> RootedFiles:
    descriptor = os.open(root, os.O_RDONLY | os.O_DIRECTORY)
    try:
        return RootedFiles(descriptor)
    finally:
        os.close(descriptor)


def read(files: Files, path: str) -> bytes:
    with files.open(files.resolve(Path(path))) as file:
        return file.read()


def test_links_are_followed_inside_the_root(rooted: Path) -> None:
    """Absolute ones begin at the root, and `..` never leaves it."""
    (rooted / "abs").symlink_to("/home/sub")
    (rooted / "home" / "rel").symlink_to("../abs/f")
    (rooted / "out").symlink_to("../../../../secret")
    (rooted / "loop").symlink_to("loop")
    files = opened(rooted)
    assert read(files, "/home/rel") == b"inside"
    assert files.resolve(Path("/abs/missing/x")) == Path("/home/sub/missing/x")
    assert files.resolve(Path("/out")) == Path("/secret")
    assert files.stat(Path("/secret")) is None
    with pytest.raises(OSError, match=os.strerror(errno.ELOOP)):
        files.resolve(Path("/loop"))
    assert files.names(Path("/")) == ("abs", "home", "loop", "out")
    assert files.readlink(Path("/abs")) == Path("/home/sub")
    files.close()


def test_only_regular_files_are_opened(rooted: Path) -> None:
    """A pipe does not block, a directory is an error, and a link in a path that is not resolved is one."""
    os.mkfifo(rooted / "pipe")
    (rooted / "link").symlink_to("home")
    files = opened(rooted)
    for path, number in (("/pipe", errno.EINVAL), ("/home", errno.EISDIR), ("/link/sub/f", errno.ELOOP)):
        with pytest.raises(OSError) as caught:
            files.open(Path(path))
        assert caught.value.errno in (number, errno.ENOTDIR)
    seen = files.stat(Path("/pipe"))
    assert seen is not None and stat.S_ISFIFO(seen.mode)
    files.close()
    assert files.stat(Path("/home")) is None


def test_a_directory_that_becomes_a_link_is_never_followed_out(rooted: Path) -> None:
    """A process swaps it for a link to the outside while artoo reads and writes."""
    outside = rooted.parent / "outside"
    outside.mkdir()
    (outside / "f").write_text("outside")
    inside, kept = rooted / "home" / "sub", rooted / "home" / "kept"
    stop = threading.Event()

    def swap() -> None:
        while not stop.is_set():
            with suppress(OSError):  # artoo has made the missing directory again
                inside.rename(kept)
                inside.symlink_to(outside)
                inside.unlink()
                kept.rename(inside)
                continue
            shutil.rmtree(inside, ignore_errors=True)
            with suppress(OSError):
                kept.rename(inside)

    files, thread = opened(rooted), threading.Thread(target=swap)
    descriptor = os.open(rooted, os.O_RDONLY)
    thread.start()
    try:
        for _ in range(600):
            with suppress(OSError):
                assert read(files, "/home/sub/f") in (b"inside", b"new")
            with suppress(OSError, SandboxError):
                write_beneath(descriptor, "/home/sub/f", b"new")
    finally:
        stop.set()
        thread.join()
        files.close()
        os.close(descriptor)
    assert (outside / "f").read_text() == "outside"
    assert sorted(os.listdir(outside)) == ["f"]


def test_writing_replaces_whole_files(rooted: Path) -> None:
    """Mode and attributes stay, and what cannot hold a file is refused."""
    path = rooted / "home" / "sub" / "f"
    path.chmod(0o640)
    os.setxattr(path, "user.note", b"kept")
    descriptor = os.open(rooted, os.O_RDONLY)
    try:
        write_beneath(descriptor, "/home/sub/f", b"new")
        assert path.read_text() == "new"
        assert stat.S_IMODE(path.stat().st_mode) == 0o640
        assert os.getxattr(path, "user.note") == b"kept"
        for wrong in ("/home/sub", "/home/sub/f/below"):
            with pytest.raises(Exception, match="not a"):
                write_beneath(descriptor, wrong, b"x")
        assert os.listdir(path.parent) == ["f"]
    finally:
        os.close(descriptor)


def test_the_environment_of_artoo_is_not_among_the_files() -> None:
    """Keys stand in it; other parts of /proc may be read."""
    files = real_files()
    for path in (f"/proc/{os.getpid()}/environ", "/proc/self/environ", "/proc/thread-self/environ"):
        assert files.stat(files.resolve(Path(path))) is None
    assert read(files, "/proc/version")


SCENE = """
mkdir -p a/b c; echo new > a/new; echo x >> a/old; rm a/gone; rm -r dir; mkdir dir; echo made > dir/made
rm file; mkdir file; echo in > file/in; rm -r tree; echo leaf > tree; ln -s a/old link; mv deep moved
echo tmp > /tmp/artoo-test-t; ln -s /tmp/artoo-test-t tmplink
"""


def prepared(world: World) -> None:
    for name in ("a/old", "a/gone", "a/same", "dir/x", "file", "tree/x/y", "deep/er/f"):
        (world.project / name).parent.mkdir(parents=True, exist_ok=True)
        (world.project / name).write_text(name)


def listing(files: Files, directory: Path) -> dict[str, object]:
    """Everything below a directory, with contents."""
    found: dict[str, object] = {}
    for name in files.names(directory):
        path = directory / name
        seen = files.stat(path)
        assert seen is not None
        if stat.S_ISDIR(seen.mode):
            found[name] = listing(files, path)
        elif stat.S_ISLNK(seen.mode):
            found[name] = (str(files.readlink(path)), read(files, str(path)))
        else:
            found[name] = (stat.S_IMODE(seen.mode), read(files, str(path)))
    return found


def test_a_workspace_at_rest_shows_what_its_commands_saw(world: World) -> None:
    """Reading the layers without a mount gives the same as the mount: deletions, replacements, links, /tmp."""
    prepared(world)

    async def work() -> dict[str, object]:
        async with world.task() as task:
            await task.says(SCENE)
            living = await asyncio.to_thread(listing, task.workspace.files, world.project)
            assert await task.says("find . -type f | sort") == _found(living, ".")
            return living

    living = asyncio.run(work())
    files = offline_files(world.directory())
    try:
        assert listing(files, world.project) == living
        assert files.stat(world.project / "dir" / "x") is None
        assert files.resolve(world.project / "link") == world.project / "a" / "old"
    finally:
        files.close()


def _found(listed: dict[str, object], above: str) -> str:
    paths: list[str] = []

    def walk(one: dict[str, object], path: str) -> None:
        for name, inner in one.items():
            if isinstance(inner, dict):
                walk(inner, f"{path}/{name}")  # pyright: ignore[reportUnknownArgumentType]
            elif isinstance(inner, tuple) and isinstance(inner[0], int):
                paths.append(f"{path}/{name}")

    walk(listed, above)
    return "".join(f"{path}\n" for path in sorted(paths))


def test_hidden_paths_are_not_there_without_a_sandbox(world: World) -> None:
    """Before the first command, tools see no more than commands will."""
    (world.home / ".ssh").mkdir()
    (world.home / ".ssh" / "id").write_text("key")
    files = VisibleFiles(real_files(), Places.of(world.roots, world.artoo_home))
    assert files.stat(world.home / ".ssh" / "id") is None
    for path in (world.home / ".ssh", world.artoo_home):
        with pytest.raises(PermissionError):
            files.names(path)
    assert files.names(world.project) == ()
