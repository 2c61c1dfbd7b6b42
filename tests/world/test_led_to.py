"""What the person's own links lead to is what their names say: start-up files, hooks, settings."""

from __future__ import annotations

from pathlib import Path

import pytest
from git_scenes import run
from layers import view_of
from sandbox_world import World

from artoo.contracts.changes import PathClass
from artoo.contracts.settling import ChangeClass
from artoo.world.classify import Places
from artoo.world.difference import difference_of


def loud(world: World, script: str) -> list[str]:
    """What a task with this script would need consent for as persistence, by its path in the project."""
    found = difference_of(view_of(world, lambda home: run(home / "project", script)), world.artoo_home)
    return [
        str(Path(one.path).relative_to(world.project))
        for one in found.classes
        if one.change_class is ChangeClass.PERSISTENCE
    ]


@pytest.mark.parametrize(
    ("prepared", "script", "path"),
    [
        ("ln -s project/bashrc ../.bashrc; echo x > bashrc", "echo y >> bashrc", "bashrc"),
        ("ln -s project/aliases ../.bash_aliases", "echo y > aliases", "aliases"),
        (
            "mkdir fish; mkdir ../.config; ln -s ../project/fish ../.config/fish",
            "echo y > fish/z.fish",
            "fish/z.fish",
        ),
        ("mkdir ../.config ../.config/git; ln -s ../../project/g ../.config/git/config", "echo y > g", "g"),
        ("mkdir config config/fish; ln -s project/config ../.config", "echo y > config/fish/f", "config/fish/f"),
        ("mkdir ssh; ln -s project/ssh ../.ssh", "echo key > ssh/authorized_keys", "ssh/authorized_keys"),
        ("mkdir ../.ssh; ln -s ../project/keys ../.ssh/authorized_keys", "echo key > keys", "keys"),
        ("ln -s one ../.profile; ln -s project/two ../one", "echo x > two", "two"),
        ("ln -s project/one ../.profile; ln -s two one", "echo x > three; ln -sf three one", "one"),
        ("mkdir editor; ln -s editor .vscode", "echo {} > editor/settings.json", "editor/settings.json"),
        ("mkdir .github ci; ln -s ../ci .github/workflows", "echo x > ci/new.yml", "ci/new.yml"),
        ("ln -s guide.md AGENTS.md", "echo x > guide.md", "guide.md"),
        ("git init -q; rm -r .git/hooks; mkdir h; ln -s ../h .git/hooks", "echo x > h/pre-commit", "h/pre-commit"),
        ("git init -q; ln -s ../../made .git/hooks/pre-commit", "echo x > made", "made"),
        ("git init -q; mv .git/config c; ln -s ../c .git/config", "git config -f c core.pager ./x", "c"),
    ],
)
def test_what_sensitive_names_lead_to_needs_consent(world: World, prepared: str, script: str, path: str) -> None:
    """Whoever writes there writes under these names."""
    run(world.project, prepared)
    assert loud(world, script) == [path]


@pytest.mark.parametrize(
    "prepared",
    [
        "ln -s project ../.dotfiles",
        "ln -s .. ../.self; ln -s / ../.root; ln -s .. .vscode",
        "ln -s ../loop ../.bashrc; ln -s .bashrc ../loop; ln -s nowhere/at/all ../.zshrc",
        "mkdir -p ../.local/bin; touch tool; ln -s ../../project/tool ../.local/bin/tool",
        "mkdir -p .venv/lib; ln -s lib .venv/lib64; ln -s src link; mkdir src",
    ],
)
def test_other_links_say_nothing(world: World, prepared: str) -> None:
    """A project that a link leads to as a whole, circles, programs under work, ordinary links."""
    run(world.project, prepared)
    assert (
        loud(world, "echo x > new; mkdir -p src .venv/lib; echo x > src/new; echo x > .venv/lib/m; echo y > tool")
        == []
    )


def test_what_a_closed_name_leads_to_stays_open_to_read(world: World) -> None:
    """A project is the task's to read; writing there is what a name decides."""
    run(world.project, "mkdir ssh; echo x > ssh/config; ln -s project/ssh ../.ssh")
    places = Places.of(world.roots, world.artoo_home)
    path = bytes(world.project / "ssh/config")
    assert places.classify(path) is PathClass.SECRET
    assert not places.is_closed(path)
