"""What a replay found, for a person and as JSON."""

from __future__ import annotations

from collections.abc import Sequence

from rich.console import Console
from rich.table import Table
from rich.text import Text

from artoo.contracts.solution import Decided
from artoo.runtime.replay.replay import Replayed
from artoo.runtime.replay.what_if import Recomputed
from artoo.words.shown import plural

JsonObject = dict[str, object]


def replay_object(replayed: Replayed) -> JsonObject:
    """A replay as JSON."""
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


def show_replay(replayed: Replayed) -> None:
    """A replay in a few lines."""
    console = Console(highlight=False)
    count, decisions = len(replayed.recording.stream), len(replayed.decisions)
    if replayed.difference is not None:
        console.print(Text(f"different: {replayed.difference}"), soft_wrap=True)
        return
    console.print(f"the same: {count} messages, {plural(decisions, 'decision')}")
    for each in replayed.decisions:
        console.print(Text(f"  round {each.round}: {each.directive} ({_figures(each)})"), soft_wrap=True)
    if replayed.result is None:
        console.print("the log ends before the task did; `artoo resume` goes on with it")


def what_if_object(task_id: str, lines: Sequence[str], rounds: Sequence[Recomputed]) -> JsonObject:
    """Other hyperparameters' decisions as JSON."""
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


def show_what_if(lines: Sequence[str], rounds: Sequence[Recomputed]) -> None:
    """Both decisions of each round side by side."""
    console = Console(highlight=False)
    table = Table("round", "as it was", ", ".join(lines), box=None, pad_edge=False, padding=(0, 2, 0, 0))
    for each in rounds:
        now = "unknown" if each.now is None else _cell(each.now)
        table.add_row(str(each.then.round), Text(_cell(each.then)), Text(now if each.same else f"! {now}"))
    console.print(table)
    last = rounds[-1] if rounds else None
    if last is None:
        console.print("the log has no decision yet")
    elif last.same:
        console.print("every decision would have been the same")
    else:
        said = f"from round {last.then.round} on it would have gone another way; what follows is unknown"
        console.print(Text(f"{said}\n{last.note}".strip()), soft_wrap=True)


def _cell(decided: Decided) -> str:
    return f"{decided.directive}\n{_figures(decided).replace(' L ', chr(10) + 'L ', 1)}\n{decided.reason}"


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
