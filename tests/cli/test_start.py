"""Where artoo's own modules come from: nothing of a project, and nothing that lies beside its program."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from cli_terminal import CTRL_D, terminal

ROOT = Path(__file__).parent.parent.parent
PLANTED = ("random", "queue", "colorsys", "typing", "__future__", "asyncio", "click", "pydantic")
"""Names that artoo or a library of its imports."""


def plant(directory: Path, mark: Path) -> None:
    """Modules that say that they ran."""
    directory.mkdir(parents=True, exist_ok=True)
    for name in PLANTED:
        (directory / f"{name}.py").write_text(f"open({str(mark)!r}, 'a').write('{name} ')\n")


def status(start: list[str], project: Path, home: Path, **environ: str) -> subprocess.CompletedProcess[str]:
    given = {**os.environ, "ARTOO_HOME": str(home), **environ}
    return subprocess.run([*start, "status"], cwd=project, env=given, capture_output=True, text=True, check=False)


def test_with_m_nothing_of_the_project_runs(tmp_path: Path) -> None:
    """`python -m artoo` puts the current directory first, and takes nothing of it."""
    project, mark = tmp_path / "project", tmp_path / "ran"
    plant(project, mark)
    done = status([sys.executable, "-m", "artoo"], project, tmp_path / "home")
    assert done.returncode == 0, done.stderr
    assert not mark.exists() and sorted(one.name for one in project.iterdir()) == sorted(
        f"{name}.py" for name in PLANTED
    )


def test_an_interrupt_while_modules_are_loaded_is_an_ending(tmp_path: Path) -> None:
    """Ctrl-C in the first tenth of a second: a traceback said where the imports stood."""
    (tmp_path / "interrupted.py").write_text(
        "import sys\n"
        "from importlib.abc import MetaPathFinder\n"
        "class Pressed(MetaPathFinder):\n"
        "    def find_spec(self, name, path, target=None):\n"
        "        if name == 'artoo.cli.main': raise KeyboardInterrupt\n"
        "sys.meta_path.insert(0, Pressed())\n"
        "from artoo.cli.start import main\n"
        "sys.exit(main())\n"
    )
    done = status([sys.executable, str(tmp_path / "interrupted.py")], tmp_path, tmp_path / "home")
    assert (done.returncode, done.stderr) == (130, "")


def test_nothing_that_lies_beside_the_program_runs(tmp_path: Path) -> None:
    """The installed program's directory is where Python looks first: an environment of the project's, say. An empty
    entry of PYTHONPATH is the project."""
    programs, project, mark = tmp_path / "bin", tmp_path / "project", tmp_path / "ran"
    plant(programs, mark)
    plant(project, mark)
    (programs / "artoo").write_text("import sys\nfrom artoo.cli.start import main\nsys.exit(main())\n")
    path = f"{ROOT / 'src'}:"
    done = status([sys.executable, str(programs / "artoo")], project, tmp_path / "home", PYTHONPATH=path)
    assert done.returncode == 0, done.stderr
    assert not mark.exists()


def test_sources_that_nobody_installed_run_where_they_lie(tmp_path: Path) -> None:
    """From the directory that holds the package, it is found there."""
    environ = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    start = [sys.executable, "-m", "artoo", "status"]
    home = {"ARTOO_HOME": str(tmp_path / "home")}
    done = subprocess.run(start, cwd=ROOT / "src", env=environ | home, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


def test_a_slash_command_runs_nothing_of_the_project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It is another artoo, started where the person stands, with the person's rights and keys."""
    project, mark = tmp_path / "project", tmp_path / "ran"
    project.mkdir()
    monkeypatch.chdir(project)
    with terminal("accepted", [], tmp_path) as screen:
        screen.wait_for("artoo>")
        plant(project, mark)  # what a task of this conversation made
        screen.send("/status\r")
        screen.wait_for("no pending changes")
        screen.wait_for_prompt()
        screen.send(CTRL_D)
        assert screen.end() == 0
    assert not mark.exists() and not (project / "__pycache__").exists()
