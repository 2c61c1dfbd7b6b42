"""The text and JSON of `artoo log replay` and of what-if replays with other hyperparameters."""

from __future__ import annotations

from collections.abc import Sequence

from artoo.contracts.solution import Decided
from artoo.runtime.replay.replay import Replayed
from artoo.runtime.replay.what_if import Recomputed
from artoo.words.shown import plural

JsonObject = dict[str, object]


def replay_object(replayed: Replayed) -> JsonObject:
    """Return a replay as JSON."""
    found = replayed.difference
    return {
        "task_id": replayed.recording.task_id,
        "messages": len(replayed.recording.stream),
        "same": found is None,
        "ended": replayed.result is not None,
        "decisions": [_decided(each) for each in replayed.decisions],
        "difference": None
        if found is None
        else {
            "message": found.number,
            "round": found.round,
            "role": found.role.value,
            "kind": found.kind,
            "text": str(found),
        },
    }


def replay_lines(replayed: Replayed) -> list[str]:
    """Return a few lines about a replay."""
    if replayed.difference is not None:
        return [f"different: {replayed.difference}"]
    count, decisions = len(replayed.recording.stream), len(replayed.decisions)
    lines = [f"the same: {count} messages, {plural(decisions, 'decision')}"]
    lines += [f"  round {each.round}: {each.directive} ({_figures(each)})" for each in replayed.decisions]
    unfinished = "the log ends before the task did; `artoo resume` continues it"
    return lines if replayed.result is not None else [*lines, unfinished]


def what_if_object(task_id: str, lines: Sequence[str], rounds: Sequence[Recomputed]) -> JsonObject:
    """Return the decisions in the log, and those that other hyperparameters would give, as JSON."""
    return {
        "task_id": task_id,
        "with": list(lines),
        "same": all(each.same for each in rounds),
        "rounds": [
            {
                "log": _decided(each.then),
                "with": None if each.now is None else _decided(each.now),
                "same": each.same,
                "note": each.note,
            }
            for each in rounds
        ],
    }


def what_if_lines(values: Sequence[str], rounds: Sequence[Recomputed]) -> list[str]:
    """Return lines with the logged and the recomputed decision of each round, one below the other."""
    lines = list[str]()
    for each in rounds:
        now = "unknown" if each.now is None else _summary(each.now)
        lines.append(f"round {each.then.round}: {_summary(each.then)}")
        lines.append(f"{'  the same' if each.same else '! different'} with {', '.join(values)}: {now}")
    last = rounds[-1] if rounds else None
    if last is None:
        return ["the log has no decision yet"]
    if last.same:
        return [*lines, "every decision would have been the same"]
    changed = f"from round {last.then.round} on it would have taken another course; what follows is unknown"
    return [*lines, changed, *([last.note] if last.note else [])]


def _summary(decided: Decided) -> str:
    return f"{decided.directive} ({_figures(decided)}): {decided.reason}"


def _figures(decided: Decided) -> str:
    loss = decided.loss
    return f"D {loss.D:.2f} P {loss.P:.2f} Ω {loss.Omega:.2f} L {loss.L:.2f} ∇L {decided.grad_l:+.2f}"


def _decided(decided: Decided) -> JsonObject:
    return {
        "round": decided.round,
        "directive": decided.directive.value,
        "loss": decided.loss,
        "grad_L": decided.grad_l,
        "reason": decided.reason,
    }
