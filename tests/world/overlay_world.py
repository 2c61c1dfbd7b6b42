"""Does random things in a real overlay and prints what is there then: `python overlay_world.py SEED STEPS`.

Runs in a mount namespace of its own. Standard input: `{"root", "below": [topmost first], "upper", "work"}`.
Prints a list of [path, kind, content or target] as the kernel shows it, and of [path, where it leads].
"""

from __future__ import annotations

import contextlib
import json
import os
import random
import shutil
import subprocess
import sys
from pathlib import Path

NAMES = ("a", "b", "c", "d")


def mount(places: dict[str, str | list[str]]) -> None:
    lower = ":".join([*places["below"], str(places["root"])])
    options = f"lowerdir={lower},upperdir={places['upper']},workdir={places['work']},userxattr"
    subprocess.run(["mount", "-t", "overlay", "overlay", "-o", options, str(places["root"])], check=True)


def act(chance: random.Random, root: Path) -> None:
    """One random change; what the kernel refuses changes nothing."""
    path, other = (root.joinpath(*chance.choices(NAMES, k=chance.randint(1, 3))) for _ in range(2))
    with contextlib.suppress(OSError, shutil.Error):
        match chance.randrange(7):
            case 0 | 1:
                path.parent.mkdir(parents=True, exist_ok=True)
                path.write_text(str(chance.random()))
            case 2:
                path.mkdir(parents=True)
            case 3:
                path.unlink()
            case 4:
                shutil.rmtree(path)
            case 5:
                shutil.move(path, other)
            case _:
                back = "/".join([".."] * chance.randint(0, 3)) or "."
                path.symlink_to(chance.choice([str(other), f"{back}/{other.name}", other.name]))


def snapshot(root: Path) -> list[list[str]]:
    found: list[list[str]] = []
    for folder, directories, files in os.walk(root):
        for name in directories + files:
            path = Path(folder, name)
            if path.is_symlink():
                found.append([str(path), "link", str(path.readlink())])
            else:
                found.append(
                    [str(path), "directory", ""]
                    if path.is_dir()
                    else [str(path), "file", path.read_text(encoding="utf-8")]
                )
    return sorted(found)


def leads(root: Path) -> list[list[str]]:
    """Where every short path leads, links followed; ELOOP for a circle."""
    found: list[list[str]] = []
    for first in NAMES:
        for second in NAMES:
            for path in (root / first, root / first / second, root / first / second / ".." / "a"):
                try:
                    found.append([str(path), os.path.realpath(path, strict=True)])
                except FileNotFoundError:
                    continue
                except OSError as error:
                    found.append([str(path), os.strerror(error.errno or 0)])
    return found


def main() -> None:
    chance, steps = random.Random(int(sys.argv[1])), int(sys.argv[2])
    places: dict[str, str | list[str]] = json.load(sys.stdin)
    root = Path(str(places["root"]))
    if places["upper"]:
        mount(places)
    for _ in range(steps):
        act(chance, root)
    print(json.dumps([snapshot(root), leads(root)]))


if __name__ == "__main__":
    main()
