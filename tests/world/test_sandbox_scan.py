"""Reading changes: every kind of change is found, classified and said, and nothing else is."""

from __future__ import annotations

import errno
import hashlib
import os
import stat
import subprocess
from pathlib import Path
from typing import Any

import pytest
from sandbox_world import Commands, World, asked, why

from artoo.contracts.changes import Change, ChangeKind, Node, PathClass, Trait, path_bytes
from artoo.contracts.settling import ChangeClass
from artoo.ports.sandbox import Limits
from artoo.world.nodes import attributes_of, digest_file, read_state, with_content
from artoo.world.undo import undo


def by_name(changes: tuple[Change, ...]) -> dict[str, Change]:
    return {change.path.rpartition("/")[2]: change for change in changes}


async def test_each_kind(any_overlay: Commands, world: World) -> None:
    """Created, overwritten, appended, deleted, mode, link, replaced directory, pipe: each has its record."""
    project = world.project
    for name in ("over", "grow", "gone", "mode", "same", "touched"):
        (project / name).write_text("old text\n")
    (project / "dir").mkdir()
    (project / "dir" / "inner").write_text("lost")
    run = await any_overlay.run(
        world.bash(
            "echo n > new; echo n > over; echo n >> grow; rm gone; chmod 600 mode; cat same > s; cp s same; rm s;"
            "rm -r dir; mkdir dir; ln -s over link; mkfifo pipe; touch -d 2001-01-01 touched"
        )
    )
    found = by_name(run.changes)
    kinds = {name: change.kind for name, change in found.items()}
    assert kinds == {
        "new": ChangeKind.CREATED,
        "over": ChangeKind.OVERWRITTEN,
        "grow": ChangeKind.OVERWRITTEN,
        "gone": ChangeKind.DELETED,
        "mode": ChangeKind.METADATA,
        "same": ChangeKind.METADATA,
        "touched": ChangeKind.METADATA,
        "dir": ChangeKind.DIRECTORY_REPLACED,
        "inner": ChangeKind.DELETED,
        "link": ChangeKind.LINK,
        "pipe": ChangeKind.SPECIAL,
    }
    assert found["grow"].has(Trait.APPENDED) and not found["over"].has(Trait.APPENDED)
    assert found["same"].has(Trait.TIMES_ONLY) and found["touched"].has(Trait.TIMES_ONLY)
    assert (found["over"].size_before, found["over"].size_after) == (9, 2)
    assert found["mode"].detail == "mode 0644 -> 0600"
    assert found["link"].detail == "link to over"
    loud = {path.rpartition("/")[2] for path in asked(run.changes)}
    assert loud == {"over", "grow", "gone", "mode", "dir", "inner", "pipe"}


async def test_a_cache_is_its_directory_too(any_overlay: Commands, world: World) -> None:
    """What Python makes of a source to run it is derived, with the directory for it; a file of that name is not."""
    (world.project / "a.py").write_text("x = 1\n")
    run = await any_overlay.run(world.bash("python3 -m py_compile a.py; mkdir b; echo x > b/__pycache__"))
    derived = {Path(change.path) for change in run.changes if change.has(Trait.DERIVED)}
    cache = world.project / "__pycache__"
    assert len(derived) == 2 and cache in derived and {path.parent for path in derived} == {world.project, cache}


async def test_reading_is_no_change(any_overlay: Commands, world: World) -> None:
    """Opening for writing without writing, and chmod to the same mode, are no changes."""
    (world.project / "file").write_text("x")
    os.utime(world.project / "file", ns=(1, 1))
    run = await any_overlay.run(world.bash("cat file; : >> file; chmod 644 file; chmod 755 ."))
    assert run.changes == ()


async def test_deleting_a_tree_lists_every_path(any_overlay: Commands, world: World) -> None:
    """The list of losses is complete: each file below a deleted directory is on it."""
    for number in range(60):
        (world.project / "tree" / f"d{number % 6}").mkdir(parents=True, exist_ok=True)
        (world.project / "tree" / f"d{number % 6}" / f"f{number}").write_text("x")
    run = await any_overlay.run(world.bash("rm -rf tree"))
    assert len(run.changes) == 1 + 6 + 60
    assert len(asked(run.changes)) == 67


async def test_odd_names(any_overlay: Commands, world: World) -> None:
    """Newlines, escapes and bytes that are no UTF-8 survive; they are shown escaped and cannot forge a line."""
    names = [b"new\nline", b"esc\x1b[2Jape", b"bad\xff\xfeutf8", b"back\\slash", "rtl\u202etxt".encode()]
    script = "; ".join("printf x > $'" + "".join(f"\\x{byte:02x}" for byte in name) + "'" for name in names)
    run = await any_overlay.run(world.bash(script))
    shown = [change.path for change in run.changes]
    assert all(path.isprintable() for path in shown)
    prefix = os.fsencode(world.project) + b"/"
    assert sorted(path_bytes(path) for path in shown) == sorted(prefix + name for name in names)
    report = run.apply()
    assert report.applied
    assert sorted(os.listdir(os.fsencode(world.project))) == sorted(names)


async def test_hard_link_writes_are_seen(any_overlay: Commands, world: World) -> None:
    """A file overwritten through a new hard link is listed under its own name."""
    (world.home / "thesis").write_text("years of work")
    run = await any_overlay.run(world.bash("ln ~/thesis h && echo x > h"))
    found = by_name(run.changes)
    assert found["thesis"].kind is ChangeKind.OVERWRITTEN
    assert why(found["thesis"]) == "outside project and workspace"


async def test_rename_of_a_directory(any_overlay: Commands, world: World) -> None:
    """A renamed directory is its old paths deleted and its new ones created."""
    (world.project / "old").mkdir()
    (world.project / "old" / "file").write_text("x")
    run = await any_overlay.run(world.bash("mv old new"))
    kinds = {change.path.removeprefix(f"{world.project}/"): change.kind for change in run.changes}
    assert kinds == {
        "old": ChangeKind.DELETED,
        "old/file": ChangeKind.DELETED,
        "new": ChangeKind.CREATED,
        "new/file": ChangeKind.CREATED,
    }


async def test_locked_directories_are_read(any_overlay: Commands, world: World) -> None:
    """A directory that the command made unreadable is read all the same, and shown with its new mode."""
    run = await any_overlay.run(world.bash("mkdir d; echo x > d/f; chmod 000 d/f d"))
    found = by_name(run.changes)
    assert set(found) == {"d", "f"}
    assert run.apply().applied
    assert stat.S_IMODE((world.project / "d").stat().st_mode) == 0
    (world.project / "d").chmod(0o700)
    assert (world.project / "d" / "f").stat().st_size == 2
    (world.project / "d").chmod(0o000)
    assert undo(world.artoo_home, "task-1").refused == ()
    assert not (world.project / "d").exists()


async def test_work_inside_a_locked_directory(any_overlay: Commands, world: World) -> None:
    """A command that opens a directory, changes a file in it and closes it again is applied and undone."""
    locked = world.project / "locked"
    locked.mkdir()
    (locked / "f").write_text("old")
    locked.chmod(0o500)
    run = await any_overlay.run(world.bash("chmod 700 locked; rm locked/f; echo n > locked/n; chmod 500 locked"))
    assert run.apply().applied
    assert stat.S_IMODE(locked.stat().st_mode) == 0o500
    assert os.listdir(locked) == ["n"]
    assert undo(world.artoo_home, "task-1").refused == ()
    assert stat.S_IMODE(locked.stat().st_mode) == 0o500
    assert (locked / "f").read_text() == "old"


async def test_sparse_and_large_files(any_overlay: Commands, world: World) -> None:
    """A sparse file keeps its holes through apply."""
    run = await any_overlay.run(world.bash("truncate -s 20M big; echo end >> big"))
    assert run.apply().applied
    seen = (world.project / "big").stat()
    assert seen.st_size == 20 * 2**20 + 4
    assert seen.st_blocks * 512 < 2**20


@pytest.mark.parametrize("parts", [(), (0,), (5,), (0, 3, 5), (3,)])
@pytest.mark.parametrize("end", [0, 1, 3 << 20, (3 << 20) + 17])
def test_the_digest_of_a_file_with_holes_is_that_of_its_content(
    tmp_path: Path, parts: tuple[int, ...], end: int
) -> None:
    """Wherever the holes are, at its end too, and from wherever one begins to read."""
    file = tmp_path / "f"
    with file.open("wb") as made:
        for part in parts:
            made.seek(part << 20)
            made.write(b"data" * 1000)
        made.truncate(made.tell() + end)
    content = file.read_bytes()
    directory = os.open(tmp_path, os.O_PATH)
    try:
        for size in (len(content), 0, 10, 1 << 30):
            assert digest_file(directory, "f", size) == hashlib.sha256(content).hexdigest()
        state = read_state(directory, "f")
        assert state is not None
        start = hashlib.sha256(content[: 2 << 20]).hexdigest()
        assert with_content(directory, "f", state, 2 << 20).start == start
    finally:
        os.close(directory)


def test_holes_are_not_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The kernel makes pages for what is read of one."""
    with (tmp_path / "f").open("wb") as made:
        made.truncate(64 << 20)
    read, real = list[int](), os.read

    def counted(descriptor: int, size: int) -> bytes:
        data = real(descriptor, size)
        read.append(len(data))
        return data

    monkeypatch.setattr(os, "read", counted)
    directory = os.open(tmp_path, os.O_PATH)
    try:
        assert digest_file(directory, "f", 64 << 20) == hashlib.sha256(bytes(64 << 20)).hexdigest()
    finally:
        os.close(directory)
    assert sum(read) <= 2 << 20


async def test_attributes_are_changes(any_overlay: Commands, world: World) -> None:
    """Extended attributes set by a command are a change, and are applied; overlay's own are neither."""
    file = world.project / "file"
    file.write_text("x")
    try:
        os.setxattr(file, "user.kept", b"1")
    except OSError:
        pytest.skip("the file system of the temporary directory has no user attributes")
    script = "import os; os.setxattr('file', 'user.note', b'hello')"
    run = await any_overlay.run(world.bash(f'python3 -c "{script}"; echo new > other'))
    assert by_name(run.changes)["file"].detail == "attributes user.note"
    assert run.apply().applied
    assert sorted(os.listxattr(file)) == ["user.kept", "user.note"]
    assert os.listxattr(world.project / "other") == []


async def test_attributes_of_the_project_itself_are_left_alone(any_overlay: Commands, world: World) -> None:
    """What hangs on its directory is no change of a command that did nothing to it, and is not taken away."""
    try:
        os.setxattr(world.project, "user.synchronised", b"1")
    except OSError:
        pytest.skip("the file system of the temporary directory has no user attributes")
    run = await any_overlay.run(world.bash("echo new > other"))
    assert set(by_name(run.changes)) == {"other"}
    assert run.apply().applied
    assert os.getxattr(world.project, "user.synchronised") == b"1"


@pytest.mark.parametrize("holds", ["nowhere", "the disk", "everywhere"])
async def test_an_attribute_that_a_layer_cannot_hold_is_not_taken_away(
    any_overlay: Commands, world: World, monkeypatch: pytest.MonkeyPatch, holds: str
) -> None:
    """The directory that a view covers keeps it, though a layer of its own lacks it; another one may go."""
    try:
        for name in ("user.held", "user.gone"):
            os.setxattr(world.home, name, b"1")
    except OSError:
        pytest.skip("the file system of the temporary directory has no user attributes")
    real = os.setxattr

    def refused(path: Any, name: str, value: bytes, *flags: int, **how: bool) -> None:
        where = os.path.realpath(path)
        fits = holds == "everywhere" or (holds == "the disk" and not where.startswith("/dev/shm/"))
        if name == "user.held" and not fits:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        real(path, name, value, *flags, **how)

    monkeypatch.setattr(os, "setxattr", refused)
    script = f"import os; os.removexattr('{world.home}', 'user.gone')"
    run = await any_overlay.run(world.bash(f'python3 -c "{script}"; echo new > other; chmod 711 {world.home}'))
    monkeypatch.undo()
    assert run.exit_code == 0
    assert run.apply().applied
    assert (world.project / "other").exists() and stat.S_IMODE(world.home.stat().st_mode) == 0o711
    assert os.listxattr(world.home) == ["user.held"]


def test_attributes_of_file_systems_and_security_modules_are_nobodys_change(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An NFS server's access list, a label: a layer on another disk has none, and no undo could set them."""
    (tmp_path / "f").touch()
    listed = ["user.a", "system.nfs4_acl", "security.SMACK64", "btrfs.compression", "system.posix_acl_access"]

    def names(*_: object, **__: object) -> list[str]:
        return list(listed)

    def value(*_: object, **__: object) -> bytes:
        return b"v"

    monkeypatch.setattr(os, "listxattr", names)
    monkeypatch.setattr(os, "getxattr", value)
    assert [name for name, _ in attributes_of(tmp_path / "f")] == ["system.posix_acl_access", "user.a"]


async def test_a_persons_attribute_that_speaks_of_overlays_is_kept(any_overlay: Commands, world: World) -> None:
    """Only the names that overlayfs itself uses are its own."""
    file = world.project / "file"
    file.write_text("x")
    try:
        os.setxattr(file, "user.my.overlay.note", b"1")
    except OSError:
        pytest.skip("the file system of the temporary directory has no user attributes")
    run = await any_overlay.run(world.bash("echo more >> file; echo new > other"))
    assert run.apply().applied
    assert os.listxattr(file) == ["user.my.overlay.note"]
    assert os.listxattr(world.project / "other") == []


async def test_what_hard_links_share_is_not_changed_in_silence(any_overlay: Commands, world: World) -> None:
    """Mode and times are changed under every name: it is said, and asked."""
    outside = world.home / "outside"
    outside.write_text("x")
    for name in ("touched", "rights"):
        os.link(outside, world.project / name)
    run = await any_overlay.run(world.bash("touch -d 2001-01-01 touched; chmod 700 rights"))
    found = by_name(run.changes)
    assert {one.change_class for one in run.difference.classes} == {ChangeClass.MODE}
    assert not run.difference.silent
    assert all("has 2 other hard link(s), which change with it" in one.detail for one in found.values())


async def test_times_elsewhere_are_asked_about(any_overlay: Commands, world: World) -> None:
    """A date is what a person finds a document by: outside project and workspace it is not set in silence."""
    for place in (world.home, world.project):
        (place / "paper").write_text("x")
    run = await any_overlay.run(world.bash("touch -d 2001-01-01 ~/paper paper"))
    said = {one.path.removeprefix(f"{world.home}/"): one.change_class for one in run.difference.classes}
    assert said == {"paper": ChangeClass.MODE, "project/paper": ChangeClass.SILENT}


def mounting(*argv: str) -> bool:
    return subprocess.run(argv, capture_output=True, check=False).returncode == 0


async def test_mount_inside_home_is_visible(any_overlay: Commands, world: World) -> None:
    """What is mounted inside the home is seen by the command, read-only."""
    inner = world.project / "mounted"
    inner.mkdir()
    if not mounting("mount", "-t", "tmpfs", "tmpfs", str(inner)):
        pytest.skip("this user may not mount a file system")
    try:
        (inner / "file").write_text("seen")
        run = await any_overlay.run(world.bash("cat mounted/file; echo x > mounted/file"))
        assert run.stdout.text == "seen"
        assert (inner / "file").read_text() == "seen"
    finally:
        assert mounting("umount", str(inner))


async def test_too_many_paths_are_refused(any_overlay: Commands, world: World) -> None:
    """More changed paths than the limit end in a clear refusal, not in a shortened list."""
    run = await any_overlay.run(
        world.bash("mkdir m; for i in $(seq 400); do : > m/$i; done; sleep 1", limits=Limits(paths=100))
    )
    assert run.status == "disk_limit"
    assert run.changes == ()


async def test_links_are_not_followed(any_overlay: Commands, world: World) -> None:
    """A link in the layer is shown as a link; what it leads to is neither read nor touched by scan and apply."""
    target = world.home / "outside"
    target.mkdir()
    (target / "file").write_text("same")
    target.chmod(0o711)
    run = await any_overlay.run(world.bash("ln -s ~/outside away; ln -s loop2 loop1; ln -s loop1 loop2"))
    found = by_name(run.changes)
    assert {change.node for change in found.values()} == {Node.LINK}
    assert found["away"].has(Trait.POINTS_OUTSIDE)
    assert why(found["away"]) == "a link out of project and workspace"
    assert run.apply().applied
    assert stat.S_IMODE(target.stat().st_mode) == 0o711
    assert os.readlink(world.project / "away") == str(target)


async def test_persistence_paths_ask_when_new(any_overlay: Commands, world: World) -> None:
    """New start-up files, hooks and configuration of editors and agents are asked about."""
    paths = [
        "~/.bashrc",
        "~/.config/autostart/x.desktop",
        "~/.config/systemd/user/x.service",
        "~/bin/git",
        ".git/hooks/pre-commit",
        ".vscode/tasks.json",
        ".claude/settings.json",
        ".husky/pre-commit",
        ".envrc",
    ]
    run = await any_overlay.run(world.bash("; ".join(f"mkdir -p $(dirname {p}); echo x > {p}" for p in paths)))
    files = [change for change in run.changes if change.node is Node.FILE]
    assert len(files) == len(paths)
    assert {change.path_class for change in files} == {PathClass.PERSISTENCE}
    assert all(why(change) for change in files)


async def test_a_directory_swapped_for_a_link_is_a_conflict(
    sandbox: Commands, world: World, tmp_path: Path
) -> None:
    """A directory replaced by a link after the run is not followed: the act is refused."""
    (world.project / "d").mkdir()
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    run = await sandbox.run(world.bash("echo x > d/new; echo y > top"))
    (world.project / "d").rmdir()
    (world.project / "d").symlink_to(elsewhere)
    with pytest.raises(Exception, match="could not be applied"):
        run.apply()
    assert list(elsewhere.iterdir()) == []
    assert not (world.project / "top").exists()
