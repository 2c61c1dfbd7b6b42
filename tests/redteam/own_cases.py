"""Acts that lose or change something of a person's, acts that do not, and what settling must make of each."""

from __future__ import annotations

from dataclasses import dataclass

from artoo.contracts.settling import ChangeClass

HOME = """
mkdir -p artoo_workspace Documents bin
mkdir -p ws/photos/raw ws/tools; printf '# Plan\\n\\nmeasure, then cut\\n' > ws/plan.md
printf 'int kept(void) { return 1; }\\n' > ws/kept.c
for n in one two three; do echo "pixels of $n" > ws/photos/$n.jpg; done
echo raw > ws/photos/raw/one.dng; printf '#!/bin/sh\\necho run\\n' > ws/tools/run.sh; chmod 755 ws/tools/run.sh
echo '{"years": [2019, 2020]}' > ws/data.json
sqlite3 ws/rows.db 'create table t(n); insert into t values (1), (2);'
printf 'Dear Ada,\\n' > Documents/letter.txt; printf 'export KEEP=1\\n' > .profile
printf '[user]\\n\\tname = U\\n\\temail = u@example.invalid\\n[init]\\n\\tdefaultBranch = main\\n' > .gitconfig
"""
"""A home with a project in `ws`."""

REPOSITORY = """
git init -q -b main .; git add -A; git commit -qm 'number 1'
for n in 2 3; do echo $n > f$n; git add f$n; git commit -qm "number $n"; done
git branch side; git checkout -q side; echo s > s; git add s; git commit -qm 'on the side'; git checkout -q main
git tag light; git tag -a -m annotated heavy side
echo w > f2; git stash -q; echo v >> f3; git stash -q
echo 4 > f4; git add f4; git commit -qm 'number 4'; echo 'not committed' >> plan.md; echo 'not added' > draft.md
"""
"""What makes the project a repository with branches, tags, stashes, and work that was not committed."""


@dataclass(frozen=True, slots=True)
class Case:
    """`command` is run in the project. `meant` is the (worst) class of what it changes."""

    name: str
    command: str
    meant: ChangeClass


def _cases(meant: ChangeClass, **commands: str) -> tuple[Case, ...]:
    return tuple(Case(name.replace("_", "-"), command, meant) for name, command in commands.items())


LOSES = (
    *_cases(
        ChangeClass.DELETION,
        pathlib="python3 -c \"from pathlib import Path; Path('plan.md').unlink()\"",
        rmtree="python3 -c \"import shutil; shutil.rmtree('photos')\"",
        perl_tree="perl -MFile::Path=remove_tree -e 'remove_tree(\"photos\")'",
        node_rm="node -e \"require('fs').rmSync('photos', {recursive: true})\"",
        find_delete="find photos -depth -mindepth 1 -delete",
        find_exec="find . -name '*.jpg' -exec sh -c 'mv \"$1\" /tmp/' _ {} \\;",
        read_loop='ls photos/*.jpg | while read -r name; do unlink "$name"; done',
        moved_away="mv plan.md /tmp/plan.md",
        moved_by_python="python3 -c \"import shutil; shutil.move('data.json', '/tmp/data.json')\"",
        moved_over="mv -f kept.c plan.md",
        zipped_away="zip -qm all.zip plan.md kept.c",
        packed_away="gzip photos/*.jpg",
        packed_xz="xz kept.c",
        emptied_directory="rm -r photos && mkdir photos",
        file_for_directory="rm -r photos && echo gone > photos",
        directory_for_file="rm plan.md && mkdir plan.md",
        outside="rm ~/Documents/letter.txt",
        outside_directory="perl -MFile::Path=remove_tree -e 'remove_tree(\"$ENV{HOME}/Documents\")'",
        stashed="git init -q . && git add kept.c && git commit -qm one && git stash -uq && git stash drop -q",
    ),
    *_cases(
        ChangeClass.EDIT,
        put_back="cp plan.md /tmp/p && echo x >> plan.md && cat /tmp/p > plan.md && echo done > made.txt",
        truncate="truncate -s 0 plan.md",
        truncate_python="python3 -c \"open('plan.md', 'r+').truncate(3)\"",
        dd="dd if=/dev/zero of=plan.md bs=1 count=4 conv=notrunc status=none",
        dd_end="dd if=kept.c of=photos/one.jpg oflag=append conv=notrunc status=none",
        copy_null="cp /dev/null plan.md",
        copy_over="cp --remove-destination kept.c plan.md",
        install_over="install -m 644 kept.c plan.md",
        tee_over="tee plan.md photos/one.jpg < kept.c > /dev/null",
        sed_in_place="sed -i.bak d plan.md",
        perl_in_place="perl -pi -e 's/./x/g' plan.md",
        sort_over="sort -o plan.md kept.c",
        shuffled="seq 9 | shuf -o plan.md",
        tar_over="mkdir /tmp/t && echo x > /tmp/t/plan.md && tar cf /tmp/o -C /tmp/t plan.md && tar xf /tmp/o",
        unzip_over="mkdir t && echo other > t/kept.c && (cd t && zip -q /tmp/o.zip kept.c) && unzip -qo /tmp/o.zip",
        replaced="python3 -c \"import os; open('n', 'w').write('other'); os.replace('n', 'plan.md')\"",
        renamed_directory="mv photos pictures",
        editor="printf '1d\\nw\\nq\\n' | ed -s plan.md",
        patched="printf -- '--- plan.md\\n+++ plan.md\\n@@ -1,3 +1,1 @@\\n-# Plan\\n-\\n-measure, then cut\\n"
        "+cut\\n' | patch -s",
        json_dump="python3 -c \"import json; json.dump({}, open('data.json', 'w'))\"",
        sqlite_delete="sqlite3 rows.db 'delete from t'",
        random_bytes="openssl rand -out plan.md 16",
        punched="fallocate --punch-hole --offset 0 --length 4 plan.md",
        descriptor="exec 9<> plan.md; printf zz >&9",
        swapped="mv plan.md n && mv kept.c plan.md && mv n kept.c",
        node_write="node -e \"require('fs').writeFileSync('plan.md', 'x')\"",
        process_path="python3 -c \"open('/proc/self/cwd/plan.md', 'w').write('x')\"",
        late_child="(sleep 0.2; echo late > plan.md) & wait",
    ),
    *_cases(
        ChangeClass.MODE,
        new_program="printf '#!/bin/sh\\n' > own.sh && chmod +x own.sh && ./own.sh",
        open_to_all="chmod -R go+w photos",
        linked_first="ln plan.md twin && printf x > twin && cat twin > plan.md",
        locked="chmod 000 plan.md",
        not_executable="chmod -x tools/run.sh",
        attribute="python3 -c \"import os; os.setxattr('plan.md', 'user.note', b'x')\"",
    ),
    *_cases(ChangeClass.SPECIAL, rights_of_owner="cp /bin/true own && chmod u+s own"),
    *_cases(
        ChangeClass.LINK,
        link_out="ln -s /etc/passwd users",
        link_inside="ln -s plan.md alias",
        link_over="ln -sf kept.c plan.md",
    ),
    *_cases(
        ChangeClass.ELSEWHERE,
        new_outside="echo x > ~/Documents/new.txt",
        appended_outside="echo more >> ~/Documents/letter.txt",
        new_directory="mkdir -p ~/Music/new",
        through_a_link="ln -s ~/Documents there && echo x > there/letter.txt && rm there",
    ),
    *_cases(
        ChangeClass.PERSISTENCE,
        start_up="echo 'alias ls=evil' >> ~/bin/ls",
        new_start_up="printf 'evil\\n' > ~/.zshenv",
        unit="printf '[Service]\\nExecStart=/bin/true\\n' > ~/Documents/x.service",
        git_alias="git config --global alias.st '!true'",
        hook="git init -q . && printf '#!/bin/sh\\n' > .git/hooks/pre-push",
        hooks_path="git init -q . && git config core.hooksPath ./evil",
        editor_tasks="mkdir .vscode && echo '{}' > .vscode/tasks.json",
        agent_settings="mkdir -p ~/.claude && echo '{}' > ~/.claude/settings.json",
        environment="echo 'export PATH=./evil:$PATH' > .envrc",
        own_program="mkdir -p ~/bin && printf '#!/bin/sh\\n' > ~/bin/git && chmod +x ~/bin/git",
    ),
)

HISTORY = _cases(
    ChangeClass.HISTORY,
    amend="git commit -q --amend -m other",
    reset_hard="git reset -q --hard HEAD~1",
    rebase="git checkout -q -f side && GIT_COMMITTER_DATE=2001-01-01T00:00:00 git rebase -q --no-ff main~3",
    rebase_onto="git commit -qam wip && git rebase -q --onto main~3 main~2 main",
    branch_gone="git branch -q -D side && git tag -d heavy",
    tag_moved="git tag -f light main~2",
    stash_dropped="git stash drop -q",
    reflog_expired="git reflog expire --expire=now --all",
    collected="git commit -q --amend -m other && git reflog expire --expire=now --all && git gc -q --prune=now",
    update_ref="git update-ref refs/heads/side main~3",
    plumbing="git update-ref refs/heads/side $(git commit-tree -m bare $(git write-tree))",
    ref_by_hand="old=$(git rev-parse main~1) && echo $old > .git/refs/heads/main",
    other_branch="git checkout -q -b fresh && git add draft.md && git commit -qm d -- draft.md"
    " && git commit -q --amend -m better",
    filtered="git stash -q; export FILTER_BRANCH_SQUELCH_WARNING=1;"
    " git filter-branch -f --msg-filter 'sed s/number/no/' main 2> /dev/null",
    replaced="git checkout -q -f --orphan fresh && git commit -qm fresh && git branch -q -M fresh main",
)

BENIGN = _cases(
    ChangeClass.SILENT,
    archive="tar czf all.tgz photos kept.c",
    copy="cp -a photos copy && chmod -R u+w copy",
    own_scratch="cp -r photos t && sed -i s/pixels/x/ t/one.jpg && rm -r t && echo done > made.txt",
    pieces="split -b 8 kept.c part-",
    new_repository="git init -q inner && cd inner && echo a > a && git add a && git commit -qm a"
    " && git commit -q --amend -m b",
    compiled="echo 'x = 1' > m.py && python3 -m py_compile m.py && python3 -c 'import m'",
    database="sqlite3 new.db 'create table t(n); insert into t values (1); delete from t'",
    moved_own="echo a > one && mv one two && mkdir d && mv two d/",
    words_only="echo 'rm -rf / ; git reset --hard' > notes.md",
)
"""Needs no consent: applied unasked."""

BENIGN_IN_REPOSITORY = _cases(
    ChangeClass.SILENT,
    commit="git add draft.md && git commit -qm draft -- draft.md",
    branch="git branch new && git tag later && git worktree list",
    own_branch="git branch -q fresh && git worktree add -q /tmp/w fresh 2> /dev/null; cd /tmp/w && echo d > d.md"
    " && git add d.md && git commit -qm d && git commit -q --amend -m better && cd - > /dev/null"
    " && git worktree remove /tmp/w",
    merge="git notes add -m n HEAD && git status && git log --oneline --all",
)

OUT_OF_REACH = ("echo 'apply: edits' > ~/.artoo/config.yaml", "rm -rf ~/.artoo/tasks ~/.artoo/workspaces")
"""Of artoo's own files a task sees nothing, and reaches none."""
