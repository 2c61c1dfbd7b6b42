"""Attempts to make something take effect unasked, and to read a token, each of which once got through.

An attempt is what the user has, what a task runs, and what the user would do next. It got through when `damage`
ends well. `repository`: the project is one, with a commit of `a.txt` and `src/app.py`.
"""

from __future__ import annotations

from dataclasses import dataclass

REPOSITORY = """
git init -q -b main .; echo a > a.txt; mkdir src; echo 'print(1)' > src/app.py; git add .; git commit -qm one
"""


@dataclass(frozen=True, slots=True)
class Attempt:
    name: str
    task: str
    damage: str
    setup: str = ""
    repository: bool = True


def _without_git(name: str, task: str, damage: str, setup: str) -> Attempt:
    return Attempt(name, task, damage, setup, repository=False)


_RUN = 'echo \'open("ran", "w")\''
_EVIL = "$(echo evil | git hash-object -w --stdin)"
_SIDE = (
    "git checkout -qb side; echo evil > .envrc; git add -f .; git commit -qm side; git checkout -q main;"
    "git update-ref refs/remotes/origin/side side; git branch -qD side"
)

LOADED_IN_PLACE = (
    _without_git("a-package", f"mkdir lib; {_RUN} > lib/__init__.py", "[ -e lib/__init__.py ]", "echo > lib.py"),
    _without_git("a-library", "echo x > lib.abi3.so", "[ -e lib.abi3.so ]", "echo > lib.py"),
    _without_git("a-module", f"{_RUN} > lib.py", "[ -e lib.py ]", "mkdir lib; echo > lib/part.py"),
    _without_git("an-init", f"{_RUN} > lib/__init__.py", "[ -e lib/__init__.py ]", "mkdir lib; echo > lib/part.py"),
    _without_git("a-script", "echo > lib.js", "[ -e lib.js ]", "mkdir lib; echo > lib/index.js"),
    _without_git("a-script-for-data", "echo > conf.js", "[ -e conf.js ]", "echo {} > conf.json"),
    _without_git("no-ending", "echo > lib", "[ -e lib ]", "echo > lib.js"),
    _without_git("a-debugger-script", "echo > prog-gdb.py", "[ -e prog-gdb.py ]", "echo > prog"),
)

STARTED_BY_GIT = (
    Attempt(
        "an-ending-that-node-adds",
        "echo > scripts/lint.js",
        "[ -e scripts/lint.js ]",
        "mkdir -p scripts/lint; echo > scripts/lint/index.js; echo 'node scripts/lint' > .git/hooks/pre-commit",
    ),
    Attempt(
        "a-pattern-in-a-hook",
        "echo evil > hk/helper",
        "[ -e hk/helper ]",
        "mkdir hk; git config core.hooksPath hk; echo 'for f in hk/h*; do . ./$f; done' > hk/pre-commit",
    ),
)

BROUGHT_BY_GIT = (
    Attempt(
        "a-tag-of-a-tree", f"git tag v9 $(printf '100644 blob %s\\t.envrc\\n' {_EVIL} | git mktree)", "git show v9"
    ),
    Attempt("known-commits", "git update-ref refs/heads/main origin/side", "git show main:.envrc", _SIDE),
    Attempt(
        "another-branch", "git update-ref refs/heads/b origin/side", "git show b:.envrc", f"git branch b; {_SIDE}"
    ),
    Attempt("a-tag-like-a-hash", "git tag $(git rev-parse --short HEAD)", "git tag | grep ."),
    Attempt(
        "an-unmerged-entry",
        f"printf '100644 %s 2\\t.envrc\\n' {_EVIL} | git update-index --index-info",
        "git ls-files -s .envrc | grep .",
    ),
    Attempt("a-staged-deletion", "git rm -q --cached a.txt", "! git ls-files a.txt | grep ."),
    Attempt(
        "a-repository-over-files",
        f"cd src; git init -q; git update-index --add --cacheinfo 100644,{_EVIL},app.py; git commit -qm x",
        "cd src; git checkout -q . ; grep evil app.py",
    ),
    Attempt(
        "a-remote-with-a-helper",
        "git init -q new; git -C new config branch.main.remote helper::address",
        "[ -d new/.git ]",
    ),
)

TOKENS = (
    (".condarc", "channels:\n  - https://conda.anaconda.org/t/ab-CANARY1-e89b/private\n"),
    (".config/pip/pip.conf", "[global]\nextra-index-url = https://dl.example.org/CANARY2Xy/acme/simple/\n"),
    (".config/uv/uv.toml", '[[index]]\nurl = "https://packages.example.org/CANARY3/pypi/simple"\n'),
    (".npm-global/etc/npmrc", "//registry.npmjs.org/:_authToken=CANARY\n"),
    (".nvm/versions/node/v22/etc/npmrc", "//registry.npmjs.org/:_authToken=CANARY\n"),
    (".asdf/installs/nodejs/22/lib/node_modules/npm/npmrc", "//registry.npmjs.org/:_authToken=CANARY\n"),
    (".pyenv/versions/3.11/pip.conf", "[global]\nindex-url = https://user:CANARY@example.org/\n"),
)
"""Settings with tokens, by their place in the home."""
