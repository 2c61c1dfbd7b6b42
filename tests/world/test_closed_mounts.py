"""What is closed is closed by every name: places that are mounted more than once."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Generator
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from pathlib import Path

import pytest
from sandbox_world import World
from test_closed_places import any_tier, lay, readable

from artoo.contracts.changes import PathClass
from artoo.world import aliases, closed
from artoo.world.aliases import Alias, Aliases, aliases_in
from artoo.world.classify import Places
from artoo.world.closed import Closed, closed_paths
from artoo.world.mounts import MountTable


@contextmanager
def bound(source: Path, place: Path) -> Generator[Path]:
    """What is at `source` is at `place`, too."""
    place.mkdir(parents=True, exist_ok=True)
    done = subprocess.run(["mount", "--bind", source, place], capture_output=True, text=True, check=False)
    if done.returncode:
        pytest.skip(f"nothing can be mounted here: {done.stderr.strip()}")
    try:
        yield place
    finally:
        subprocess.run(["umount", "-l", place], check=True)


def is_closed(world: World, path: Path) -> bool:
    """By the rule for tools, and by the one for commands, which must agree."""
    covered = any(path.is_relative_to(one) for one in closed_paths(world.roots, world.artoo_home))
    tools = Places.of(world.roots, world.artoo_home).is_closed(os.fsencode(path))
    assert covered is tools, path
    return covered


@pytest.mark.parametrize("tier", ["bubblewrap", "namespaces", "landlock"])
def test_the_hidden_part_is_closed_by_every_name(tier: str, world: World, tmp_path: Path) -> None:
    """Another mount of the home, outside, in the project or in the home, of all of it or a part, opens nothing."""
    sandbox = any_tier(tier, world)
    lay(world.home, [".aws/credentials", ".netrc", ".artoo/log", "docs/a", ".cloud/deep/key"])
    places = [tmp_path / "out", world.project / "in", world.home / "mnt" / "home"]
    with ExitStack() as mounted:
        for place in places:
            mounted.enter_context(bound(world.home, place))
        mounted.enter_context(bound(world.home / ".aws", tmp_path / "part"))
        mounted.enter_context(bound(world.home / ".cloud" / "deep", world.home / "deep"))
        hidden = [".aws/credentials", ".netrc", ".artoo/log", ".cloud/deep/key"]
        secret = [str(place / name) for place in (world.home, *places) for name in hidden]
        secret += [str(tmp_path / "part/credentials"), str(world.home / "deep/key")]
        plain = [str(place / "docs/a") for place in places]
        assert all(Path(one).read_text(encoding="utf-8").startswith("CANARY") for one in (*secret, *plain))
        seen = readable(sandbox, world, [*secret, *plain])
        assert seen <= set(plain) and str(world.home / "mnt/home/docs/a") in seen
        assert all(is_closed(world, Path(one)) for one in secret)
        assert not any(is_closed(world, Path(one)) for one in plain)
        classes = Places.of(world.roots, world.artoo_home)
        assert classes.classify(os.fsencode(places[0] / ".artoo/log")) is PathClass.ARTOO
        assert classes.classify(os.fsencode(places[1] / ".aws/new")) is PathClass.SECRET
        assert classes.classify(os.fsencode(places[1] / ".bashrc")) is PathClass.PERSISTENCE


def test_what_is_open_is_open_by_every_name(world: World, tmp_path: Path) -> None:
    """A project that lies in the hidden part may be worked in where it is mounted; nothing else of it is open."""
    lay(world.home, [".local/share/p/.env", ".local/share/p/deep/m.py", ".local/share/other/x"])
    with bound(world.home / ".local" / "share", tmp_path / "share") as share:
        roots = replace(world.roots, project=share / "p")
        paths = closed_paths(roots, world.artoo_home)
        tools = Places.of(roots, world.artoo_home)
        for name, open_there in {"p/.env": True, "p/deep/m.py": True, "other/x": False}.items():
            assert any((share / name).is_relative_to(one) for one in paths) is not open_there
            assert tools.is_closed(os.fsencode(share / name)) is not open_there


def test_what_is_mounted_into_the_hidden_part_closes_no_more_than_a_link(world: World, tmp_path: Path) -> None:
    """Another system's root below `~/.jail` closes neither the home nor the programs; documents it does close."""
    lay(world.home, ["docs/a", ".netrc"])
    (world.home / ".jail").mkdir()
    (tmp_path / "data").mkdir(mode=0o700)
    with (
        bound(Path("/usr"), world.home / ".jail" / "usr"),
        bound(world.home, world.home / ".jail" / "home"),
        bound(tmp_path / "data", world.home / ".jail" / "data"),
    ):
        assert not is_closed(world, world.home / "docs" / "a")
        assert not is_closed(world, Path("/usr/bin/env"))
        assert is_closed(world, world.home / ".netrc")
        assert is_closed(world, tmp_path / "data")


def test_a_home_that_lies_in_anothers_hidden_part_is_open(
    world: World, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Where the homes' disk is mounted from a hidden place of somebody else, a person still has their own."""
    other = tmp_path / "other"
    lay(other, [".disk/homes/docs/a", ".disk/homes/.netrc", ".disk/secret"])

    def other_homes(own: str) -> tuple[str, ...]:
        return (str(other),)

    monkeypatch.setattr(closed, "_other_homes", other_homes)
    with bound(other / ".disk" / "homes", world.home):
        assert not is_closed(world, world.home / "docs" / "a")
        for secret in (world.home / ".netrc", other / ".disk" / "homes" / ".netrc", other / ".disk" / "secret"):
            assert is_closed(world, secret)


@pytest.mark.skipif(os.geteuid() != 0, reason="only root is kept from what others may not read")
def test_roots_files_are_closed_by_every_name(world: World, tmp_path: Path) -> None:
    """What other users may not read is not read by way of a mount either, not even in the project."""
    lay(world.home, ["docs/a"])
    (world.home / "docs" / "a").chmod(0o600)
    for place in (tmp_path / "etc", world.project / "etc"):
        with bound(Path("/etc"), place):
            assert is_closed(world, place / "shadow")
            assert not is_closed(world, place / "passwd")
    with bound(Path("/"), tmp_path / "all") as whole:
        assert not is_closed(world, world.home / "docs" / "a")
        assert is_closed(world, Path(f"{whole}/etc/shadow"))


_TABLE = b"""\
1 0 8:1 / / rw - ext4 /dev/a rw
2 1 8:2 /@home /home rw - btrfs /dev/b rw
3 1 8:2 / /mnt/pool rw - btrfs /dev/b rw
4 1 8:2 /@home/u/.aws /mnt/my\\040keys rw - btrfs /dev/b rw
5 1 8:3 / /mnt/other rw - ext4 /dev/c rw
6 1 0:4 net:[4026531840] /run/netns/x rw - nsfs nsfs rw
7 1 8:2 / /mnt/other rw - btrfs /dev/b rw
"""


def test_aliases_are_read_from_the_table(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Volumes and parts of them are found in both directions; of two mounts at one place the last is seen."""

    def is_one(alias: Alias) -> bool:
        return True

    monkeypatch.setattr(aliases, "_is_one", is_one)
    (tmp_path / "mountinfo").write_bytes(_TABLE)
    found = aliases_in(MountTable.read(tmp_path / "mountinfo"))
    aliases_in.cache_clear()
    names = {name for name, _ in Aliases.of(found).names("/mnt/my keys/credentials")}
    assert names == {
        "/home/u/.aws/credentials",
        "/mnt/pool/@home/u/.aws/credentials",
        "/mnt/other/@home/u/.aws/credentials",
    }
    assert not list(Aliases.of(found).names("/etc/passwd"))


def test_without_mounts_nothing_has_another_name(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    """The usual machine pays nothing."""
    monkeypatch.setattr(MountTable, "read", lambda: MountTable(()))
    found = Closed.of(world.roots)
    assert found.names("/home/u/x") == ("/home/u/x",) and not found.aliases.by_there
