"""What a task's changes are, what they mean, and what conflicts with the user's own."""

from __future__ import annotations

import asyncio
import os
from pathlib import Path

import pytest
from task_world import World, make_world, overlay

from artoo.contracts.changes import ChangeKind, Node, printable_path
from artoo.contracts.errors import SandboxError
from artoo.contracts.settling import ChangeClass
from artoo.workspace.changes import tree
from artoo.workspace.changes.change_set import GitPart, GitQuestion, read_change_set
from artoo.workspace.changes.effect import Effect, Verdict
from artoo.workspace.changes.path_class import Places
from artoo.workspace.changes.silent_rule import SilentRule
from artoo.workspace.fs.stat import NodeState


def below(world: World, names: set[str]) -> set[str]:
    """Paths below the project."""
    return {name.removeprefix(f"{world.project}/") for name in names}


# --- The positive rule -------------------------------------------------------------------------------------------

SILENT = ("notes.md", "src/app/main.py", "data/values.csv", "Über uns.txt", "a b.txt", "build/x", "x-1.2.tar.gz")
STARTED = (
    "Makefile", "MAKEFILE", "sub/package.json", "conftest.py", "setup.py", "build.rs", "sitecustomize.py", "x.pth",
    "tox.ini", "noxfile.py", "CMakeLists.txt", "justfile", "Rakefile", "jest.config.ts", "Dockerfile", "AGENTS.md",
    "test_x.py", "deep/er/x_test.go", "hooks/pre-commit", "node_modules/x/index.js", "random.py",
    "email/__init__.py", "Jenkinsfile", "pom.xml", "a.csproj", "flake.nix", "docs/conf.py",
    "sitecustomize/__init__.py", "features/steps/x.py", "web/features/steps/deep/x.py", "gatsby-node.js",
    "app/middleware.ts", "prisma/schema.prisma", "python311._pth", "nextflow.config", "site/_plugins/x.rb",
)  # fmt: skip
HIDDEN = (
    ".env",
    "sub/.eslintrc.js",
    ".vscode/tasks.json",
    ".x/y/z",
    "a\nb",
    "Makefile\n",
    "x\u202ecod.txt",
    "\ufeffa",
)


def test_ordinary_new_files_are_silent(world: World) -> None:
    """A new regular file with an ordinary name may take effect unasked, with the directories that hold it."""
    found = world.does(
        "umask 022; " + "; ".join(f"mkdir -p '{Path(one).parent}'; echo x > '{one}'" for one in SILENT)
    )
    assert found.silent, [one for one in found.classes if one.reason]


@pytest.mark.parametrize("name", [*STARTED, *HIDDEN])
def test_names_that_something_starts_or_hides_ask(name: str, tmp_path: Path) -> None:
    """So do all their spellings: in a directory, in capitals, with a line end, with characters that nobody sees."""
    world = make_world(tmp_path, overlay())
    path = os.fsencode(world.project / name)
    state = NodeState(Node.FILE, 0o644, os.geteuid(), os.getegid())
    rule = SilentRule(Places.of(world.roots, world.artoo_home))
    found = rule.unusual(Effect(os.fsencode(world.home), path, printable_path(path), None, state))
    assert found is not None and found.change_class is ChangeClass.PERSISTENCE


@pytest.mark.parametrize(
    ("script", "expected"),
    [
        ("echo x > f; chmod +x f", "mode"),
        ("echo x > f; ln f g", "mode"),
        ("echo x > f; setfattr -n user.x -v y f", "mode"),
        ("echo x > f; chmod 4644 f", "special"),
        ("ln -s old f", "link"),
        ("ln -s /etc/passwd f", "link"),
        ("mkfifo f", "special"),
        ("mkdir f; chmod 1777 f", "mode"),
        ("mv old f", "edit"),
        ("touch -d 2001-01-01 old", "edit"),
        ("rm old", "deletion"),
        ("rm old; mkdir old", "deletion"),
        ("chmod 600 old", "mode"),
        ("echo x > old; chmod +x old", "mode"),
        ("chmod u+w ro; echo x > ro/f; chmod u-w ro", "mode"),
        ("chmod u+w ro; mkdir ro/d; chmod u-w ro", "mode"),
        ("chmod u+w ro; mkdir ro/d; echo x > ro/d/f; chmod u-w ro", "mode"),
        ("cp old other", "edit"),
        ("rm other; mv old other", "deletion"),
    ],
)
def test_everything_else_asks(script: str, expected: str, world: World) -> None:
    """Execute bits, links, attributes, modes, moves over something: each has its class."""
    setting = 'python3 -c \'import os; os.setxattr("f", "user.x", b"y")\''
    script = script.replace("setfattr -n user.x -v y f", setting)
    (world.project / "old").write_text("old")
    (world.project / "other").write_text("other")
    (world.project / "ro").mkdir(mode=0o555)
    classes = {one.change_class.value for one in world.does(script).classes} - {"silent"}
    assert expected in classes


def test_edits_of_files_that_something_starts_are_no_plain_edits(world: World) -> None:
    """`--apply edits` follows the same rule."""
    (world.project / "Makefile").write_text("all:")
    (world.project / "run").write_text("#!/bin/sh")
    (world.project / "run").chmod(0o755)
    world.does("echo x >> Makefile; echo x >> run")
    assert world.classes() == {"project/Makefile": "persistence", "project/run": "mode"}


def test_a_directory_with_a_group_of_its_own_gives_it_to_new_files(world: World) -> None:
    """Files get the group of a set-group-id directory: that is ordinary there."""
    if os.geteuid() != 0:
        pytest.skip("only root may give a directory another group")
    os.chown(world.project, 0, 1234)
    world.project.chmod(0o2775)
    assert world.does("mkdir sub; echo x > sub/f").silent


def test_paths_outside_project_and_output_folder_ask(world: World) -> None:
    """The home's visible part may be changed, and each such change is asked about."""
    (world.home / "letter.txt").write_text("dear")
    world.does(
        f"echo x > {world.home}/new.txt; echo y >> {world.home}/letter.txt; rm -f x; echo z > {world.output}/z"
    )
    assert world.classes() == {"new.txt": "elsewhere", "letter.txt": "elsewhere", "artoo_workspace/z": "silent"}


def test_the_target_of_a_start_up_link_is_a_start_up_file(world: World) -> None:
    """Dotfiles often are links into a project."""
    (world.project / "shell").write_text("true")
    (world.home / ".bashrc").symlink_to(world.project / "shell")
    world.does("echo evil >> shell")
    assert world.classes() == {"project/shell": "persistence"}


def test_what_a_program_would_load_in_place_of_something_else_asks(world: World) -> None:
    """A module over an installed one, over a neighbour that stays, and code that runs before modules beside it."""
    (world.project / ".venv/lib/python3.11/site-packages/yaml").mkdir(parents=True)
    for name in ("app/tool.py", "names/x.py", "web/page.ts"):
        (world.project / name).parent.mkdir()
        (world.project / name).write_text("x")
    found = world.does(
        "mkdir yaml app/tool; echo x | tee yaml/__init__.py app/yaml.py app/tool/__init__.py app/tool/part.py",
        "echo x | tee app/other.py names/__init__.py web/page.js web/page.test.ts web/page.css > /dev/null",
    )
    asked = {one.path for one in found.classes if one.change_class is ChangeClass.PERSISTENCE}
    assert below(world, asked) == {
        "yaml/__init__.py", "app/yaml.py", "app/tool/__init__.py", "names/__init__.py", "web/page.js",
        "web/page.test.ts",
    }  # fmt: skip


# --- What counts as a change -------------------------------------------------------------------------------------


def test_compiled_python_and_tool_caches_stay_in_the_workspace(world: World) -> None:
    """Only the deletion of a whole cache is a change."""
    for cache in ("__pycache__", ".mypy_cache"):
        (world.project / cache).mkdir()
        (world.project / cache / "old").write_text("x")
    found = world.does(
        "echo x > __pycache__/m.pyc; rm __pycache__/old; mkdir -p sub/.pytest_cache; echo x > sub/.pytest_cache/v",
        "rm -r .mypy_cache; echo x > lone.pyc",
    )
    assert {one.path.removeprefix(f"{world.project}/") for one in found.changes} == {
        ".mypy_cache", ".mypy_cache/old", "sub",
    }  # fmt: skip


def test_what_ends_as_it_began_is_no_change(either: World) -> None:
    """A file that was changed and restored, made and removed, or opened for writing only."""
    (either.project / "f").write_text("same")
    seconds, rest = divmod(os.stat(either.project / "f").st_mtime_ns, 10**9)  # a float would round the nanoseconds
    found = either.does(
        f"t=$(mktemp); cp -p f $t; echo x > f; cp -p $t f; touch -d @{seconds}.{rest:09} f",
        "echo x > new; rm new; mkdir d; rmdir d; : >> f; chmod 600 f; chmod 644 f",
    )
    assert found.empty or {one.kind for one in found.changes} == {ChangeKind.METADATA}


def test_a_directory_that_was_made_anew_loses_what_it_held(world: World) -> None:
    """Each file of the old one is named, in the call's changes too."""
    (world.project / "d" / "sub").mkdir(parents=True)
    for name in ("d/a", "d/b", "d/sub/c"):
        (world.project / name).write_text(name)
    world.does("rm -r d; mkdir d; echo new > d/a")
    assert world.classes() == {
        "project/d/a": "edit",
        "project/d/b": "deletion",
        "project/d/sub": "deletion",
        "project/d/sub/c": "deletion",
    }


def test_a_moved_directory_loses_nothing(world: World) -> None:
    """Old paths are told with where their content is now."""
    (world.project / "d").mkdir()
    (world.project / "d" / "a").write_text("content")
    found = world.does("mv d e")
    moved = {one.path: one.moved_to for one in found.classes if one.moved_to}
    assert moved == {f"{world.project}/d": f"{world.project}/e", f"{world.project}/d/a": f"{world.project}/e/a"}


def test_names_that_are_no_text_arrive_unchanged(either: World) -> None:
    """Any bytes but / and NUL make a name; the printable path gives them back."""
    names = [b"\xff\xfe", b"a\nb", b"\\x41", "ü\u202e".encode(), b" ", b"-rf", b"x" * 255]
    script = "; ".join("printf x > ./$'" + "".join(f"\\x{byte:02x}" for byte in name) + "'" for name in names)
    found = either.does(script)
    assert {one.path for one in found.changes} == {
        printable_path(os.fsencode(either.project) + b"/" + name) for name in names
    }


def test_what_a_command_closed_to_its_owner_is_read(world: World) -> None:
    """Modes stay the task's, also for a plain user."""
    found = world.does("mkdir d; echo x > d/f; chmod 000 d/f d")
    modes = {effect.shown.rpartition("/")[2]: effect.after.mode for effect in found.effects if effect.after}
    assert modes == {"d": 0o000, "f": 0o000}
    assert world.change_set().digest == found.digest


def test_too_many_and_too_deep_is_refused(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    """A bound that is met is an error, never a part of the truth."""
    world.does("for i in $(seq 30); do echo x > $i; done", "mkdir -p $(python3 -c 'print(\"d/\" * 12)')")
    monkeypatch.setattr(tree, "MOST_PATHS", 20)
    with pytest.raises(SandboxError, match="more than 20 paths"):
        world.change_set()
    monkeypatch.setattr(tree, "MOST_PATHS", 1_000)
    monkeypatch.setattr(tree, "DEEPEST", 10)
    with pytest.raises(SandboxError, match="deeper than 10"):
        world.change_set()


def test_the_digest_binds_what_is_new_and_what_is_replaced(world: World) -> None:
    """Another content on either side is another change set."""
    (world.project / "f").write_text("old")
    first = world.does("echo x > f").digest
    second = world.does("echo y > f").digest
    assert first != second != world.does("echo y > f; echo z > g").digest


def test_git_decides_about_its_own_files(world: World) -> None:
    """What it takes is no file change and no conflict; what it says of others counts."""
    world.does("mkdir -p .git/objects; echo x > .git/objects/x; echo y > .git/config; echo z > f")

    def judge(question: GitQuestion) -> GitPart:
        assert question.judge_path(os.fsencode(world.project / "x.sh"), 0o100755, False, b"")[0].value == "mode"
        assert question.judge_path(os.fsencode(world.project / "x"), 0o120000, False, b"/etc")[0].value == "link"
        assert question.judge_path(os.fsencode(world.project / "x"), 0o100644, True, b"")[0].value == "edit"
        taken = frozenset(one.path for one in question.effects if b"objects" in one.path)
        config = os.fsencode(world.project / ".git" / "config")
        return GitPart(taken, {config: Verdict(ChangeClass.HISTORY, "because")}, digest="git")

    found = read_change_set(world.directory(), world.artoo_home, judge_git=judge)
    reasons = {one.path.removeprefix(f"{world.project}/"): one.reason for one in found.classes}
    assert set(reasons) == {".git", ".git/config", "f"}
    assert reasons[".git/config"] == "because"
    assert found.digest != world.change_set().digest


# --- The user's own changes --------------------------------------------------------------------------------------


def test_what_both_changed_is_a_conflict_and_the_rest_can_be_applied(either: World) -> None:
    """The user's version stays, whatever the user did; equal results are no conflict."""
    for name in ("edited", "deleted", "mode", "same", "mine"):
        (either.project / name).write_text("old")
    either.does("for f in edited deleted mode same mine; do echo task > $f; done; echo task > made; echo ok > new")
    (either.project / "edited").write_text("user")
    (either.project / "deleted").unlink()
    (either.project / "mode").chmod(0o600)
    (either.project / "same").write_text("task\n")
    (either.project / "made").write_text("user")
    found = either.change_set()
    assert below(either, {one.path for one in found.conflicts}) == {"edited", "deleted", "mode", "made"}
    assert below(either, {one.path for one in found.changes if one.kind is not ChangeKind.METADATA}) == {
        "mine",
        "new",
    }


def test_a_conflict_holds_what_cannot_be_without_it(world: World) -> None:
    """A directory with a conflict is not deleted, and a file whose new place is one keeps its old place."""
    (world.project / "d").mkdir()
    (world.project / "d" / "f").write_text("old")
    (world.project / "moved").write_text("content")
    world.does("rm -r d; mv moved target")
    (world.project / "d" / "f").write_text("user")
    (world.project / "target").write_text("user")
    found = world.change_set()
    assert below(world, {one.path for one in found.conflicts}) == {"d", "d/f", "moved", "target"}
    assert not found.effects


def test_a_new_file_needs_its_directory(world: World) -> None:
    """If the user removed the directory meanwhile, the file is in conflict."""
    (world.project / "d").mkdir()
    world.does("echo x > d/new; chmod 700 d")
    (world.project / "d").rmdir()
    assert below(world, {one.path for one in world.change_set().conflicts}) == {"d", "d/new"}


def test_a_file_that_changed_while_a_command_ran_is_a_conflict(world: World) -> None:
    """Nobody knows which version the command saw."""
    (world.project / "f").write_text("old")

    async def work() -> None:
        async with world.task() as task:
            await task.says("true")
            (world.project / "f").write_text("user")  # as if while the next command runs
            await task.says("echo task >> f")

    asyncio.run(work())
    assert [one.reason for one in world.change_set().conflicts] == [
        "it was changed while a command of the task ran that changes it too"
    ]


def test_artoos_own_files_are_never_changed(world: World) -> None:
    """They are not there for commands; what gets there anyway is a conflict."""
    ended = world.does(f"mkdir -p {world.artoo_home}/x || true")
    assert not ended.effects
