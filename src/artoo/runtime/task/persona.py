"""The accepted texts of the T layer in `thinking/`, their hashes, and their limit.

Reference: SPEC section 5.

    <home>/thinking/<id>.md         one accepted proposal each, read-only
    <home>/thinking/manifest.json   file name → SHA-256

These sentences are part of every prompt, so a changed file would make a different agent. If a file was changed,
nothing runs until the operator has restored it. The same holds for the prompt texts that ship with artoo.
"""

from __future__ import annotations

import hashlib
import json
from pathlib import Path
from typing import cast

from artoo.contracts.errors import ConfigurationError
from artoo.contracts.memory import TLayerProposal
from artoo.disk.whole import write_whole

MANIFEST = "manifest.json"
MOST_CHARACTERS = 4_000
"""The maximum number of characters of all accepted texts together, because every prompt contains them."""
_READ_ONLY = 0o400


def thinking_folder(home: Path) -> Path:
    """Return the folder of the accepted texts. It need not exist."""
    return home / "thinking"


def accept_text(home: Path, proposal: TLayerProposal) -> Path:
    """Add the text of a proposal to the T layer. Raises ConfigurationError if the layer is damaged or full."""
    folder = thinking_folder(home)
    known = _verified(folder)
    if sum(map(len, known.values())) + len(proposal.text) > MOST_CHARACTERS:
        raise ConfigurationError(
            f"the T layer in {folder} would be longer than {MOST_CHARACTERS} characters; "
            f"delete a text there, and its line in {MANIFEST}"
        )
    folder.mkdir(parents=True, exist_ok=True, mode=0o700)
    file = folder / f"{proposal.id}.md"
    data = (proposal.text.strip() + "\n").encode()
    write_whole(file, data, mode=_READ_ONLY)
    digests = {**_digests(folder), file.name: hashlib.sha256(data).hexdigest()}
    write_whole(folder / MANIFEST, _manifest(digests), mode=_READ_ONLY)
    return file


def accepted_texts(home: Path) -> str:
    """Return all accepted texts, oldest first.

    Raises ConfigurationError that names each text which is missing, was changed, or is not in the manifest.
    """
    return "\n".join(_verified(thinking_folder(home)).values())


def accepted_count(home: Path) -> int:
    """Count the texts that the operator has accepted, without checking them."""
    return sum(1 for _ in thinking_folder(home).glob("*.md"))


def _verified(folder: Path) -> dict[str, str]:
    """Return the texts of the layer by file name, checked against the manifest."""
    if not folder.is_dir():
        return {}
    expected = _digests(folder)
    found = {path.name: path.read_bytes() for path in sorted(folder.glob("*.md"))}
    actual = {name: hashlib.sha256(data).hexdigest() for name, data in found.items()}
    wrong = sorted(name for name in expected.keys() | actual.keys() if expected.get(name) != actual.get(name))
    if wrong:
        raise ConfigurationError(
            f"the T layer in {folder} is not what you accepted: {', '.join(wrong)}. "
            f"Restore these files, or delete them and their lines in {folder / MANIFEST}."
        )
    return {name: data.decode().strip() for name, data in found.items()}


def _digests(folder: Path) -> dict[str, str]:
    manifest = folder / MANIFEST
    if not manifest.exists():
        return {}
    try:
        return cast("dict[str, str]", json.loads(manifest.read_text(encoding="utf-8")))
    except ValueError as error:
        raise ConfigurationError(f"{manifest} cannot be read ({error}); restore it from a copy") from error


def _manifest(digests: dict[str, str]) -> bytes:
    return (json.dumps(digests, indent=1, sort_keys=True) + "\n").encode()
