"""What is built can be installed: the program, the types' mark, and every file that is read at run time."""

from __future__ import annotations

import os
import subprocess
import sys
import tarfile
import zipfile
from email.parser import Parser
from pathlib import Path

ROOT = Path(__file__).parents[2]
SOURCE = ROOT / "src"


def test_the_wheel_has_the_program_and_all_that_it_reads(tmp_path: Path) -> None:
    """Built without a network; unpacked somewhere else it runs, and nothing of the sources is missing in it."""
    build = [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(tmp_path)]
    subprocess.run(build, cwd=ROOT, check=True, capture_output=True)
    [wheel] = tmp_path.glob("artoo-*.whl")
    with zipfile.ZipFile(wheel) as archive:
        names = set(archive.namelist())
        archive.extractall(tmp_path / "site")
    about = next(name for name in names if name.endswith(".dist-info/METADATA"))
    folder = about.rpartition("/")[0]
    assert "artoo = artoo.cli.start:main" in (tmp_path / "site" / folder / "entry_points.txt").read_text()
    metadata = Parser().parsestr((tmp_path / "site" / about).read_text(encoding="utf-8"))
    assert metadata["Requires-Python"] and metadata["License-Expression"] and metadata.get_payload()
    wanted = {
        path.relative_to(SOURCE).as_posix()
        for path in (SOURCE / "artoo").rglob("*")
        if path.is_file() and "__pycache__" not in path.parts
    }
    assert wanted <= names, wanted - names
    assert "artoo/py.typed" in names
    environ = {**os.environ, "PYTHONPATH": str(tmp_path / "site"), "ARTOO_HOME": str(tmp_path / "home")}
    program = (
        "import artoo, sys; from artoo.cli.main import main; print(artoo.__file__); sys.exit(main(['--help']))"
    )
    ran = subprocess.run([sys.executable, "-c", program], env=environ, capture_output=True, text=True, check=True)
    assert ran.stdout.startswith(str(tmp_path / "site")) and "Tasks:" in ran.stdout


def test_an_sdist_makes_the_same_wheel_with_the_commit(tmp_path: Path) -> None:
    """`uv tool install` of a source distribution builds it without git; `artoo --version` names the commit."""
    build = [sys.executable, "-m", "hatchling", "build", "-d", str(tmp_path)]
    subprocess.run([*build, "-t", "sdist"], cwd=ROOT, check=True, capture_output=True)
    [sdist] = tmp_path.glob("artoo-*.tar.gz")
    with tarfile.open(sdist) as archive:
        archive.extractall(tmp_path / "tree", filter="data")
    [tree] = (tmp_path / "tree").iterdir()
    subprocess.run([*build, "-t", "wheel"], cwd=tree, check=True, capture_output=True)
    [wheel] = tmp_path.glob("artoo-*.whl")
    head = subprocess.run(["git", "rev-parse", "HEAD"], cwd=ROOT, check=False, capture_output=True, text=True)
    with zipfile.ZipFile(wheel) as archive:
        archive.extractall(tmp_path / "site")
    if head.returncode == 0:
        assert (tmp_path / "site" / "artoo" / "commit.txt").read_text() == head.stdout.strip()
    program = "import sys; from artoo.cli.main import main; sys.exit(main(['--version']))"
    environ = {**os.environ, "PYTHONPATH": str(tmp_path / "site")}
    ran = subprocess.run([sys.executable, "-c", program], env=environ, capture_output=True, text=True, check=True)
    assert head.stdout[:12] in ran.stdout
