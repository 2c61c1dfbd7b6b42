"""Keys, tokens and names of a home: made once, whole, whoever comes first."""

from __future__ import annotations

import os
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from artoo.disk.whole import made_once


def test_who_comes_while_another_makes_it_reads_a_whole_file(tmp_path: Path) -> None:
    """Eight at once, all past the look: one content is kept, all read it, and nothing lies about."""
    at_once = threading.Barrier(8)

    def make() -> bytes:
        """One's own content, when all have seen that there is none."""
        at_once.wait(10)
        return os.urandom(4).hex().encode()

    path = tmp_path / "home" / "key"
    with ThreadPoolExecutor(8) as threads:
        read = list(threads.map(made_once, [path] * 8, [make] * 8))
    assert len(set(read)) == 1
    assert len(read[0]) == 8
    assert list(path.parent.iterdir()) == [path]
