"""Keys, tokens and names of a home: made once, whole, whoever comes first."""

from __future__ import annotations

import os
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from artoo.disk import whole
from artoo.runtime.app.machine_name import machine_name
from artoo.runtime.app.write_once import made_once


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


def test_a_file_is_not_there_before_it_is_whole(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """While its content is made durable nobody can see it: a process that dies there leaves none."""
    path, seen = tmp_path / "key", list[bool]()
    kept = os.fsync

    def fsync(descriptor: int) -> None:
        """Looks first."""
        seen.append(path.exists())
        kept(descriptor)

    monkeypatch.setattr(whole.os, "fsync", fsync)
    assert made_once(path, lambda: b"12345678") == b"12345678"
    assert seen == [False]
    assert path.stat().st_mode & 0o777 == 0o600


def test_many_processes_of_a_new_home_are_one_machine(tmp_path: Path) -> None:
    """A home's name does not depend on who asks first."""
    with ThreadPoolExecutor(8) as threads:
        names = set(threads.map(machine_name, [tmp_path / "home"] * 32))
    assert len(names) == 1
