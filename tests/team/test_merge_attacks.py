"""No attack on what a path means takes effect by a team's merge: a reviewing agent's approval does not cover it.

A member has done the attack in its attempt and was killed after it had handed it in: the team takes it over,
has it reviewed by an agent that approves everything, and no one is there to be asked.
"""

from __future__ import annotations

import asyncio
import os
import shutil
import stat
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest
from team_world import crew, settled

sys.path.insert(0, str(Path(__file__).parents[1] / "workspace"))

from git_projects import run
from laid_out import World, workspace_of
from path_attacks import ATTACKS, caches, links, prepared
from task_world import overlay

from artoo import Config
from artoo.agents.identity.folders import create_agent
from artoo.contracts.agents import OPERATOR, BoardState, BoardTask, SubmittedWork, TaskChanged, TrustLevel
from artoo.runtime.changes.find_pending import ATTEMPT
from artoo.team.office import open_office
from artoo.testing import Asked
from artoo.testing.replies import Scripted
from artoo.workspace.settlement.service import Settlement

PAIR = {"ada": TrustLevel.PROBATION, "cyd": TrustLevel.SENIOR}
_ENDED = (BoardState.COMPLETED, BoardState.FAILED, BoardState.REJECTED)

Left = dict[str, tuple[int, bytes]]


@pytest.fixture(scope="module")
def template(tmp_path_factory: pytest.TempPathFactory) -> World:
    """Prepared once."""
    home = tmp_path_factory.mktemp("merged").resolve() / "home"
    (home / "project").mkdir(parents=True)
    World(home).roots.workspace.mkdir()
    return prepared(World(home))


@pytest.fixture
def attacked(template: World, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> World:
    """A copy for one attack, with the times that it had; it is the user's home."""
    home = tmp_path.resolve() / "home"
    shutil.copytree(template.home, home, symlinks=True)
    monkeypatch.setenv("HOME", str(home))
    return World(home)


def approving(asked: Asked) -> Scripted:
    """A reviewer that finds nothing wrong, and nobody does anything else."""
    assert asked.contract == "ReviewReport"
    return {"verdict": "approve", "reasons": ["fine"]}


@dataclass(frozen=True, slots=True)
class Ruled:
    """How a task ended. `silent`: one of the person's own would not have asked. The rest stands in its log."""

    state: BoardState
    silent: bool
    moves: list[str]
    details: list[str]


@pytest.mark.parametrize("name", ATTACKS)
async def test_no_attack_takes_effect_by_an_approval(attacked: World, name: str) -> None:
    """It is left to the operator exactly where a task of the person's own would ask; else it left nothing."""
    before, cached, linked = left_in(attacked), caches(attacked), links(attacked)
    ruled = await merged(attacked, ATTACKS[name])
    assert "in_progress > review by ada" in ruled.moves
    if ruled.silent:
        assert ruled.state is BoardState.COMPLETED
    elif ruled.state is BoardState.REVIEW:
        assert "cyd would approve, but only the operator may agree" in ruled.details[0]
    else:  # what git cannot bring over is a conflict: it goes back to who made it
        assert ruled.moves[-1] == "rejected > pending by runtime"
    if ruled.silent and "__pycache__" in ATTACKS[name]:
        assert caches(attacked) == cached
    elif ruled.silent and "ln -s" in ATTACKS[name]:
        assert links(attacked) == linked
    else:
        assert left_in(attacked) == before


async def test_what_is_no_attack_takes_effect(attacked: World) -> None:
    """The same way merges what nobody needs to be asked about."""
    ruled = await merged(attacked, "echo new > new.txt")
    assert ruled.silent and "review > completed by cyd" in ruled.moves
    assert (attacked.project / "new.txt").read_text() == "new\n"


async def merged(world: World, script: str) -> Ruled:
    """Lets the team have what a script did, until it is done with it."""
    config = Config.model_validate({"workspace": world.roots.workspace, "memory": {"enabled": False}}).at_home(
        world.artoo_home
    )
    task, silent = await handed_in(config, world, script)
    async with crew(world.home, approving, trust=PAIR, config=config) as team:

        async def look() -> BoardTask | None:
            now = await team.office.board.get(task.id)
            sent_back = now.submission > 0 and now.state is BoardState.PENDING
            return now if now.reviewer == OPERATOR or now.state in _ENDED or sent_back else None

        ended = await settled(team, look)
        assert ended is not None
        log = await team.office.board.log(task.id)
        details = [one.detail for one in log if isinstance(one, TaskChanged)]
        return Ruled(ended.state, silent, await team.moves(task), details)


async def handed_in(config: Config, world: World, script: str) -> tuple[BoardTask, bool]:
    """A task whose attack waits to be handed in by `ada`, and whether a task of the person's own would not ask."""
    async with open_office(config) as office:
        for name, level in PAIR.items():
            identity = create_agent(office.home, name, role="clerk", persona=f"{name} is exact.", must_not=())
            await office.registry.register(name, OPERATOR, sha256=identity.sha256, trust=level)
        task = await office.board.add("attack", OPERATOR, assignee="ada", project=str(world.project))
        told = script.replace("@HOME@", str(world.home))
        attempt = workspace_of(world, lambda home: run(home / "project", told), task.id + ATTEMPT)
        reviewed = await asyncio.to_thread(Settlement(attempt, world.artoo_home, backend=overlay()).review)
        work = SubmittedWork(
            board_task=task.id,
            submission=1,
            agent="ada",
            run="run-1",
            request="attack",
            summary="done",
            ending="accept",
        )
        office.submissions.of(task.id, 1).keep(work)
    return task, reviewed.silent


def left_in(world: World) -> Left:
    """Everything in the home but what is artoo's: its mode, and what it holds or points at."""
    return {str(path): (path.lstat().st_mode, _content(path)) for path in _walk(world.home)}


def _walk(directory: Path) -> Iterator[Path]:
    for child in directory.iterdir():
        if child.name == ".artoo":
            continue
        yield child
        if child.is_dir() and not child.is_symlink():
            yield from _walk(child)


def _content(path: Path) -> bytes:
    if path.is_symlink():
        return os.fsencode(path.readlink())
    return path.read_bytes() if stat.S_ISREG(path.lstat().st_mode) else b""
