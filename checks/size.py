"""Check that no package is larger than its ceiling, so that the code base only shrinks.

    python checks/size.py           fails, with the package and both figures, where a ceiling is exceeded
    python checks/size.py --lower   lowers each ceiling to what is there now

`ceilings.json` holds the ceilings in lines of Python, and two counts that may only fall: folders with more than
25 modules, and class names that more than two modules define. A package without a ceiling is an error.
"""

from __future__ import annotations

import ast
import json
import sys
from collections import Counter
from collections.abc import Iterable
from pathlib import Path

ROOT = Path(__file__).parent.parent
SOURCE = ROOT / "src" / "artoo"
CEILINGS = Path(__file__).with_name("ceilings.json")
MODULES_IN_A_FOLDER = 25
MODULES_WITH_ONE_CLASS_NAME = 2


def measured() -> dict[str, int]:
    """Return the lines of each package, of the whole and of the tests, and the two counts."""
    sizes = {
        path.name: _lines(path.rglob("*.py"))
        for path in sorted(SOURCE.iterdir())
        if path.is_dir() and any(path.rglob("*.py"))
    }
    modules = [*SOURCE.rglob("*.py")]
    folders = Counter(path.parent for path in modules if path.name != "__init__.py")
    classes = Counter(name for path in modules for name in _class_names(path))
    return {
        **sizes,
        "src": _lines(modules),
        "tests": _lines((ROOT / "tests").rglob("*.py")),
        "folders above 25 modules": sum(count > MODULES_IN_A_FOLDER for count in folders.values()),
        "class names in more than two modules": sum(
            count > MODULES_WITH_ONE_CLASS_NAME for count in classes.values()
        ),
    }


def _lines(paths: Iterable[Path]) -> int:
    return sum(len(path.read_bytes().splitlines()) for path in paths)


def _class_names(path: Path) -> set[str]:
    tree = ast.parse(path.read_text(encoding="utf-8"))
    return {node.name for node in ast.walk(tree) if isinstance(node, ast.ClassDef)}


def main() -> int:
    """Compare, or lower the ceilings. Return the exit code."""
    ceilings: dict[str, int] = json.loads(CEILINGS.read_text(encoding="utf-8"))
    sizes = measured()
    if "--lower" in sys.argv[1:]:
        lowered = {name: min(size, ceilings.get(name, size)) for name, size in sizes.items()}
        CEILINGS.write_text(json.dumps(lowered, indent=2) + "\n", encoding="utf-8")
        return 0
    exceeded = [
        f"{name}: {size}, but its ceiling in checks/ceilings.json is {ceilings.get(name, 'missing')}"
        for name, size in sizes.items()
        if size > ceilings.get(name, -1)
    ]
    sys.stdout.writelines(line + "\n" for line in exceeded)
    return 1 if exceeded else 0


if __name__ == "__main__":
    raise SystemExit(main())
