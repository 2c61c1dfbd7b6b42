"""Programs and modules that artoo starts for itself never come from where a task may have put them."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from artoo.ports.sandbox import Roots
from artoo.sandbox.backends.bubblewrap import find_bubblewrap
from artoo.sandbox.reading.environment import cleaned
from artoo.sandbox.reading.programs import (
    find_program,
    own_environment,
    own_python,
    search_path,
    this_python,
    worked_in,
)
from artoo.sandbox.reading.readable_settings import lay_git_extract, open_settings


@pytest.fixture
def planted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A project whose environment is active, with programs that leave a mark when they are started."""
    programs = tmp_path / "home" / "project" / ".venv" / "bin"
    programs.mkdir(parents=True)
    for name in ("git", "bwrap", "only-here"):
        (programs / name).write_text(f"#!/bin/sh\necho {name} >> {tmp_path}/ran\nexit 1\n")
        (programs / name).chmod(0o755)
    monkeypatch.setenv("PATH", f"{programs}:relative/bin::.:{os.environ['PATH']}")
    return programs.parent.parent


def roots_of(project: Path) -> Roots:
    return Roots(project.parent, project.parent / "artoo_workspace", project)


def test_no_program_comes_from_a_project(planted: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Neither from the task's own places nor from where artoo was started, nor by way of a link."""
    apart = worked_in(roots_of(planted))
    assert find_program("git") == str(planted / ".venv" / "bin" / "git")
    found = find_program("git", apart)
    assert found is not None and not found.startswith(str(planted)) and os.path.isabs(found)
    assert find_program("only-here", apart) is None
    elsewhere = planted.parent / "linked"
    elsewhere.mkdir()
    (elsewhere / "only-here").symlink_to(planted / ".venv" / "bin" / "only-here")
    monkeypatch.setenv("PATH", str(elsewhere))
    assert find_program("only-here", apart) is None
    monkeypatch.setenv("PATH", f"{planted}/.venv/bin:relative::/usr/bin")
    assert search_path(apart) == "/usr/bin"
    monkeypatch.chdir(planted)
    assert search_path() == "/usr/bin" and find_program("git") == "/usr/bin/git"


def test_a_home_as_project_keeps_its_programs(planted: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Who works in the home itself has programs there, and a task makes none of them unasked."""
    home = planted.parent
    monkeypatch.setenv("HOME", str(home))
    monkeypatch.chdir(home)
    roots = Roots(home, home / "artoo_workspace", home)
    assert worked_in(roots) == (str(home / "artoo_workspace"),)
    assert find_program("only-here", worked_in(roots)) == str(planted / ".venv" / "bin" / "only-here")


def test_git_and_bubblewrap_are_not_the_projects(planted: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Neither for reading settings nor for the sandbox itself."""
    roots = roots_of(planted)
    (roots.home / ".gitconfig").write_text("[user]\n\tname = A\n[credential]\n\thelper = store\n")
    subprocess.run(["/usr/bin/git", "init", "-q", str(planted)], check=True)
    (roots.home / "scratch").mkdir()
    assert lay_git_extract(roots, roots.home / "scratch", "/tmp")
    monkeypatch.chdir(planted)
    assert not [one for one in find_bubblewrap() if one.is_relative_to(planted)]
    assert not (planted.parent.parent / "ran").exists()


def test_own_python_takes_no_module_from_where_it_is_started(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nor through an empty entry of PYTHONPATH; what that names in words stays."""
    (tmp_path / "random.py").write_text("raise SystemExit('the project ran')")
    (tmp_path / "lib").mkdir()
    (tmp_path / "lib" / "wanted_here.py").write_text("")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PYTHONPATH", f"lib:{os.environ.get('PYTHONPATH', '')}:")
    start = own_python("-c", "import random, wanted_here")
    subprocess.run(start, env=own_environment(), check=True)
    (tmp_path / "elsewhere").mkdir()
    monkeypatch.setenv("PYTHONPATH", ":")
    assert "PYTHONPATH" not in own_environment()


def test_this_python_is_found_when_the_path_is_relative(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """It was started as `.venv/bin/python`, and later works in another directory."""
    monkeypatch.setattr(sys, "executable", os.path.relpath(sys.executable))
    monkeypatch.chdir(tmp_path)
    assert subprocess.run((this_python(), "-c", "print(6 * 7)"), capture_output=True, check=True).stdout == b"42\n"


def test_a_command_gets_the_harmless_part_of_settings(tmp_path: Path) -> None:
    """A name for commits keeps its letters; a credential helper and whatever has an address stays out."""
    settings = "[user]\n\tname = Ünal 王\n\temail = u@example.org\n[credential]\n\thelper = store\n"
    (tmp_path / ".gitconfig").write_text(settings, encoding="utf-8")
    scratch = tmp_path / "scratch"
    scratch.mkdir()
    roots = Roots(tmp_path, tmp_path / "workspace", tmp_path / "project")
    assert lay_git_extract(roots, scratch, "/tmp") == {"GIT_CONFIG_GLOBAL": "/tmp/.gitconfig"}
    extract = (scratch / ".gitconfig").read_text(encoding="utf-8")
    assert "Ünal 王" in extract and "helper" not in extract


def test_harmless_settings_are_open_as_they_are(tmp_path: Path) -> None:
    """Then what `git config --global` changes is a change of the task, and not of a file that nobody keeps."""
    (tmp_path / ".gitconfig").write_text("[user]\n\tname = A\n", encoding="utf-8")
    roots = Roots(tmp_path, tmp_path / "workspace", tmp_path / "project")
    assert lay_git_extract(roots, tmp_path, "/tmp") == {}
    assert f"{tmp_path}/.gitconfig" in open_settings(str(tmp_path), roots)
    (tmp_path / ".gitconfig").write_text("[http]\n\textraHeader = Authorization: x\n", encoding="utf-8")
    assert f"{tmp_path}/.gitconfig" not in open_settings(str(tmp_path), roots)


def test_variables_pass_by_an_allow_list(tmp_path: Path) -> None:
    """Known names without a credential pass; a policy or an approval lets others through."""
    secret = "ghp_" + "a1B2c3D4e5F6g7H8i9J0k1L2m3N4o5P6q7R8"
    outer = {"LANG": "C", "MYSQL_PWD": "x", "PIP_INDEX_URL": "https://u:p@host/", "EDITOR": secret, "TOKEN": "t"}
    roots = Roots(tmp_path, tmp_path / "workspace", tmp_path)
    env = cleaned(outer, roots)
    assert (env["LANG"], env["HOME"]) == ("C", str(tmp_path))
    assert not {"MYSQL_PWD", "PIP_INDEX_URL", "EDITOR", "TOKEN"} & env.keys()
    assert cleaned(outer, roots, {"TOKEN"})["TOKEN"] == "t"
