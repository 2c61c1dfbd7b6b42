"""The edge of every backend, attacked from inside, as root and as a plain user."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path

import pytest

from plain_user import PLAIN_USER

_HERE = Path(__file__).parent
_DEVICES = {f"device {where}" for where in ("in the home", "in the project", "outside")}
_NOT_CLOSED = {("landlock", "root"): _DEVICES}
"""Without a mount namespace nothing keeps root from reading a device that root has put among documents."""


@contextmanager
def _place() -> Generator[Path]:
    """A directory that no private /tmp covers, and that a plain user can reach."""
    fit = [path for path in (_HERE.parents[1], Path("/opt"), Path("/srv")) if _is_fit(path)]
    if not fit:
        pytest.skip("these tests lie below /tmp, and no other place can be written")
    place = Path(tempfile.mkdtemp(prefix=".escape-", dir=fit[0]))
    try:
        place.chmod(0o755)
        yield place
    finally:
        shutil.rmtree(place, ignore_errors=True)


def _is_fit(path: Path) -> bool:
    return os.access(path, os.W_OK) and not path.is_relative_to("/tmp") and not path.is_relative_to("/var/tmp")


@pytest.mark.parametrize("number", range(3))
@pytest.mark.parametrize("user", ["root", "plain"] if os.geteuid() == 0 else ["plain"])
def test_nothing_gets_out(number: int, user: str) -> None:
    """No file, pipe, socket, device, process or setting outside the workspace is written or heard."""
    library = next(path for path in sys.path if path.endswith("site-packages"))
    path = os.pathsep.join((str(_HERE), str(_HERE.parent), str(_HERE.parents[1] / "src"), library))
    other = PLAIN_USER if user == "plain" and os.geteuid() == 0 else None
    with _place() as place:
        if other is not None:
            os.chown(place, other, other)
        done = subprocess.run(
            ("/usr/bin/python3", str(_HERE / "escape_victim.py"), str(number), str(place)),
            env={
                "PATH": os.defpath,
                "HOME": str(place / "home"),
                "PYTHONPATH": path,
                "PYTHONDONTWRITEBYTECODE": "1",
            },
            capture_output=True,
            check=False,
            timeout=300,
            user=other,
            group=other,
            extra_groups=None if other is None else (),
        )
    if b"ModuleNotFoundError" in done.stderr or b"can't open file" in done.stderr:
        pytest.skip(f"the system's Python cannot run artoo here: {done.stderr[-300:]!r}")
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    if "problem" in found:
        pytest.skip(found["problem"])
    assert set(found["through"]) - _NOT_CLOSED.get((found["name"], user), set()) == set(), found["through"]
