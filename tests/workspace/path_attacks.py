# ruff: noqa: E501 - scripts are easier to read in one line
"""What a path means, attacked: things that look like new files, caches or git's notes, and are something else.

Each is a script that a task runs in the project of `PREPARED`. `@HOME@` is the person's real home. None may take
effect unasked.
"""

from __future__ import annotations

PREPARED = r"""
git init -q -b main .
git config user.name U; git config user.email u@example.invalid
for n in 1 2 3; do echo $n > f$n; git add f$n; git commit -qm "number $n"; done
git branch side; git checkout -q side; echo s > s; git add s; git commit -qm "on the side"; git checkout -q main
git tag light; git tag -a -m annotated heavy side
git checkout -q --detach; git commit -q --allow-empty -m "only by its tag"; git tag lonely; git checkout -q main
git reflog expire --expire=now --all; git pack-refs --all
echo w > f1; git stash -q
echo 4 > f4; git add f4; git commit -qm "number 4"
echo staged > p; git add p; echo later > p
mkdir sub k .mypy_cache; echo mine > sub/thesis.txt; echo mine > .mypy_cache/thesis.txt
ln -s ../.. k/person
printf 'def f():\n    return 41\n' > lib.py; printf 'import lib\nprint(lib.f())\n' > main.py
python3 -m compileall -q lib.py; touch -d '2001-01-01' main.py
mkdir tools; git config core.hooksPath tools/hooks; git config alias.x '!sh tools/alias.sh'
git config include.path ../more.gitconfig; git config filter.f.clean tools/filter; git config core.editor ./ed
git worktree add -q --detach ../linked; git -C ../linked commit -q --allow-empty -m "only in the worktree"
git init -q --bare bare.git
mkdir -p deep/er; ln -s deep/er short
"""

_REPLACED_CACHE = r"""python3 - <<'P'
import importlib.util as u, marshal, os, struct
at = os.stat("lib.py")
foreign = compile("def f():\n    return 42", "lib.py", "exec")
head = u.MAGIC_NUMBER + struct.pack("<III", {flags}, {one}, {two})
os.makedirs("__pycache__", exist_ok=True)
open({name}, "wb").write(head + {body})
P"""


def _cache(
    flags: str = "0",
    one: str = "int(at.st_mtime)",
    two: str = "at.st_size",
    name: str = 'u.cache_from_source("lib.py")',
    body: str = "marshal.dumps(foreign)",
) -> str:
    return _REPLACED_CACHE.format(flags=flags, one=one, two=two, name=name, body=body)


_NEW_REPOSITORY = "git init -q sub/new; cd sub/new; "
_REBASE = (
    "mkdir -p {d}/rebase-merge; H=$(git rev-parse HEAD); cd {d}/rebase-merge; echo refs/heads/main > head-name;"
    "echo $H > onto; echo $H > orig-head; touch interactive done; echo 'exec touch ~/PWNED' > git-rebase-todo"
)
_INDEX = r"""python3 - <<'P'
import hashlib
whole = bytearray(open(".git/index", "rb").read())[:-20]
{change}
open(".git/index", "wb").write(bytes(whole) + hashlib.sha1(whole).digest())
P"""

LINKS = {
    "through a link upwards": "mkdir -p m; ln -s .. m/up; ln -s m/up/../.bashrc notes",
    "through the person's own link": "ln -s k/person/.bashrc notes",
    "through the person's own link, twice": "ln -s k/person/../x notes",
    "through a link of two steps": "mkdir m; ln -s ../sub m/a; ln -s m/a/../../.bashrc notes",
    "through a directory that is a link": "ln -s short/../../../.bashrc notes",
    "through a short directory": "ln -s short/../../../.profile notes",
    "absolute, out of a link": "mkdir m; ln -s .. m/up; ln -s @HOME@/project/m/up/../.bashrc notes",
    "the process's own place": "ln -s /proc/self/cwd/sub notes",
    "the process's root": "ln -s /proc/self/root/@HOME@/.bashrc notes",
    "an open file": "ln -s /proc/self/fd/0 notes; ln -s /dev/fd/1 out",
    "another's place": "ln -s /proc/thread-self/cwd/f1 notes",
    "a chain of new links": "ln -s b a; ln -s c b; ln -s ../.bashrc c",
    "a chain, the end first": "ln -s ../.bashrc z; ln -s z a",
    "not there yet": "ln -s ../.config/autostart/x notes",
    "a circle": "ln -s two one; ln -s one two",
    "a program of the person's": "ln -s ../backup.sh notes",
    "the home": "ln -s ../ notes",
    "the home with a dot": "ln -s ./././.. notes",
    "a trailing slash": "ln -s ../.ssh/ notes",
    "git's hooks": "ln -s .git/hooks notes",
    "git's settings": "ln -s .git/config notes",
    "a linked directory moved": "mkdir -p a/b; ln -s ../../sub a/b/l; mv a/b b",
    "a name with a newline": "ln -s $'../\\n' notes",
    "the last message": "rm -f .git/COMMIT_EDITMSG; ln -s ../f1 .git/COMMIT_EDITMSG",
    "the last message, new": "ln -s ../f1 .git/TAG_EDITMSG",
    "the last message, out": "ln -sf @HOME@/.bashrc .git/COMMIT_EDITMSG",
    "in a new repository": _NEW_REPOSITORY + "ln -s ../../../thesis.txt .git/COMMIT_EDITMSG",
    "in a new repository, out": _NEW_REPOSITORY + "ln -s @HOME@/.bashrc .git/ORIG_HEAD",
    "head as a link": "rm .git/HEAD; ln -s ../f1 .git/HEAD",
    "a branch as a link": "ln -s ../../../f1 .git/refs/heads/new",
    "a log as a link": "ln -s ../../../../f1 .git/logs/refs/heads/new",
    "objects as a link": _NEW_REPOSITORY + "rm -rf .git/objects; ln -s ../../../.git/objects .git/objects",
}

CACHES = {
    "replaced": _cache(),
    "new for a program without one": _cache(
        name='u.cache_from_source("main.py")',
        one='int(os.stat("main.py").st_mtime)',
        two='os.stat("main.py").st_size',
    ),
    "never checked": _cache(flags="1", one="0", two="0"),
    "checked by a hash": _cache(
        flags="3",
        one='int.from_bytes(u.source_hash(open("lib.py", "rb").read())[:4], "little")',
        two='int.from_bytes(u.source_hash(open("lib.py", "rb").read())[4:], "little")',
    ),
    "the person's file among them": "echo x > __pycache__/keep.txt; echo x > sub/__pycache__",
    "a file in a directory that is called a cache": "echo theirs > .mypy_cache/thesis.txt",
    "a directory that is made a cache": (
        "printf 'Signature: 8a477f597d28d172789f06886806bc55\\n' > .mypy_cache/CACHEDIR.TAG;"
        "echo theirs > .mypy_cache/thesis.txt"
    ),
    "a directory that is made a cache, for later": (
        "printf 'Signature: 8a477f597d28d172789f06886806bc55\\n' > .mypy_cache/CACHEDIR.TAG"
    ),
    "a program among caches": "printf '#!/bin/sh\\n' > .mypy_cache/thesis.txt; chmod +x .mypy_cache/thesis.txt",
}

STATE = {
    "a packed tag moved": "git tag -f lonely main",
    "a packed branch moved": "git branch -f side main~2",
    "a packed name shadowed": "mkdir -p .git/refs/heads; git rev-parse main~1 > .git/refs/heads/side",
    "a packed name struck out": "sed -i '/lonely/d' .git/packed-refs",
    "packed names in disorder": "(head -1 .git/packed-refs; tail -n +2 .git/packed-refs | tac) > x; mv x .git/packed-refs",
    "no packed names": "rm .git/packed-refs",
    "a name made symbolic": "git symbolic-ref refs/tags/lonely refs/heads/main",
    "a name of nothing": "echo 0123456789012345678901234567890123456789 > .git/refs/tags/lonely",
    "an empty name": ": > .git/refs/tags/lonely",
    "a directory over a name": "mkdir -p .git/refs/tags/lonely; git rev-parse main > .git/refs/tags/lonely/x",
    "replaced": "git replace main~1 main~2",
    "replaced content": "mkdir -p .git/refs/replace; N=$(echo evil | git hash-object -w --stdin);"
    "echo $N > .git/refs/replace/$(git rev-parse HEAD:f1)",
    "replaced in packed names": "N=$(echo evil | git hash-object -w --stdin);"
    'echo "$N refs/replace/$(git rev-parse HEAD:f1)" >> .git/packed-refs',
    "shallow": "git rev-parse HEAD > .git/shallow",
    "grafts": 'echo "$(git rev-parse HEAD)" > .git/info/grafts',
    "alternates": "mkdir -p .git/objects/info; echo /elsewhere > .git/objects/info/alternates",
    "alternates over http": "mkdir -p .git/objects/info; echo http://x/ > .git/objects/info/http-alternates",
    "amended": "git commit -q --amend --allow-empty -m other",
    "reset": "git reset -q --soft HEAD~2",
    "a junk line in the log": "O=$(git rev-parse HEAD); R=$(git rev-parse HEAD~2); echo $R > .git/refs/heads/main;"
    'echo "x $O y" >> .git/logs/refs/heads/main',
    "a false line in the log": "O=$(git rev-parse HEAD); R=$(git rev-parse HEAD~2); echo $R > .git/refs/heads/main;"
    "printf '%s %s U <u@e> 1 +0000\\treset\\n' $O $R >> .git/logs/refs/heads/main",
    "the staged version dropped": "git reset -q",
    "the staged version replaced": "git add p",
    "the staged version removed": "git rm -q -f --cached p",
    "an empty index": "git read-tree --empty",
    "no index": "rm .git/index",
    "the person's edit hidden": "git update-index --assume-unchanged f1",
    "the person's edit skipped": "git update-index --skip-worktree f1",
    "a torn index": "truncate -s 40 .git/index",
    "an index of other content": (
        "echo evil > e; O=$(git hash-object -w e); rm e; git update-index --cacheinfo 100644,$O,f4"
    ),
    "the stash dropped": "git stash drop -q",
    "the stash's log gone": "rm .git/logs/refs/stash",
    "a log gone": "rm .git/logs/HEAD",
    "a log emptied": ": > .git/logs/HEAD",
    "a worktree gone": "rm -rf .git/worktrees",
    "a worktree's head moved": "git rev-parse main > .git/worktrees/linked/HEAD",
    "a merge begun": "git rev-parse side > .git/MERGE_HEAD; echo x > .git/MERGE_MSG",
    "a message for the next commit": "echo x > .git/MERGE_MSG",
    "a squash begun": "echo x > .git/SQUASH_MSG",
    "a pick begun": "git rev-parse side > .git/CHERRY_PICK_HEAD",
    "a revert begun": "git rev-parse HEAD > .git/REVERT_HEAD",
    "a rebase with exec": _REBASE.format(d=".git"),
    "a rebase by patches": "mkdir .git/rebase-apply; echo 1 > .git/rebase-apply/next; echo 1 > .git/rebase-apply/last",
    "a rebase with exec in a worktree": _REBASE.format(d=".git/worktrees/linked"),
    "a rebase with exec in a new repository": _NEW_REPOSITORY
    + "git -c user.name=u -c user.email=e commit -q --allow-empty -m x;"
    + _REBASE.format(d=".git"),
    "a sequence": 'mkdir .git/sequencer; echo "pick $(git rev-parse side)" > .git/sequencer/todo',
    "a bisection": "git rev-parse HEAD > .git/BISECT_START; echo x > .git/BISECT_LOG",
    "locks": "touch .git/index.lock",
    "a lock on a name": "touch .git/refs/heads/main.lock",
    "a lock on the settings": "touch .git/config.lock",
    "a directory for the message": "rm -f .git/COMMIT_EDITMSG; mkdir .git/COMMIT_EDITMSG; echo x > .git/COMMIT_EDITMSG/f",
    "a pipe for the message": "rm -f .git/COMMIT_EDITMSG; mkfifo .git/COMMIT_EDITMSG",
    "what git does not know": "echo x > .git/whatever",
    "a head that git does not know": "git rev-parse HEAD > .git/EVIL_HEAD",
    "recorded resolutions": "mkdir -p .git/rr-cache/00; echo x > .git/rr-cache/00/postimage",
    "ignored files": "mkdir -p .git/info; echo '*' > .git/info/exclude",
    "a sparse checkout": "echo '/f1' > .git/info/sparse-checkout",
    "an object overwritten": "O=$(git rev-parse HEAD); F=.git/objects/${O:0:2}/${O:2}; chmod u+w $F; echo x > $F",
    "a false object": "O=$(echo new | git hash-object --stdin); mkdir -p .git/objects/${O:0:2};"
    "N=$(echo evil | git hash-object -w --stdin); cp .git/objects/${N:0:2}/${N:2} .git/objects/${O:0:2}/${O:2}",
    "a false pack": "git repack -q -a -d; cd .git/objects/pack; chmod u+w *; for f in *; do cp $f pack-${f:5:-6}00000${f: -5}; done;"
    "printf x | dd of=$(ls *00000.pack) seek=40 bs=1 conv=notrunc status=none",
    "a false graph": "git commit-graph write --reachable; cd .git/objects/info; chmod u+w *; printf xxxx | dd of=commit-graph"
    " seek=1100 bs=1 conv=notrunc status=none",
    "every object": "rm -rf .git/objects/??",
    "everything": "rm -rf .git",
    "closed to its owner": "chmod 400 .git/packed-refs",
    "another repository in its place": "rm -rf .git; git init -q .",
    "a pack whose promise is elsewhere": "git repack -q -a; for p in .git/objects/pack/*.pack; do touch ${p%.pack}.promisor; done",
}

PROGRAMS = {
    "a hook": "printf '#!/bin/sh\\n' > .git/hooks/post-commit; chmod +x .git/hooks/post-commit",
    "a hook without rights": "printf '#!/bin/sh\\n' > .git/hooks/pre-push",
    "a hook from a sample": "cp .git/hooks/pre-commit.sample .git/hooks/pre-commit || echo x > .git/hooks/pre-commit",
    "hooks where the settings say": "mkdir -p tools/hooks; printf '#!/bin/sh\\n' > tools/hooks/pre-commit;"
    "chmod +x tools/hooks/pre-commit",
    "hooks where they say, as a link": "ln -s ../sub tools/hooks",
    "what an alias starts": "echo x > tools/alias.sh",
    "what the settings include": "printf '[core]\\n\\tfsmonitor = x\\n' > more.gitconfig",
    "what a filter starts": "printf '#!/bin/sh\\n' > tools/filter; chmod +x tools/filter",
    "the editor": "printf '#!/bin/sh\\n' > ed; chmod +x ed",
    "the person's own settings name it": "printf '#!/bin/sh\\n' > tools/pager; chmod +x tools/pager",
    "the person's own settings name hooks": "mkdir -p tools/global; echo x > tools/global/post-checkout",
    "a setting": "git config core.fsmonitor ./x",
    "a setting of a worktree": "git config extensions.worktreeConfig true; git config --worktree core.pager ./x",
    "a setting of the linked worktree": "printf '[core]\\n\\tpager = ./x\\n' > .git/worktrees/linked/config.worktree",
    "attributes": "mkdir -p .git/info; echo '* filter=f' > .git/info/attributes",
    "attributes in the project": "echo '* filter=f' > .gitattributes",
    "attributes below": "echo '* filter=f' > sub/.gitattributes",
    "modules": "printf '[submodule \"x\"]\\n\\tpath = x\\n\\turl = ./y\\n' > .gitmodules",
    "a remote of the old kind": "mkdir -p .git/remotes; echo 'URL: ext::sh -c x' > .git/remotes/origin",
    "a branch of the old kind": "mkdir -p .git/branches; echo '/evil' > .git/branches/origin",
    "a bare repository": "git init -q --bare data; printf '[core]\\n\\tfsmonitor = x\\n' > data/config",
    "a bare repository in parts": "git init -q --bare data; mkdir -p store; mv data/objects data/refs data/config store;"
    "echo ../store > data/commondir; printf '[core]\\n\\tfsmonitor = x\\n' > store/config",
    "a bare repository with borrowed objects": "git init -q --bare data; rm -r data/objects; ln -s ../.git/objects data/objects;"
    "printf '[core]\\n\\tfsmonitor = x\\n' > data/config",
    "a bare repository with an absolute link": "git init -q --bare data; rm -r data/objects;"
    "ln -s @HOME@/project/.git/objects data/objects; printf '[core]\\n\\tfsmonitor = x\\n' > data/config",
    "a bare repository's hook": "echo x > bare.git/hooks/post-update",
    "a bare repository's setting": "git -C bare.git config core.pager x",
    "a repository with a hook": _NEW_REPOSITORY + "echo x > .git/hooks/post-checkout",
    "a repository with an alias": _NEW_REPOSITORY + "git config alias.st '!x'",
    "a repository with an include": _NEW_REPOSITORY + "git config include.path ../x",
    "a repository with a worktree": _NEW_REPOSITORY + "git config core.worktree ../..",
    "a repository with another's settings": _NEW_REPOSITORY + "echo ../../evil > .git/commondir",
    "a setting in one line": _NEW_REPOSITORY + "echo '[core] fsmonitor = x' >> .git/config",
    "a setting after a return": _NEW_REPOSITORY
    + "printf '# x\\r[core]\\rfsmonitor = x\\n[core]\\n fsmonitor=x\\n' >> .git/config",
    "a setting after a backslash": _NEW_REPOSITORY
    + "printf '[user]\\n name = a\\\\\\n\\n[core]\\n\\tpager=x\\n' >> .git/config",
    "a url that is a program": _NEW_REPOSITORY + "git config remote.origin.url 'ext::sh -c x'",
    "a repository for the home": "git init -q ..; git -C .. config core.pager x",
    "a submodule's repository": "mkdir -p .git/modules; git init -q --bare .git/modules/m;"
    "git -C .git/modules/m config core.pager x",
    "a submodule's hook": "git init -q --bare .git/modules/m; echo x > .git/modules/m/hooks/post-checkout",
    "settings for a submodule to come": "mkdir -p .git/modules/m; printf '[core]\\n\\tpager = x\\n' > .git/modules/m/config",
    "a hook for a submodule to come": "mkdir -p .git/modules/a/b/hooks; echo x > .git/modules/a/b/hooks/post-checkout",
    "attributes for a submodule to come": "mkdir -p .git/modules/m/info; echo '* filter=f' > .git/modules/m/info/attributes",
    "what cargo is told": "mkdir .cargo; printf '[build]\\nrustc-wrapper = \"./x\"\\n' > .cargo/config.toml",
    "what R starts with": "echo 'system(\"x\")' > .Rprofile",
    "what a debugger starts with": "echo 'shell x' > .gdbinit",
    "what maven starts with": "mkdir .mvn; echo -javaagent:x.jar > .mvn/jvm.config",
    "a link to a repository": "mkdir q; echo 'gitdir: ../bare.git' > q/.git",
    "a repository that is a link": "mkdir q; ln -s ../bare.git q/.git",
    "settings that are a pipe": "rm bare.git/config; mkfifo bare.git/config",
}

ATTACKS = {
    f"{kind}: {name}": script
    for kind, group in (("link", LINKS), ("cache", CACHES), ("state", STATE), ("program", PROGRAMS))
    for name, script in group.items()
}
"""By name; more than a hundred."""
