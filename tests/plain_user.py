"""Runs tests again as a user without root's rights."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

import artoo
from artoo.sandbox.remove_tree import remove_tree


def as_plain_user(*files: Path, only: str = "") -> None:
    """Run tests of files (`only`: pytest's -k) as a user without rights; skip where this is one, or cannot be."""
    python = f"/usr/bin/python{sys.version_info[0]}.{sys.version_info[1]}"
    if os.geteuid() != 0:
        pytest.skip("this is a plain user already")
    if not os.access(python, os.X_OK):
        pytest.skip(f"a plain user can start no {python}")
    root = Path(__file__).parents[1]
    place = Path(tempfile.mkdtemp(prefix="artoo-plain-"))
    os.chown(place, 65534, 65534)
    library = next(path for path in sys.path if path.endswith("site-packages"))
    source = str(Path(artoo.__file__).parents[1])
    environment = {
        "PATH": os.defpath,
        "HOME": str(place),
        "PYTHONPATH": os.pathsep.join((source, str(root), library)),
        "PYTHONDONTWRITEBYTECODE": "1",
    }
    options = ("-q", "-x", "-n0", "-p", "no:cacheprovider", f"--basetemp={place}/tests", "-k", only)
    done = subprocess.run(
        ("setpriv", "--reuid=65534", "--regid=65534", "--clear-groups", python, "-m", "pytest", *options, *files),
        env=environment,
        cwd=root,
        capture_output=True,
        text=True,
        timeout=170,
        check=False,
    )
    remove_tree(place)
    assert done.returncode == 0, done.stdout[-3000:] + done.stderr[-1000:]
