"""A project whose repository lies elsewhere: a subdirectory of it, or a linked worktree, outside the home."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Generator
from dataclasses import replace
from pathlib import Path

import pytest
from sandbox_world import Commands, World

from artoo.contracts.execution import CallStatus
from artoo.tools.commands import Command
from artoo.tools.in_view import CommandsInView
from artoo.world.choose import open_sandbox
from artoo.world.opening import views_in

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="the tiers of Linux")


def git(folder: Path, *arguments: str) -> None:
    subprocess.run(("git", "-c", "user.name=n", "-c", "user.email=e@e", "-C", str(folder), *arguments), check=True)


@pytest.fixture
def repository() -> Generator[Path]:
    """In a place that no private /tmp covers: with one commit and a directory `part`."""
    fit = [path for path in (Path(__file__).parent, Path("/opt"), Path("/srv")) if os.access(path, os.W_OK)]
    fit = [path for path in fit if not path.is_relative_to("/tmp") and not path.is_relative_to("/var/tmp")]
    if not fit:
        pytest.skip("these tests lie below a private /tmp, and no other place can be written")
    place = Path(tempfile.mkdtemp(prefix=".outside-", dir=fit[0]))
    try:
        (place / "main" / "part").mkdir(parents=True)
        (place / "main" / "part" / "a.txt").write_text("a\n")
        git(place / "main", "init", "-q")
        git(place / "main", "add", ".")
        git(place / "main", "commit", "-qm", "first")
        yield place / "main"
    finally:
        shutil.rmtree(place, ignore_errors=True)


async def test_the_repository_above_a_project_is_read(
    any_overlay: Commands, world: World, repository: Path
) -> None:
    """A view makes the project a file system of its own, and git would look no further."""
    project = repository / "part"
    roots = replace(world.roots, project=project)
    request = replace(world.bash("git log --format=%s; git status --short"), cwd=project, roots=roots)
    run = await any_overlay.run(request)
    assert (run.stdout.text, run.stderr.text) == ("first\n", "")


@pytest.mark.parametrize("linked", [False, True])
async def test_what_git_cannot_write_is_explained(world: World, repository: Path, linked: bool) -> None:
    """Also where the script went on: the directory that it wanted to write, and that it can be read."""
    project = repository / "part"
    if linked:
        project = repository.parent / "linked"
        git(repository, "worktree", "add", "-q", str(project))
    view = views_in(await open_sandbox(world.artoo_home), world.artoo_home)(
        "task", replace(world.roots, project=project)
    )
    commands = CommandsInView(view)
    for script in ("echo b > b.txt; git add b.txt", "echo b > b.txt; git add b.txt; true"):
        ended = await commands.run(Command(("bash", "-c", script), wall_seconds=30))
        assert "Read-only" in ended.error_output
        assert ended.reason is not None
        assert f"git keeps what is staged and committed here in {repository}/.git, so it can only" in ended.reason
    other = await commands.run(Command(("bash", "-c", "echo b > /usr/b.txt"), wall_seconds=30))
    assert other.status is CallStatus.ERROR
    assert "git keeps" not in (other.reason or "")
    await view.close()
