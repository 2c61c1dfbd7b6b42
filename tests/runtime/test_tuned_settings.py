"""The control law's numbers for one type of task: from the configuration to R7, log and replay."""

from __future__ import annotations

from pathlib import Path

import pytest
from tuned_tasks import TYPE, run_tasks

from artoo.contracts.errors import ConfigurationError
from artoo.contracts.solution import Directive
from artoo.runtime.config.loader import checked
from artoo.runtime.config.model import Control, Tuned
from artoo.runtime.replay.recording import read_recording
from artoo.runtime.replay.replay import replay
from artoo.runtime.replay.what_if import law_of, what_if
from artoo.runtime.task.task_header import settings_of
from artoo.tasklog.reader import find_log

NEVER_NEAR = {TYPE: Tuned(delta=0.0)}


async def test_a_type_of_task_is_decided_by_its_own_numbers(tmp_path: Path) -> None:
    """Three criteria of four are a success, but not where δ = 0 was accepted for such requests, and only there."""
    (near,) = await run_tasks(tmp_path / "a", Control())
    (whole,) = await run_tasks(tmp_path / "b", Control(by_type=NEVER_NEAR))
    (other,) = await run_tasks(tmp_path / "c", Control(by_type=NEVER_NEAR), request="How many stones are there")
    assert (near.directive, near.replans) == (Directive.SUCCESS, 0)
    assert (whole.directive, whole.replans) == (Directive.ACCEPT, 1)
    assert (other.directive, other.replans) == (Directive.SUCCESS, 0)


async def test_the_log_says_by_which_numbers(tmp_path: Path) -> None:
    """A replay decides the same, and "what if" begins with the type's numbers."""
    (result,) = await run_tasks(tmp_path, Control(by_type=NEVER_NEAR))
    log = find_log(tmp_path, result.task_id)
    assert (await replay(log)).difference is None
    recording = read_recording(log)
    assert law_of(recording).delta == 0.0 and settings_of(recording.opened).hyperparameters.delta == 0.3
    assert all(each.same for each in what_if(recording.stream, law_of(recording)))


@pytest.mark.parametrize(
    ("line", "why"),
    [
        ("{max_replans: 5}", "max_replans is not a setting"),
        ("{delta: 2}", "at most 1"),
        ("{w1: .9}", "w1 \\+ w2 must be at most 1"),
    ],
)
def test_a_bad_number_is_named(line: str, why: str, tmp_path: Path) -> None:
    """What only other roles read cannot differ between types, and ranges hold there too."""
    with pytest.raises(ConfigurationError, match=why):
        checked(f"control:\n  by_type:\n    count_the_stones: {line}\n", tmp_path / "config.yaml", {})
