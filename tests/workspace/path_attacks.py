"""Changes that look like new files, caches or git's notes, and are something else: for tests that merge them.

Each script is run in the project of `PREPARED`. `@HOME@` is the user's real home. None may take effect unasked. The
whole table of attacks is in `tests/redteam/adversary.py`.
"""

from __future__ import annotations

from pathlib import Path

from git_projects import run
from laid_out import World

PREPARED = r"""
git init -q -b main .
git config user.name U; git config user.email u@example.invalid
for n in 1 2 3; do echo $n > f$n; git add f$n; git commit -qm "number $n"; done
git branch side; git checkout -q side; echo s > s; git add s; git commit -qm "on the side"; git checkout -q main
git tag -a -m annotated heavy side; git pack-refs --all; echo w > f1; git stash -q
echo 4 > f4; git add f4; git commit -qm "number 4"; echo staged > p; git add p; echo later > p
mkdir sub k; echo mine > sub/thesis.txt; ln -s ../.. k/person
printf 'def f():\n    return 41\n' > lib.py; python3 -m compileall -q lib.py
mkdir tools; git config core.hooksPath tools/hooks; git config filter.f.clean tools/filter
"""

ATTACKS = {
    "a link through the user's own link": "ln -s k/person/.bashrc notes",
    "a link in a new repository": "git init -q sub/new; cd sub/new; ln -s @HOME@/.bashrc .git/ORIG_HEAD",
    "a branch as a link": "ln -s ../../../f1 .git/refs/heads/new",
    "a compiled file replaced": "for f in __pycache__/*.pyc; do head -c 16 $f > x; echo evil >> x; mv x $f; done",
    "a packed branch moved": "git branch -f side main~2",
    "a name of nothing": "echo 0123456789012345678901234567890123456789 > .git/refs/tags/heavy",
    "amended": "git commit -q --amend --allow-empty -m other",
    "staged content dropped": "git reset -q",
    "the stash dropped": "git stash drop -q",
    "a merge begun": "git rev-parse side > .git/MERGE_HEAD; echo x > .git/MERGE_MSG",
    "all of git's files removed": "rm -rf .git",
    "a hook of the settings": "mkdir -p tools/hooks; printf '#!/bin/sh\\n' > tools/hooks/pre-commit",
    "a filter of the settings": "printf '#!/bin/sh\\n' > tools/filter",
    "a setting of a new repository": "git init -q sub/new; git -C sub/new config core.fsmonitor ./x",
}


def prepared(world: World) -> World:
    """Make a user's home with a project in which all kinds of things stand."""
    (world.home / ".bashrc").write_text("# mine\n")
    run(world.project, PREPARED)
    return world


def caches(world: World) -> dict[str, bytes]:
    """Return the files that Python would run in place of sources."""
    return {str(path): path.read_bytes() for path in world.project.rglob("__pycache__/*.pyc")}


def links(world: World) -> set[Path]:
    """Return the symbolic links of the project."""
    return {path for path in world.project.rglob("*") if path.is_symlink()}
