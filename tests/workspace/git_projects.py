"""Projects that are repositories, and tasks that ran git in them, without a sandbox (laid_out)."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Generator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path

from laid_out import World, workspace_of

from artoo.contracts.changes import Conflict
from artoo.contracts.settling import ChangeClass, ClassifiedChange
from artoo.ports.sandbox import Captured
from artoo.ports.workspace import Ended
from artoo.workspace import git
from artoo.workspace.changes.change_set import ChangeSet, read_change_set
from artoo.workspace.git.act import move, move_back
from artoo.workspace.git.state import GitAct

ENVIRONMENT = {
    "GIT_AUTHOR_NAME": "U",
    "GIT_AUTHOR_EMAIL": "u@example.invalid",
    "GIT_COMMITTER_NAME": "U",
    "GIT_COMMITTER_EMAIL": "u@example.invalid",
    "GIT_CONFIG_NOSYSTEM": "1",
    "GIT_CONFIG_GLOBAL": "/dev/null",
    "GIT_EDITOR": "true",
    "PATH": os.environ["PATH"],
}

COMMITS = """
git init -q -b main .
for n in 1 2 3; do echo $n > f$n; git add f$n; git commit -qm "number $n"; done
git branch side; git checkout -q side; echo s > s; git add s; git commit -qm "on the side"; git checkout -q main
git tag light; git tag -a -m annotated heavy side
echo w > f1; git stash -q; echo v > f2; git stash -q
echo 4 > f4; git add f4; git commit -qm "number 4"
"""
"""Branches, tags, two stashes, and a commit on top."""

TOLD = "git for-each-ref; git reflog; git status --short; git log --all --format=%H; git stash list"
"""All that git says of such a repository."""


def run(directory: Path, script: str, more: Mapping[str, str] | None = None) -> str:
    """Run a script with a git that knows only this environment."""
    done = subprocess.run(
        ["bash", "-ec", script],
        cwd=directory,
        env=ENVIRONMENT | dict(more or {}) | {"HOME": str(directory)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


@dataclass
class Task:
    """A task that ran a script in the project; `inside` is a copy of what it left, where questions are run."""

    world: World
    script: str
    task_id: str = "task-1"
    found: ChangeSet = field(init=False)

    def __post_init__(self) -> None:
        self.inside = self.world.home.parent / f"inside-{self.task_id}"
        self.directory = workspace_of(self.world, self._work, self.task_id)
        self.look()

    def _work(self, home: Path) -> None:
        with self._in_place(home):
            run(self.world.project, self.script)
        shutil.rmtree(self.inside, ignore_errors=True)
        shutil.copytree(home, self.inside, symlinks=True)

    @contextmanager
    def _in_place(self, home: Path) -> Generator[None]:
        """Put another home in place of the user's, as a sandbox would: git writes down absolute paths."""
        real, aside = self.world.home, self.world.home.with_name("aside")
        real.rename(aside)
        home.rename(real)
        if (aside / ".artoo").exists():
            (aside / ".artoo").rename(real / ".artoo")
        try:
            yield
        finally:
            if (real / ".artoo").exists():
                (real / ".artoo").rename(aside / ".artoo")
            real.rename(home)
            aside.rename(real)

    def look(self) -> ChangeSet:
        """Read the change set again."""
        judge = partial(git.judge, run_inside=self.run_inside)
        self.found = read_change_set(self.directory, self.world.artoo_home, judge_git=judge)
        return self.found

    def run_inside(
        self, argv: Sequence[str], cwd: Path, *, stdin: bytes | None = None, scratch: Path | None = None
    ) -> Ended:
        """Run a command where the task's files are; `/tmp` of scripts is the scratch directory."""
        words = [word.replace("/tmp/artoo-git", f"{scratch}/artoo-git") for word in argv]
        with self._in_place(self.inside):
            done = subprocess.run(words, cwd=cwd, input=stdin, capture_output=True, check=False)
        err = Captured(done.stderr, b"", len(done.stderr))
        return Ended("ok" if done.returncode == 0 else "error", done.returncode, Captured(), err, 0.0)

    @property
    def acts(self) -> tuple[GitAct, ...]:
        return git.acts(self.found.git, None)[0]

    @property
    def of_git(self) -> dict[str, ClassifiedChange]:
        """What git changes, by the words in brackets."""
        return {one.path.partition(" (")[2].rstrip(")"): one for one in self.found.git.classes}

    @property
    def history(self) -> list[ClassifiedChange]:
        every = self.found.all_classes
        return [one for one in every if one.change_class is ChangeClass.HISTORY]

    def loud(self) -> dict[str, ChangeClass]:
        """What needs approval, by path below the project."""
        start = f"{self.world.project}/"
        return {
            one.path.removeprefix(start): one.change_class
            for one in self.found.all_classes
            if one.change_class is not ChangeClass.SILENT
        }

    def apply(self) -> None:
        """Bring git's part over, and the files as a plain copy would."""
        self.apply_files()
        self.apply_git()

    def apply_git(self) -> None:
        """Bring over only git's part."""
        for act in self.acts:
            move(act)

    def apply_files(self) -> None:
        """Apply the file effects without any undo."""
        for effect in self.found.effects:
            path = Path(os.fsdecode(effect.path))
            if effect.after is None:
                shutil.rmtree(path) if path.is_dir() and not path.is_symlink() else path.unlink(missing_ok=True)
            elif effect.after.is_directory:
                path.mkdir(exist_ok=True)
            else:
                path.unlink(missing_ok=True)
                shutil.copy2(os.fsdecode(effect.source), path, follow_symlinks=False)

    def undo(self) -> tuple[Conflict, ...]:
        return tuple(conflict for act in reversed(self.acts) for conflict in move_back(act))
