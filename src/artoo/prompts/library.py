"""Load the prompt texts of roles, and refuse texts that differ from the hashes in `manifest.json`.

A changed prompt makes a different agent. Therefore `manifest.json` contains the SHA-256 of every text, and `python
-m artoo.prompts.library` writes it again after an intended change.
"""

from __future__ import annotations

import hashlib
import json
from functools import cache
from pathlib import Path
from typing import Literal

from artoo.contracts.errors import ConfigurationError
from artoo.prompts.segments import Segment

TEXTS = Path(__file__).parent / "texts"
# The forms of prompts: `simple` is for small models, `text` is for conversations in the text dialect (the prompt
# describes the tools), and `unjudged` is for a merge without a judgement of criteria.
Form = Literal["", "simple", "text", "unjudged"]
MANIFEST = Path(__file__).parent / "manifest.json"


def digests(folder: Path) -> dict[str, str]:
    """Return the SHA-256 (hex) of each text in `folder`, by the name of its file."""
    return {path.name: hashlib.sha256(path.read_bytes()).hexdigest() for path in sorted(folder.glob("*.md"))}


def verify(folder: Path | None = None, manifest: Path = MANIFEST) -> None:
    """Check the texts. Raises a ConfigurationError, which lists the missing, changed and unknown texts."""
    folder = TEXTS if folder is None else folder
    expected: dict[str, str] = json.loads(manifest.read_text(encoding="utf-8"))
    found = digests(folder)
    wrong = sorted(name for name in expected.keys() | found.keys() if expected.get(name) != found.get(name))
    if wrong:
        raise ConfigurationError(
            f"prompt texts differ from their manifest: {', '.join(wrong)} in {folder}. "
            "Reinstall artoo, or accept an intended change with `python -m artoo.prompts.library`."
        )


@cache
def require_shipped() -> dict[str, str]:
    """Return the texts by their names, after checking them. Raises ConfigurationError as `verify` does. So a task
    with wrong texts fails at its start and not later.
    """
    verify()
    return {path.stem: path.read_text(encoding="utf-8").strip() for path in TEXTS.glob("*.md")}


@cache
def procedural(role: str, contract: str, form: Form = "") -> dict[Segment, str]:
    """Return the procedural segments of one role's call, in the requested form if this form exists.

    Raises ConfigurationError as `verify` does.
    """
    texts = require_shipped()

    def text(name: str) -> str:
        return texts.get(f"{name}_{form}", texts[name])

    return {
        Segment.IDENTITY: texts["identity"],
        Segment.LAWS: texts["laws"],
        Segment.ROLE: text(f"role_{role}"),
        Segment.CONTRACT: text(f"contract_{contract}"),
    }


if __name__ == "__main__":
    MANIFEST.write_text(json.dumps(digests(TEXTS), indent=1, sort_keys=True) + "\n", encoding="utf-8")
