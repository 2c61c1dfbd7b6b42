"""Claimed successes of others: what a trajectory is read as, and what stands against it."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import cast

import pytest
from lab_command import run_lab

from benchmarks.public.claims import ASIDE, BUILT, EXPERIMENT, Half, Trajectory, auroc, cells, judged
from lab.conducting import Order, conduct

STOP: dict[str, object] = {"role": "user", "content": "Thank you. ###STOP###"}


def asked(name: str, answer: str, number: int = 1) -> list[dict[str, object]]:
    call = {"id": f"c{number}", "type": "function", "function": {"name": name, "arguments": '{"flight": "HAT136"}'}}
    return [
        {"role": "assistant", "content": None, "tool_calls": [call]},
        {"role": "tool", "tool_call_id": f"c{number}", "name": name, "content": answer},
    ]


def trajectory(task: int, *messages: Mapping[str, object], reward: float = 0.0) -> dict[str, object]:
    return {"task_id": task, "trial": 0, "reward": reward, "info": {}, "traj": list(messages)}


def read(*messages: Mapping[str, object]) -> Trajectory:
    return Trajectory.model_validate(trajectory(1, *messages))


def tasks_of(data: Path) -> dict[str, set[str]]:
    return {name: {task for task, _ in cast("Half", cell).trajectories} for name, cell in cells(data).items()}


def test_what_was_seen_or_told_stands_and_the_rest_floats() -> None:
    """A price of a tool's output and one of the customer's words are grounded, a third one is not."""
    told: dict[str, object] = {"role": "user", "content": "Not above $300, please."}
    said: dict[str, object] = {"role": "assistant", "content": "It is $155, so below $300; the fee is $741."}
    found = judged("t 1", read(told, *asked("search", '{"price": 155}'), said, STOP))
    assert (found.floating, found.broken, found.errors, found.answers) == (1, False, 0, 1)


def test_nothing_that_is_shown_later_grounds_an_answer() -> None:
    """An answer is held against what had been seen when it was given."""
    said: dict[str, object] = {"role": "assistant", "content": "It is $155."}
    assert judged("t 1", read(said, *asked("search", '{"price": 155}'), STOP)).floating == 1


def test_a_last_act_that_failed_stands_against_it() -> None:
    """An error that was mended does not."""
    said: dict[str, object] = {"role": "assistant", "content": "It is done."}
    mended = (*asked("book", "Error: no such flight"), *asked("book", "booked", 2), said)
    assert judged("t 1", read(*asked("book", "Error: no such flight"), said, STOP)).broken
    assert not judged("t 1", read(*mended, STOP)).broken


def test_only_claims_count_and_no_task_is_in_both_halves(tmp_path: Path) -> None:
    """A conversation that ended with a call for help claims no success; trials of a task stay together."""
    file = tmp_path / "agent-world.json"
    tasks = [trajectory(number // 2, {"role": "assistant", "content": "done"}, STOP) for number in range(40)]
    tasks.append(trajectory(99, *asked("transfer_to_human_agents", "ok")))
    file.write_text(json.dumps(tasks))
    halves = tasks_of(tmp_path)
    assert len(halves[BUILT]) + len(halves[ASIDE]) == 20 and not halves[BUILT] & halves[ASIDE]
    assert halves == tasks_of(file)


def test_the_experiment_says_what_it_needs(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Without its data it says how to get it; with it every claim is judged."""
    assert run_lab(["run", "claims"]) == 2
    assert "github.com/sierra-research/tau-bench" in capsys.readouterr().err
    assert run_lab(["run", "stop", "--tasks", "2", "--data", str(tmp_path)]) == 2
    file = tmp_path / "agent-world.json"
    words = ("quite", "surely")
    file.write_text(
        json.dumps(
            [
                trajectory(n, {"role": "assistant", "content": words[n % 2]}, STOP, reward=float(n % 2))
                for n in range(40)
            ]
        )
    )
    ran = conduct(Order("claims", data=file), told=lambda _: None)
    assert tuple(each.claim for each in ran.outcome.findings) == EXPERIMENT.claims


def test_an_auroc_counts_pairs() -> None:
    """Ties count by half; one kind alone has none."""
    assert auroc([2.0, 1.0], [1.0, 0.0]) == pytest.approx(0.875)  # pyright: ignore[reportUnknownMemberType]
    with pytest.raises(ValueError, match="both kinds"):
        auroc([1.0], [])
