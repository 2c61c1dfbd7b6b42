"""Store and load long strings of a log as files in `blobs`, named by SHA-256."""

from __future__ import annotations

import hashlib
import os
import re
from pathlib import Path
from typing import cast

from artoo.disk.whole import write_whole

REFERENCE_KEY = "@blob"
_SHA256 = re.compile(r"[0-9a-f]{64}")


class BlobStore:
    """The directory `blobs` of one task, in which long strings are stored. Files are written atomically, with mode
    0600."""

    def __init__(self, directory: Path) -> None:
        self._directory = directory / "blobs"

    def externalise(self, value: object, longest: int) -> tuple[object, int]:
        """Store the strings in `value` (parsed JSON) that have more than `longest` characters, and replace them by
        references.

        Return the value and the number of bytes that were written. Raises OSError.
        """
        if isinstance(value, str):
            return self._put(value) if len(value) > longest else (value, 0)
        if isinstance(value, list):
            items = [self.externalise(item, longest) for item in cast("list[object]", value)]
            return [item for item, _ in items], sum(written for _, written in items)
        if isinstance(value, dict):
            fields = {k: self.externalise(v, longest) for k, v in cast("dict[str, object]", value).items()}
            return {k: v for k, (v, _) in fields.items()}, sum(written for _, written in fields.values())
        return value, 0

    def internalise(self, value: object) -> object:
        """Replace the references in a value by the strings that they refer to. If a blob is missing or damaged, its
        reference is replaced by a note."""
        if isinstance(value, list):
            return [self.internalise(item) for item in cast("list[object]", value)]
        if isinstance(value, dict):
            fields = cast("dict[str, object]", value)
            digest = fields.get(REFERENCE_KEY)
            if isinstance(digest, str) and _SHA256.fullmatch(digest):
                return self._get(digest)
            return {key: self.internalise(item) for key, item in fields.items()}
        return value

    def size(self) -> int:
        """Return the size of all blobs together, in bytes."""
        if not self._directory.is_dir():
            return 0
        return sum(entry.stat().st_size for entry in os.scandir(self._directory))

    def _put(self, text: str) -> tuple[object, int]:
        content = text.encode("utf-8", "surrogatepass")
        digest = hashlib.sha256(content).hexdigest()
        reference = {REFERENCE_KEY: digest, "characters": len(text)}
        path = self._directory / digest
        if path.exists():
            return reference, 0
        self._directory.mkdir(parents=True, exist_ok=True, mode=0o700)
        write_whole(path, content, sync=False)
        return reference, len(content)

    def _get(self, digest: str) -> str:
        try:
            content = (self._directory / digest).read_bytes()
        except OSError:
            return f"[missing from the log: blob {digest}]"
        if hashlib.sha256(content).hexdigest() != digest:
            return f"[damaged in the log: blob {digest}]"
        return content.decode("utf-8", "surrogatepass")
