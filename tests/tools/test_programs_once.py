"""Programs are looked for once a task: each of its subtasks has tools of its own."""

from __future__ import annotations

from pathlib import Path

import pytest

from artoo.ports.sandbox import Roots
from artoo.tools.core import default_tools as standard
from artoo.tools.core.default_tools import Machine


def test_a_task_looks_for_a_program_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its machine remembers what it found, and what it did not; the next task's looks again."""
    looked: list[str] = []

    def find(name: str, apart: tuple[str, ...] = ()) -> str | None:
        assert set(apart) == {str(tmp_path)}
        looked.append(name)
        return "/usr/bin/bash" if name == "bash" else None

    monkeypatch.setattr(standard, "find_program", find)
    roots = Roots(home=Path("/nowhere"), workspace=tmp_path, project=tmp_path)
    for _ in range(2):
        machine = Machine.of(roots)
        assert [machine.which(name) for name in ("bash", "plocate", "bash", "plocate")] == [
            *("/usr/bin/bash", None),
            *("/usr/bin/bash", None),
        ]
    assert looked == ["bash", "plocate"] * 2
