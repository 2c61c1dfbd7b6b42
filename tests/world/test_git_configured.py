"""Files that git's settings name, however they name them and wherever the settings are."""

from __future__ import annotations

import pytest
from git_scenes import run
from layers import view_of
from sandbox_world import World

from artoo.contracts.settling import ChangeClass
from artoo.world.difference import difference_of


def persistent(world: World, script: str) -> list[str]:
    """What a task with this script would need consent for as persistence, by its path in the home."""
    found = difference_of(view_of(world, lambda home: run(home / "project", script)), world.artoo_home)
    loud = (one for one in found.classes if one.change_class is ChangeClass.PERSISTENCE)
    return [one.path.removeprefix(f"{world.home}/") for one in loud]


@pytest.fixture
def repository(world: World) -> World:
    run(world.project, "git init -q; mkdir tools; echo x > tools/x.sh; echo x > runme")
    return world


@pytest.mark.parametrize(
    ("key", "value", "path"),
    [
        ("alias.st", "!./tools/x.sh", "tools/x.sh"),
        ("alias.st", "!f() { ./tools/x.sh; }; f", "tools/x.sh"),
        ("alias.st", "!cd tools && ./x.sh", "tools/x.sh"),
        ("alias.st", '!sh -c "cd tools; ./x.sh"', "tools/x.sh"),
        ("alias.st", '!sh -c "./tools/x.sh; true"', "tools/x.sh"),
        ("alias.st", '!sh -c "sh runme; true"', "runme"),
        ("alias.st", '!sh "$GIT_PREFIX"tools/x.sh', "tools/x.sh"),
        ("alias.st", "!exec $(git rev-parse --show-toplevel)/tools/x.sh", "tools/x.sh"),
        ("alias.st", "!`git rev-parse --show-toplevel`/tools/x.sh", "tools/x.sh"),
        ("core.sshCommand", "ssh -Ftools/x.sh", "tools/x.sh"),
        ("core.pager", "less --lesskey-file=tools/x.sh", "tools/x.sh"),
        ("core.editor", "env VISUAL=tools/x.sh vi", "tools/x.sh"),
    ],
)
def test_what_a_command_names_between_punctuation_needs_consent(
    repository: World, key: str, value: str, path: str
) -> None:
    """git hands it to a shell, which cuts its words in more ways than at blanks."""
    run(repository.project, f"git config {key} '{value}'")
    assert persistent(repository, f"echo evil >> {path}") == [f"project/{path}"]


@pytest.mark.parametrize(
    "value",
    [
        "!git log --oneline | head",
        "!f() { git log docs; }; f",
        '!git commit -m "wip" && cd $HOME',
        "log --format='%h docs'",
    ],
)
def test_words_of_commands_are_no_paths_of_new_files(repository: World, value: str) -> None:
    """An alias that says what programs are called makes nothing of other files."""
    run(
        repository.project, f"git config alias.a {value!r}" if "'" not in value else f'git config alias.a "{value}"'
    )
    assert (
        persistent(repository, "mkdir src docs; echo x > src/main.py; echo x > docs/notes.md; echo x > new") == []
    )


@pytest.mark.parametrize(
    "value",
    [
        "log --oneline tools",
        "!git grep -n TODO -- tools runme | head -3",
        "!f() { git log tools; }; f",
        "!git diff --stat tools && git status tools",
    ],
)
def test_a_directory_that_git_is_given_starts_nothing(repository: World, value: str) -> None:
    """To search it, or to list its commits, is no reason to ask about every edit in it."""
    run(repository.project, f"git config alias.a '{value}'")
    assert persistent(repository, "echo more >> tools/x.sh; echo x > tools/new") == []


@pytest.mark.parametrize(
    "value",
    [
        "!git -C tools status",
        "!make -f tools/x.sh && git log tools",
        'rebase --exec "sh tools/x.sh" main',
        "bisect run ./tools/x.sh",
        "!run-parts tools | git log",
    ],
)
def test_what_git_is_given_to_start_needs_consent(repository: World, value: str) -> None:
    """In an option, in quotes, as a file, or by another command than git."""
    run(repository.project, f"git config alias.a '{value}'")
    assert persistent(repository, "echo more >> tools/x.sh") == ["project/tools/x.sh"]


def test_a_template_of_messages_starts_nothing(repository: World) -> None:
    run(repository.project, "git config commit.template runme")
    assert persistent(repository, "echo more >> runme") == []


@pytest.mark.parametrize(
    "variable", ["XDG_CONFIG_HOME", "GIT_CONFIG_GLOBAL", "GIT_CONFIG_SYSTEM", "GIT_CONFIG_COUNT"]
)
def test_settings_hold_wherever_the_person_keeps_them(
    repository: World, monkeypatch: pytest.MonkeyPatch, variable: str
) -> None:
    """git would look for hooks there when the person uses it."""
    place = repository.home / "kept"
    (place / "git").mkdir(parents=True)
    (place / "git/config").write_text("[core]\n\thooksPath = tools\n")
    monkeypatch.setenv(
        variable, {"XDG_CONFIG_HOME": str(place), "GIT_CONFIG_COUNT": "1"}.get(variable, f"{place}/git/config")
    )
    monkeypatch.setenv("GIT_CONFIG_KEY_0", "core.hooksPath")
    monkeypatch.setenv("GIT_CONFIG_VALUE_0", "tools")
    assert persistent(repository, "echo evil > tools/pre-commit") == ["project/tools/pre-commit"]


def test_settings_in_the_project_are_persistence(repository: World, monkeypatch: pytest.MonkeyPatch) -> None:
    """A file of settings is one wherever it lies, also where there is none yet."""
    monkeypatch.setenv("GIT_CONFIG_GLOBAL", str(repository.project / "mine"))
    assert persistent(repository, "printf '[core]\\n\\tpager = ./x\\n' > mine") == ["project/mine"]


@pytest.mark.parametrize("linked", [False, True])
def test_links_among_hooks_of_inner_repositories_are_followed(world: World, linked: bool) -> None:
    """A repository below the project has hooks too, and its worktrees have the same."""
    run(world.project, "git init -q inner; cd inner; git commit -q --allow-empty -m one; mkdir ../scripts")
    run(world.project, "ln -s ../../../scripts/check inner/.git/hooks/pre-commit")
    if linked:
        run(world.project, "git -C inner worktree add -q ../other")
    at = "other" if linked else "inner"
    assert persistent(world, f"echo x > scripts/check; echo x > {at}/new") == ["project/scripts/check"]
