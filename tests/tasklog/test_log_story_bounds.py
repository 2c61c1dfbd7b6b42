"""A log of any length becomes a story of bounded size."""

from __future__ import annotations

import tracemalloc
from collections.abc import Iterator

import pytest
from log_doubles import message

from artoo.cli.views import log_view
from artoo.cli.views.log_view import told
from artoo.contracts.envelope import Envelope
from artoo.contracts.execution import ToolCall, ToolCalled


def _calls(count: int, output: int) -> Iterator[Envelope]:
    for number in range(count):
        call = ToolCall(tool="shell", identity=("shell:x",), target=str(number), output="x" * output)
        yield message(ToolCalled(subtask_id="s", attempt=1, call=call), number)


def _targets(story: log_view.Story) -> list[int]:
    return [int(call.call.target) for call in _kept(story)]


def _kept(story: log_view.Story) -> list[ToolCalled]:
    ((_, entries),) = story.rounds
    return [each.event for each in entries if isinstance(each.event, ToolCalled)]


def test_first_and_last_events_are_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of too many events the first and the last are kept, in order, and the others counted."""
    monkeypatch.setattr(log_view, "KEPT_CHARACTERS", 40_000)
    story = told(_calls(1_000, 10), whole=False)
    kept = _targets(story)
    assert kept == [*range(10), *range(990, 1_000)]
    assert story.left_out == 980


@pytest.mark.torture
@pytest.mark.parametrize("whole", [True, False])
def test_memory_does_not_grow_with_the_log(monkeypatch: pytest.MonkeyPatch, whole: bool) -> None:
    """Eight times the messages take no more memory, with their long texts and without."""
    monkeypatch.setattr(log_view, "KEPT_CHARACTERS", 2_000_000)

    def peak(count: int) -> int:
        tracemalloc.start()
        try:
            told(_calls(count, 5_000), whole=whole)
            return tracemalloc.get_traced_memory()[1]
        finally:
            tracemalloc.stop()

    peak(10)
    assert peak(16_000) < 1.5 * peak(2_000)


def test_a_short_log_is_whole() -> None:
    """What fits is kept as it was said."""
    story = told(_calls(50, 5_000))
    assert _targets(story) == list(range(50))
    assert all(len(event.call.output) == 5_000 for event in _kept(story))
