"""Names of projects that mean the same on every machine."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from artoo.contracts.errors import ConfigurationError
from artoo.runtime.app.machine_name import FILE, machine_name
from artoo.runtime.cluster.project_names import Projects, project_name, remote_name


@pytest.mark.parametrize(
    ("url", "name"),
    [
        ("https://github.com/team/site.git", "github.com/team/site"),
        ("https://me:token@GitHub.com/team/site/", "github.com/team/site"),
        ("git@github.com:team/site.git", "github.com/team/site"),
        ("ssh://git@github.com:2222/team/site", "github.com/team/site"),
        ("../elsewhere", ""),
        ("/srv/site.git", ""),
        ("https://[broken/team/site", ""),
        ("", ""),
    ],
)
def test_a_remote_is_named_by_host_and_path(url: str, name: str) -> None:
    """However it was cloned, and without user, password or port; what is no other machine's has no name."""
    assert remote_name(url) == name


def test_an_address_that_is_no_text_is_a_projects_all_the_same(tmp_path: Path) -> None:
    """Git keeps whatever bytes a path has: they ended the server that asked for the project's name."""
    subprocess.run(["git", "init", "-q", str(tmp_path)], check=True)
    subprocess.run(
        ["git", "-C", str(tmp_path), "remote", "add", "origin", b"git@example.org:h\xe9.git"], check=True
    )
    assert project_name(tmp_path).startswith("example.org/h")


def test_a_declared_project_is_found_and_another_is_not(tmp_path: Path) -> None:
    """A directory without a remote goes by its path; what is not declared is refused with what to do."""
    projects = Projects.declared([tmp_path])
    assert projects.place(projects.name(tmp_path)) == tmp_path
    with pytest.raises(ConfigurationError, match="name its directory"):
        projects.place("git.example.org/site")
    with pytest.raises(ConfigurationError, match="no directory"):
        Projects.declared([tmp_path / "gone"])


def test_a_home_keeps_its_name(tmp_path: Path) -> None:
    """The key is made once; a file that holds none is named."""
    assert machine_name(tmp_path) == machine_name(tmp_path)
    (tmp_path / FILE).write_text("nonsense")
    with pytest.raises(ConfigurationError, match="no key"):
        machine_name(tmp_path)
