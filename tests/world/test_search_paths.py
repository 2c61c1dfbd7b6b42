"""What is found by its name alone, as a program or as a module of artoo's, is never new in silence."""

from __future__ import annotations

import os
import sys
from dataclasses import replace
from pathlib import Path

import pytest
from sandbox_world import World

from artoo.contracts.changes import PathClass
from artoo.world.classify import Places
from artoo.world.search_paths import SearchPaths


def class_of(world: World, path: Path) -> PathClass:
    return Places.of(world.roots, world.artoo_home).classify(os.fsencode(path))


def test_a_directory_of_path_in_the_project(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    """What lies in it is a program of the person's; what lies below or beside it is as ever."""
    programs = world.project / ".venv" / "bin"
    programs.mkdir(parents=True)
    assert class_of(world, programs / "git") is PathClass.PROJECT
    monkeypatch.setenv("PATH", f"{programs}/:{os.environ['PATH']}")
    assert class_of(world, programs / "git") is PathClass.PERSISTENCE
    for ordinary in (programs / "deep" / "git", programs.parent / "notes", programs, world.project / "git"):
        assert class_of(world, ordinary) is PathClass.PROJECT


@pytest.mark.parametrize("entry", ["", ".", "tools/..", "{project}"])
def test_the_project_itself_on_path(world: World, monkeypatch: pytest.MonkeyPatch, entry: str) -> None:
    """By whatever entry: what lies at its top is found by name, and nothing below."""
    monkeypatch.setenv("PATH", f"{os.environ['PATH']}:{entry.format(project=world.project)}")
    assert class_of(world, world.project / "ls") is PathClass.PERSISTENCE
    assert class_of(world, world.project / "src" / "ls") is PathClass.PROJECT


def test_a_directory_of_path_that_is_not_there_yet(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    """Neither it nor the way to it comes to be in silence: as a link it would lead elsewhere."""
    modules = world.project / "node_modules"
    monkeypatch.setenv("PATH", f"{modules}/.bin:{os.environ['PATH']}")
    for new in (modules, modules / ".bin", modules / ".bin" / "tsc"):
        assert class_of(world, new) is PathClass.PERSISTENCE
    assert class_of(world, modules / "left-pad" / "index.js") is PathClass.PROJECT
    modules.mkdir()
    assert class_of(world, modules) is PathClass.PROJECT


def test_where_a_link_on_path_leads(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    """The directory that it names, and what stands for it, whether or not it is there."""
    (world.project / "current").symlink_to("versions/1")
    monkeypatch.setenv("PATH", f"{world.project}/current:{os.environ['PATH']}")
    for new in ("current", "versions", "versions/1", "versions/1/git"):
        expected = PathClass.PROJECT if new == "current" else PathClass.PERSISTENCE
        assert class_of(world, world.project / new) is expected, new


def test_programs_elsewhere_in_the_home(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    """Wherever the person keeps them, not only where most do."""
    monkeypatch.setenv("PATH", f"{world.home}/go/bin:{os.environ['PATH']}")
    assert class_of(world, world.home / "go" / "bin" / "gopls") is PathClass.PERSISTENCE


def test_packages_above_artoos_home(world: World) -> None:
    """npx finds their programs from where the person's own MCP servers start."""
    packages = world.artoo_home.parent / "node_modules"
    at_home = replace(world.roots, project=world.home)
    places = Places.of(at_home, world.artoo_home)
    assert places.classify(os.fsencode(packages / ".bin" / "any")) is PathClass.PERSISTENCE
    assert places.classify(os.fsencode(packages / "left-pad" / "index.js")) is PathClass.PROJECT


def test_artoos_own_modules_in_the_project(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its environment and what its Python looks through, all below; the project as a whole is never meant."""
    environment = world.project / ".venv"
    modules = environment / "lib" / "python3" / "site-packages"
    modules.mkdir(parents=True)
    monkeypatch.setattr(sys, "prefix", str(environment))
    monkeypatch.setattr(sys, "path", [str(world.project), str(modules), str(world.home), ""])
    for own in (environment / "bin" / "asyncio.py", modules / "artoo" / "x.py", environment / "pyvenv.cfg"):
        assert class_of(world, own) is PathClass.PERSISTENCE
    assert class_of(world, world.project / "random.py") is PathClass.PROJECT
    monkeypatch.setattr(sys, "prefix", sys.base_prefix)
    monkeypatch.setattr(sys, "path", [f"{world.project}/src"])
    assert class_of(world, world.project / "src" / "random.py") is PathClass.PERSISTENCE
    assert class_of(world, environment / "bin" / "asyncio.py") is PathClass.PROJECT


def test_a_script_of_the_persons_own_is_not_artoo(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    """Who uses artoo as a library, from a script in the project, has its files edited as any other."""
    script = world.project / "app" / "main.py"
    monkeypatch.setattr(sys.modules["__main__"], "__file__", str(script), raising=False)
    monkeypatch.setattr(sys, "path", [str(script.parent), "/nowhere"])
    assert str(script.parent) not in SearchPaths.of(str(world.project), str(world.artoo_home)).modules
    assert class_of(world, world.project / "app" / "new.py") is PathClass.PROJECT
