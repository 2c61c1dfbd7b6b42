"""Programs of PATH, an active environment and targets of the project's links are visible, or named as hidden."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest
from living import World, mounted_disk

import artoo


def _program(place: Path, says: str) -> Path:
    place.parent.mkdir(parents=True, exist_ok=True)
    place.write_text(f"#!/bin/sh\necho {says} $(cat $(dirname $0)/../lib/data)\n", encoding="utf-8")
    place.chmod(0o755)
    (place.parent.parent / "lib").mkdir(exist_ok=True)
    (place.parent.parent / "lib" / "data").write_text("with its library", encoding="utf-8")
    return place


async def test_programs_below_a_private_directory_are_found(
    world: World, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A directory of PATH below /tmp, the rest of its installation, and an active environment are visible."""
    installed = _program(tmp_path / "installed" / "bin" / "wanted-tool", "found")
    environment = tmp_path / "environment"
    _program(environment / "bin" / "in-environment", "active")
    (environment / "bin" / "python").symlink_to(os.path.realpath(sys.executable))
    (tmp_path / "linked").symlink_to(_program(tmp_path / "other" / "bin" / "linked-tool", "linked").parent)
    monkeypatch.setenv("PATH", f"{installed.parent}:{tmp_path}/linked:{environment}/bin:{os.environ['PATH']}")
    monkeypatch.setenv("VIRTUAL_ENV", str(environment))
    async with world.sandbox() as commands:
        assert await commands.says("wanted-tool") == "found with its library\n"
        assert "linked" in await commands.says("linked-tool")
        assert await commands.says("in-environment") == "active with its library\n"
        assert await commands.says("python -c 'print(6 * 7)'") == "42\n"
        assert (await commands.bash(f"echo x > {installed}")).exit_code != 0
        assert not [path for path in commands.sandbox.hidden if path.startswith(str(tmp_path))]


async def test_what_links_of_the_project_lead_to_is_visible_or_named(world: World, tmp_path: Path) -> None:
    """Data below /tmp is mounted back read-only; hidden places stay closed, and are named."""
    data = tmp_path / "data"
    data.mkdir()
    (data / "set.csv").write_text("1,2\n", encoding="utf-8")
    (world.home / ".ssh").mkdir()
    (world.home / ".ssh" / "key").write_text("secret", encoding="utf-8")
    (tmp_path / ".agent").mkdir()
    (tmp_path / ".agent" / "token").write_text("secret", encoding="utf-8")
    (world.project / "deep").mkdir()
    (world.project / "deep" / "data").symlink_to(data)
    (world.project / "key").symlink_to(world.home / ".ssh" / "key")
    (world.project / "token").symlink_to(tmp_path / ".agent" / "token")
    (world.project / "all").symlink_to("/tmp")
    (world.project / "gone").symlink_to("/nowhere")
    async with world.sandbox() as commands:
        assert await commands.says("cat deep/data/set.csv") == "1,2\n"
        assert (await commands.bash("echo 3 >> deep/data/set.csv")).exit_code != 0
        # the way to the data, and to programs and artoo itself where they lie below /tmp
        search = (place for place in os.environ["PATH"].split(os.pathsep) if place.startswith("/"))
        needed = (tmp_path, sys.prefix, artoo.__file__, *search)
        ways = {Path(place).parts[2] for place in needed if Path(place).parts[1] == "tmp"}
        assert (await commands.says("cat key token 2>&-; ls all")).splitlines() == sorted(ways)
        hidden = commands.sandbox.hidden
        assert str(world.home / ".ssh" / "key") in hidden
        assert str(tmp_path / ".agent" / "token") in hidden
        assert str(data) not in hidden
    assert (data / "set.csv").read_text(encoding="utf-8") == "1,2\n"


async def test_a_sandbox_has_its_own_temporary_directory(world: World) -> None:
    """It is the task's, also as /var/tmp, stays from one sandbox to the next, and can be written; /run is empty."""
    async with world.sandbox() as commands:
        await commands.says('echo kept > /tmp/file; test -z "$(ls /run)"; ! touch /run/x 2>&-')
    async with world.sandbox() as commands:
        assert await commands.says("cat /var/tmp/file") == "kept\n"
    assert (world.task / "tmp" / "file").read_text(encoding="utf-8") == "kept\n"


async def test_a_link_in_tmp_leads_no_mount_outside(
    world: World, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A task that replaces the way to a mount point gets it moved aside; nothing is made where its link leads."""
    installed = _program(tmp_path / "installed" / "bin" / "wanted-tool", "found")
    monkeypatch.setenv("PATH", f"{installed.parent}:{os.environ['PATH']}")
    scratch = world.task / "tmp"
    scratch.mkdir(parents=True)
    trap = tmp_path / "trap"
    trap.mkdir()
    (scratch / str(tmp_path)[5:].partition("/")[0]).symlink_to(f"/oldroot{trap}")
    async with world.sandbox() as commands:
        assert await commands.says("wanted-tool; pwd") == f"found with its library\n{world.project}\n"
    assert list(trap.iterdir()) == []


async def test_a_link_in_the_workspace_leads_no_mount_outside(world: World, tmp_path: Path) -> None:
    """The same for what is mounted inside an overlay: the mount is left out."""
    disk = world.home / "mnt" / "disk"
    disk.mkdir(parents=True)
    trap = tmp_path / "trap"
    trap.mkdir()
    world.layout()
    (world.upper / "mnt").symlink_to(f"/oldroot{trap}")
    with mounted_disk(disk):
        async with world.sandbox() as commands:
            await commands.says("true")
    assert list(trap.iterdir()) == []
