"""What the two ends of another machine's log say, wherever they end."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, cast

import pytest

from artoo.contracts import codec
from artoo.contracts.envelope import Envelope
from artoo.contracts.request import UserRequest
from artoo.contracts.roles import Role
from artoo.contracts.solution import Directive, FinalResult
from artoo.runtime.cluster import remote_logs as elsewhere
from artoo.store.stream import Extent

if TYPE_CHECKING:
    from artoo.store.stream import Connection


def line(number: int, role: Role, payload: UserRequest | FinalResult) -> bytes:
    return codec.encode_line(Envelope(f"m{number}", role, "t1", datetime(2026, 5, 4, tzinfo=UTC), payload))


@pytest.mark.parametrize("ends", [500, 1_000, 2_000, 2_500, 5_000])
def test_the_end_is_found_wherever_the_line_begins(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, ends: int
) -> None:
    """Before the window, across both windows, or in one of them."""
    log = line(1, Role.PERCEIVER, UserRequest(text="count", project="/p", workspace="/w"))
    log += line(2, Role.SOLVER, FinalResult(task_id="t1", summary="x" * 3_000, directive=Directive.ACCEPT))

    def part(_connection: object, _machine: str, _file: str, start: int, end: int) -> bytes:
        return log[start:end]

    monkeypatch.setattr("artoo.runtime.cluster.remote_logs.ENDS", ends)
    monkeypatch.setattr("artoo.store.stream.part", part)
    extents = [Extent("other", "tasks/t1/log.jsonl", len(log), 5.0)]
    nothing = cast("Connection", None)
    found = elsewhere._summary(nothing, extents, tmp_path / "t1")  # pyright: ignore[reportPrivateUsage]
    assert found is not None and found.result is not None and not found.running
