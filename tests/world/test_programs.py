"""Programs and modules of artoo's own: none comes from where a task may have put it."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

import artoo
from artoo.ports.sandbox import Roots
from artoo.runtime.projects import project_name
from artoo.world.bubblewrap import find_bubblewrap
from artoo.world.git_shadow import Shadow
from artoo.world.open_settings import harmless_settings
from artoo.world.programs import find_program, own_environment, own_python, search_path, worked_in

SOURCE = Path(artoo.__file__).parent


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
    """Settings, history, the name of a project, and the sandbox itself."""
    roots = roots_of(planted)
    (roots.home / ".gitconfig").write_text("[user]\n\tname = A\n")
    subprocess.run(["/usr/bin/git", "init", "-q", str(planted)], check=True)
    assert f"{roots.home}/.gitconfig" in harmless_settings(str(roots.home), roots)
    assert Shadow(planted / ".git", worked_in(roots)).refs() == {}
    assert project_name(planted) == str(planted)
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


def test_every_program_of_artoos_own_is_looked_up_in_one_place() -> None:
    """No other module looks along PATH, starts a program by its bare name, or starts this Python as it comes."""
    wrong: list[str] = []
    for file in SOURCE.rglob("*.py"):
        text, name = file.read_text(encoding="utf-8"), str(file.relative_to(SOURCE))
        if name != "world/programs.py" and "shutil.which" in text:
            wrong.append(f"{name}: shutil.which")
        started = re.findall(r"[(\[]sys\.executable,\s*(\S+?),?\s", text)
        wrong += [f"{name}: python {first}" for first in started if first not in ('"-I"', '"-P"')]
        call = r"(?:subprocess\.\w+|Popen|create_subprocess_exec)\(\s*[\[(]*\"([\w.-]+)\""
        wrong += [f"{name}: {program}" for program in re.findall(call, text)]
    assert wrong == []
    assert own_python("x") == (sys.executable, "-P", "x")
