"""Random histories and commands of git: what the user could lose is asked about, and undo brings all back."""

from __future__ import annotations

import random
import shutil
from pathlib import Path

import pytest
from git_projects import Task, run
from laid_out import World

from artoo.contracts.settling import ChangeClass

_NAMES = ("main", "one", "two", "three")
_HEADS = "git for-each-ref --format='%(refname) %(objectname)' | grep -v -e refs/artoo -e refs/stash || true"
_PRESENT = (
    f"{_HEADS}; git symbolic-ref -q HEAD || git rev-parse HEAD; git stash list --format='%H %gs'; git ls-files -s"
)


def history(dice: random.Random) -> str:
    """A small repository with commits, branches, merges, tags, stashes, staged and uncommitted work."""
    lines = ["git init -q -b main .", "echo 0 > f; git add f; git commit -qm 0"]
    for number in range(1, dice.randint(2, 5)):
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
                    f"echo staged{number} > f; git add f; echo later{number} > f",
                    f"echo new{number} > staged; git add staged",
                ]
            )
        )
    if dice.random() < 0.4:
        lines.append("echo precious > f; git add f; echo last > f")
    return _tolerant(lines)


def commands(dice: random.Random) -> str:
    """What a task might do to it."""
    lines: list[str] = []
    for _ in range(dice.randint(1, 4)):
        name, other, back = dice.choice(_NAMES), dice.choice(_NAMES), dice.randint(1, 3)
        lines.append(
            dice.choice(
                [
                    "echo x > x; git add x; git commit -qm x",
                    "git commit -q --allow-empty -m empty",
                    "git commit -q --amend --allow-empty -m other",
                    f"git reset -q --hard HEAD~{back}",
                    f"git reset -q --soft HEAD~{back}",
                    "git reset -q",
                    f"git rebase -q {name}",
                    f"git checkout -q {name}",
                    f"git checkout -q -f {name}",
                    f"git checkout -q --detach HEAD~{back}",
                    f"git checkout -q -b fresh{dice.randint(0, 2)}",
                    f"git branch -q -D {name}",
                    f"git branch -q -f {name} {other}",
                    f"git branch -q -m {name} {other}/x",
                    f"git merge -q --no-edit {name}",
                    f"git tag -f t{back} {name}",
                    f"git tag -d t{back} a{back}",
                    "git stash -q -u",
                    "git stash drop -q",
                    "git stash pop -q",
                    "git stash clear",
                    "git reflog expire --expire=now --all",
                    "git gc -q --prune=now",
                    "git prune --expire=now",
                    "git pack-refs --all",
                    f"git update-ref refs/heads/{name} HEAD~{back}",
                    "git notes add -m n",
                    f"git cherry-pick {name}",
                    f"git revert --no-edit HEAD~{back}",
                    "echo y > f; git add f",
                    "git add -A",
                    "git rm -q --cached f",
                    "git commit -qam all",
                    "git checkout -q -- f",
                    "git clean -qfd",
                    "rm -rf .git/index; git read-tree HEAD",
                ]
            )
        )
    return _tolerant(lines)


def _tolerant(lines: list[str]) -> str:
    """Let commands fail, as they do in life."""
    abort = "git merge --abort; git rebase --abort; git cherry-pick --abort; git revert --abort"
    return "\n".join(f"({line}) >/dev/null 2>&1 || ({abort}) >/dev/null 2>&1 || true" for line in lines)


def commits(project: Path, *how: str) -> set[str]:
    """What is reachable by the user's refs, HEAD and stash (with --reflog: and reflogs), and tag objects."""
    stash = " ".join(run(project, "git stash list --format=%H").split())
    asked = f"--exclude='refs/artoo/*' --all HEAD {stash} {' '.join(how)}"
    found = run(project, f"git rev-list {asked} 2>/dev/null || true").split()
    tags = run(project, "git for-each-ref --format='%(objectname) %(objecttype)' refs/tags").splitlines()
    return {*found, *(line.split()[0] for line in tags if line.endswith(" tag"))}


def staged(project: Path) -> set[str]:
    """Contents that the user staged and that no commit has."""
    of_index = {line.split()[1] for line in run(project, "git ls-files -s").splitlines()}
    of_commits = run(project, "git rev-list --objects --all HEAD | cut -d' ' -f1").split()
    return of_index - set(of_commits)


def held(project: Path) -> set[str]:
    """Everything that refs, HEAD, stash and index hold."""
    objects = run(
        project, "git rev-list --objects --exclude='refs/artoo/*' --all HEAD $(git stash list --format=%H)"
    )
    of_index = [line.split()[1] for line in run(project, "git ls-files -s").splitlines()]
    return {*(line.split()[0] for line in objects.splitlines()), *of_index}


def check(world: World, past: Path, dice: random.Random) -> bool:
    """Run one task on a copy of `past`; return whether it needed approval."""
    shutil.rmtree(world.home, ignore_errors=True)
    shutil.copytree(past, world.project, symlinks=True)
    script = commands(dice)
    named, logged, only_staged = commits(world.project), commits(world.project, "--reflog"), staged(world.project)
    told = run(world.project, _PRESENT)
    task = Task(world, script)
    asks = any(one.change_class is ChangeClass.HISTORY for one in task.found.all_classes)
    stays = {one.path for one in task.found.all_conflicts}
    task.apply_git()
    run(world.project, "git -c core.commitGraph=false fsck")
    assert logged <= commits(world.project, "--all", "--reflog") | reachable_by_artoo(world.project), script
    if not asks:
        assert named <= commits(world.project), script
        assert only_staged <= held(world.project), script
    if not stays:
        assert run(world.project, _PRESENT) == run(task.inside / "project", _PRESENT), script
    assert task.undo() == (), script
    assert run(world.project, _PRESENT) == told, script
    return asks


def reachable_by_artoo(project: Path) -> set[str]:
    """What only artoo's own refs keep until the act can no longer be undone."""
    tips = "git for-each-ref --format='%(objectname)' refs/artoo"
    return set(run(project, f"git rev-list --glob='refs/artoo/*' 2>/dev/null || true; {tips}").split())


def checks(place: Path, first: int, count: int) -> list[bool]:
    """Run `count` tasks, four to a history: making it costs more than all the rest."""
    world, past = World.at(place), place / "past"
    asked: list[bool] = []
    for seed in range(first, first + count):
        if (seed - first) % 4 == 0:
            shutil.rmtree(past, ignore_errors=True)
            past.mkdir()
            run(past, history(random.Random(seed)))
        asked.append(check(world, past, random.Random(seed + 500_000)))
    return asked


def test_nothing_is_lost_unasked_and_undo_brings_everything_back(tmp_path: Path) -> None:
    """Eight pairs of a history and a task; both kinds come up."""
    asked = checks(tmp_path, 0, 8)
    assert any(asked)
    assert not all(asked)


@pytest.mark.torture
@pytest.mark.parametrize("block", range(10, 60))
def test_many_more_histories(tmp_path: Path, block: int) -> None:
    """A hundred pairs each."""
    assert len(checks(tmp_path, block * 1_000, 100)) == 100
