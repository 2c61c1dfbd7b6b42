"""No attack on what a path means takes effect without approval, as root and as a plain user."""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest
from git_projects import run
from laid_out import World, workspace_of
from path_attacks import ATTACKS, PREPARED
from task_world import overlay

from artoo.contracts.errors import ArtooError, SandboxError
from artoo.workspace.changes.change_set import ChangeSet
from artoo.workspace.settlement.service import opened

_CACHES = "__pycache__"
_REBASE = "rebase-merge"
_PLAIN_USER = 65534


def prepared(world: World) -> World:
    """A person's home with a project in which all kinds of things stand."""
    (world.home / ".bashrc").write_text("# mine\n")
    (world.home / "backup.sh").write_text("#!/bin/sh\n")
    (world.home / "backup.sh").chmod(0o755)
    (world.home / ".gitconfig").write_text(
        "[core]\n\tpager = tools/pager\n[init]\n\ttemplateDir = ~/project/tools/global\n"
    )
    run(world.project, PREPARED)
    return world


def caches(world: World) -> dict[str, bytes]:
    """What Python would run in place of sources."""
    return {str(path): path.read_bytes() for path in world.project.rglob(f"{_CACHES}/*.pyc")}


def links(world: World) -> set[Path]:
    """The symbolic links of the project."""
    return {path for path in world.project.rglob("*") if path.is_symlink()}


def operations(world: World) -> set[Path]:
    """Return the marks of rebases that are under way: `git rebase --continue` runs what they list."""
    return set(world.project.rglob(_REBASE))


def gets_through(world: World, script: str, task_id: str = "task-1") -> str:
    """Return what took effect without approval; empty if nothing did.

    A cache that is left out takes no effect, nor does a link or a rebase in a repository that git made again
    without it.
    """
    before, linked, begun = caches(world), links(world), operations(world)
    told = script.replace("@HOME@", str(world.home))
    directory = workspace_of(world, lambda home: run(home / "project", told), task_id)
    with opened(directory, world.artoo_home, backend=overlay()) as settlement:
        assert settlement is not None
        found = settlement.review()
        if found.silent and not found.empty:
            try:
                settlement.apply(found)
            except SandboxError:  # git refuses it, and nothing is applied
                found = ChangeSet()
        settlement.forget()
    if found.empty or not found.silent:
        return ""
    harmless = (
        (_CACHES in script and caches(world) == before)
        or ("ln -s" in script and links(world) == linked)
        or (_REBASE in script and operations(world) == begun)
    )
    return "" if harmless else f"took effect: {[one.path for one in found.all_classes]}"


@pytest.fixture(scope="module")
def template(tmp_path_factory: pytest.TempPathFactory) -> World:
    """Prepared once."""
    home = tmp_path_factory.mktemp("attacked").resolve() / "home"
    (home / "project").mkdir(parents=True)
    return prepared(World(home))


@pytest.fixture
def attacked(template: World, tmp_path: Path) -> World:
    """A copy for one attack, with the times that it had."""
    home = tmp_path.resolve() / "home"
    shutil.copytree(template.home, home, symlinks=True)
    return World(home)


_ALWAYS = frozenset({*list(ATTACKS)[::3], "program: settings that are a pipe"})
"""The others run with `make torture`."""


@pytest.mark.parametrize(
    "name", [pytest.param(one, marks=() if one in _ALWAYS else pytest.mark.torture) for one in ATTACKS]
)
def test_no_attack_takes_effect_unasked(attacked: World, name: str) -> None:
    """It needs consent, or leaves nothing."""
    assert gets_through(attacked, ATTACKS[name]) == ""


@pytest.fixture
def open_place() -> Iterator[Path]:
    """A directory that another user may work in."""
    place = Path(tempfile.mkdtemp(prefix="artoo-attacks-")).resolve()
    yield place
    shutil.rmtree(place)


@pytest.mark.torture
@pytest.mark.skipif(os.geteuid() != 0, reason="only root can become somebody else")
def test_no_attack_takes_effect_unasked_for_a_plain_user(open_place: Path) -> None:
    """All of them again, by a process without root's rights."""
    os.chown(open_place, _PLAIN_USER, _PLAIN_USER)
    report = open_place / "report"
    child = os.fork()
    if child == 0:
        code = 1
        try:
            os.setgroups([])
            os.setresgid(_PLAIN_USER, _PLAIN_USER, _PLAIN_USER)
            os.setresuid(_PLAIN_USER, _PLAIN_USER, _PLAIN_USER)
            report.write_text("\n".join(_all_through(open_place)))
            code = 0
        finally:
            os._exit(code)
    _, status = os.waitpid(child, 0)
    assert os.waitstatus_to_exitcode(status) == 0
    assert report.read_text() == ""


def _all_through(place: Path) -> Iterator[str]:
    template = World(place / "template")
    template.project.mkdir(parents=True)
    prepared(template)
    for number, (name, script) in enumerate(ATTACKS.items()):
        home = place / str(number) / "home"
        shutil.copytree(template.home, home, symlinks=True)
        try:
            through = gets_through(World(home), script)
        except (OSError, AssertionError, ArtooError) as error:
            through = f"broke: {error!r}"
        if through:
            yield f"{name}: {through}"
        shutil.rmtree(home.parent, ignore_errors=True)
