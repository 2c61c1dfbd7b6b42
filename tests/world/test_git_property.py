"""Random histories, random git commands: whatever was reachable is afterwards, was consented to, or comes back."""

from __future__ import annotations

import random
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest
from git_scenes import run
from layers import view_of
from sandbox_world import World

from artoo.contracts.settling import ChangeClass
from artoo.world.difference import difference_of
from artoo.world.settle import apply_difference
from artoo.world.undo import undo

_NAMES = ("main", "one", "two", "three")
_PRESENT = "git for-each-ref; git rev-parse -q --verify HEAD; git reflog --all; git stash list"


def history(dice: random.Random) -> str:
    """A small repository with commits, branches, merges, tags, stashes and reflogs."""
    lines = ["git init -q -b main .", "echo 0 > f; git add f; git commit -qm 0"]
    for number in range(1, dice.randint(4, 7)):
        name = dice.choice(_NAMES)
        lines.append(f"echo {number} > f{number}; git add .; git commit -qm {number}")
        lines.append(
            dice.choice(
                [
                    f"git checkout -q -B {name}",
                    f"git checkout -q {name}",
                    f"git merge -q --no-edit {name}",
                    f"git tag t{number}",
                    f"git tag -a -m t a{number}",
                    f"echo s{number} > f; git stash -q",
                    "git commit -q --amend --allow-empty -m amended",
                    "git pack-refs --all",
                    "git gc -q",
                ]
            )
        )
    return _tolerant(lines)


def commands(dice: random.Random) -> str:
    """What a task might do to it."""
    name, other = dice.choice(_NAMES), dice.choice(_NAMES)
    back = dice.randint(1, 3)
    lines = [
        dice.choice(
            [
                "echo x > x; git add x; git commit -qm x",
                "git commit -q --allow-empty -m empty",
                "git commit -q --amend --allow-empty -m other",
                f"git reset -q --hard HEAD~{back}",
                f"git reset -q --soft HEAD~{back}",
                f"git rebase -q {name}",
                f"git checkout -q {name}",
                f"git checkout -q --detach HEAD~{back}",
                f"git checkout -q -b fresh{dice.randint(0, 2)}",
                f"git branch -q -D {name}",
                f"git branch -q -d {name}",
                f"git branch -q -f {name} {other}",
                f"git branch -q -m {name} {other}x",
                f"git merge -q --no-edit {name}",
                f"git tag -f t{back} {name}",
                f"git tag -d t{back}",
                f"git tag -d a{back}",
                "git stash -q -u",
                "git stash drop -q",
                "git stash pop -q",
                "git stash clear",
                "git reflog expire --expire=now --all",
                "git reflog delete HEAD@{1}",
                "git gc -q --prune=now",
                "git repack -q -a -d",
                "git prune --expire=now",
                "git pack-refs --all",
                f"git update-ref refs/heads/{name} HEAD~{back}",
                "git notes add -m n",
                f"git cherry-pick {name}",
                f"git revert --no-edit HEAD~{back}",
            ]
        )
        for _ in range(dice.randint(1, 4))
    ]
    return _tolerant(lines)


def _tolerant(lines: list[str]) -> str:
    """Commands that may fail, as they do in life."""
    undo_half = "git merge --abort; git rebase --abort; git cherry-pick --abort; git revert --abort"
    return "\n".join(f"({line}) >/dev/null 2>&1 || ({undo_half}) >/dev/null 2>&1 || true" for line in lines)


def reachable(project: Path, *how: str) -> set[str]:
    """Commits and tag objects, by git itself in the real repository."""
    commits = run(project, f"git rev-list {' '.join(how)}").split()
    tags = run(project, "git for-each-ref --format='%(objectname) %(objecttype)'").splitlines()
    return {*commits, *(line.split()[0] for line in tags if line.endswith(" tag"))}


def objects(project: Path) -> set[str]:
    return set(run(project, "git cat-file --batch-all-objects --batch-check='%(objectname)'").split())


_TASKS_OF_ONE = 4
"""Tasks that begin from one history: making it costs more than all the rest."""


def checks(world: World, first: int, count: int) -> Iterator[bool]:
    """`count` tasks, four to a history; whether each needed consent."""
    past = world.home.with_name("past")
    for seed in range(first, first + count):
        if (seed - first) % _TASKS_OF_ONE == 0:
            shutil.rmtree(past, ignore_errors=True)
            past.mkdir()
            run(past, history(random.Random(seed)))
        yield check(world, past, random.Random(seed + 500_000))


def check(world: World, past: Path, dice: random.Random) -> bool:
    """One task on a copy of `past`; whether it needed consent."""
    shutil.rmtree(world.home, ignore_errors=True)
    shutil.copytree(past, world.project, symlinks=True)
    script = commands(dice)
    named, logged = reachable(world.project, "--all"), reachable(world.project, "--all", "--reflog")
    kept, told = objects(world.project), run(world.project, _PRESENT)
    place = view_of(world, lambda home: run(home / "project", script))
    found = difference_of(place, world.artoo_home)
    needs_consent = any(one.change_class is ChangeClass.HISTORY for one in found.classes)
    apply_difference(place, world.artoo_home, found, digest=found.digest)
    # Without what is derived: after a prune, git by itself leaves a commit graph that names what is gone.
    run(world.project, "git -c core.commitGraph=false fsck")
    if not needs_consent:
        assert named <= reachable(world.project, "--all"), script
        assert logged <= reachable(world.project, "--all", "--reflog"), script
        assert kept <= objects(world.project), script
    if not found.empty:
        assert undo(world.artoo_home, "task-1").refused == (), script
    assert run(world.project, _PRESENT) == told, script
    assert kept <= objects(world.project), script
    return needs_consent


@pytest.mark.parametrize("block", range(15))
def test_history_is_kept_consented_to_or_brought_back(world: World, block: int) -> None:
    """Twenty pairs of a history and a task each; both kinds come up."""
    needed = list(checks(world, block * 1_000, 20))
    assert any(needed) and not all(needed)


@pytest.mark.torture
@pytest.mark.parametrize("block", range(15, 70))
def test_many_more_histories(world: World, block: int) -> None:
    """A hundred pairs each."""
    assert len(list(checks(world, block * 1_000, 100))) == 100
