"""Render calls and changes as evidence for a judge, with their most characters.

The judge must quote from this text.

Every line of an output is indented by one blank, but headings are not. So the text of a file cannot pretend to be a
call.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import cast

from artoo.contracts.execution import CallStatus, ExecutionResult, SubTaskOutcome, ToolCall
from artoo.contracts.text import listed, set_off, without_middle
from artoo.evidence.facts import rests_on_nothing

# Maximum number of characters of calls and of the difference that a judge is shown.
FACTS_SHOWN = 16_000
DIFFERENCE_SHOWN = 8_000
SHORTEST_SHARE = 600
# Number of characters that are shown of a call's input. If a quarter of the call's share is more, that is used
# instead.
_INPUT_SHOWN = 1_000
# The file contents that were shown to several results get 1/_FOR_HEADS of the room for the facts of these results.
_FOR_HEADS = 4
_BELOW = "(as it stands below, in what was changed)"


def is_word_alone(outcome: SubTaskOutcome) -> bool:
    """Return whether only the claim of its author supports a result: no call shows it, and none of its criteria
    passed."""
    return not outcome.confirmed and rests_on_nothing(outcome.tool_calls)


def facts_of(result: ExecutionResult, difference: str, earlier: str = "") -> str:
    """Render the calls with their numbers and results, then the changes of the task: the paths that were changed
    before this subtask (`earlier`), and the subtask's own changes line by line."""
    calls = list(enumerate(result.tool_calls, 1))
    share = max(SHORTEST_SHARE, FACTS_SHOWN // max(1, len(calls)))
    seen = without_middle(difference, DIFFERENCE_SHOWN)
    shown = calls[-FACTS_SHOWN // SHORTEST_SHARE :]
    parts, first = list[str](), dict[str, int]()
    for number, call in shown:
        same = first.setdefault(told := _call(call, _share(number, result.tool_calls, share), seen), number)
        parts.append(f"call {number}: {told if same == number else f'as call {same}'}")
    parts += [f"Changed by this task before this subtask:\n{earlier}"] if earlier else []
    parts.append(_changed(f"Changed by this {'subtask' if earlier else 'task'}:", seen))
    return "\n\n".join(parts)


def facts_of_all(outcomes: Sequence[SubTaskOutcome], difference: str, room: int) -> str:
    """Render several results together in about `room` characters. The parts are the file contents that the results
    were shown and did not read, the last calls of each result (numbered by result and call), and the changes of the
    task. File contents and calls that repeat those of an earlier result are rendered once."""
    seen = without_middle(difference, min(DIFFERENCE_SHOWN, room // 3))
    heads = dict[str, list[str]]()
    for number, outcome in enumerate(outcomes, 1):
        heads.setdefault(outcome.heads, []).append(f"[{number}]")
    least = room // _FOR_HEADS // max(1, len(heads))
    parts = [at_first(without_middle(each, least), f" to {', '.join(to)}") for each, to in heads.items() if each]
    room -= len(seen) + sum(map(len, parts))
    most = max(1, room // max(1, len(outcomes)) // (SHORTEST_SHARE + _INPUT_SHOWN))
    shown = [list(enumerate(outcome.tool_calls, 1))[-most:] for outcome in outcomes]
    share = max(SHORTEST_SHARE, room // max(1, sum(map(len, shown))) - _INPUT_SHOWN)
    first = dict[str, str]()
    for number, (outcome, calls) in enumerate(zip(outcomes, shown, strict=True), 1):
        if rests_on_nothing(outcome.tool_calls):
            parts.append(f"Of [{number}] no call shows anything.")
            continue
        for place, call in calls:
            label, told = f"{number}.{place}", _call(call, _share(place, outcome.tool_calls, share), seen)
            same = first.setdefault(told, label)
            parts.append(f"call {label}: {told if same == label else f'as call {same}'}")
    return "\n\n".join((*parts, _changed("Changed by this task:", seen)))


def at_first(told: str, to: str = "") -> str:
    """Return the heads of files that were shown before the first call. Return an empty text if there were none."""
    return f"Shown{to} before the first call:\n{set_off(told)}" if told else ""


def _changed(heading: str, seen: str) -> str:
    return f"{heading}\n{seen}" if seen else f"{heading} nothing"


def _share(number: int, calls: Sequence[ToolCall], share: int) -> int:
    """Return the number of characters for the output of the numbered call. A call gets the least room if it looked
    at a file that a later call changed, because the difference shows the later state of the file."""
    call = calls[number - 1]
    changed = (path for later in calls[number:] for path in later.changes)
    seen = call.target.rpartition(" in ")[2]  # The target of a search has the form `PATTERN in PATH`.
    is_old = call.only_looked and seen and any(f"/{path}".endswith(f"/{seen}") for path in changed)
    return SHORTEST_SHARE if is_old else share


def _call(call: ToolCall, share: int, difference: str) -> str:
    code = "" if call.exit_code is None else f", exit {call.exit_code}"
    # In this case the exit code does not mean an error.
    alone = call.says_no or (call.exit_code and call.status is CallStatus.OK)
    ended = code[2:] if alone else f"{call.status}{code}"
    given = without_middle(_given(call, difference), max(_INPUT_SHOWN, share // 4))
    lines = [set_off(f"{call.tool} {given} [{ended}]")[1:]]
    why = "" if call.reason is None or call.reason in call.error_output else call.reason
    output = _BELOW if call.changes and call.output.strip() and call.output.strip() in difference else call.output
    parts = (output, call.error_output, why)
    lines += [set_off(without_middle(part, share)) for part in parts if part.strip()]
    lines += [f"changed: {listed(call.changes)}"] if call.changes else []
    lines += [f"withheld: {listed(call.dropped)}"] if call.dropped else []
    return "\n".join(lines)


def _given(call: ToolCall, difference: str) -> str:
    """Render the input of a call. A longer text in it is left out if the difference shows it line by line."""
    if not call.changes:
        return call.input
    try:
        arguments: object = json.loads(call.input)
    except (ValueError, RecursionError):  # The input is plain text or JSON that was cut.
        return call.input
    if not isinstance(arguments, dict):
        return call.input
    given = cast("dict[str, object]", arguments)
    short = _without_added(given, difference)
    return call.input if short == given else json.dumps(short, ensure_ascii=False)


def _without_added(value: object, difference: str) -> object:
    """Replace each text in the arguments of a call that the difference shows as added."""
    match value:
        case str() if _is_added(value, difference):
            return _BELOW
        case dict():
            fields = cast("dict[str, object]", value)
            return {name: _without_added(one, difference) for name, one in fields.items()}
        case list():
            return [_without_added(one, difference) for one in cast("list[object]", value)]
        case _:
            return value


def _is_added(value: str, difference: str) -> bool:
    if len(value) <= SHORTEST_SHARE:
        return False
    added = "".join(f"+{line}\n" for line in value.removesuffix("\n").split("\n"))
    return f"\n{added}" in f"\n{difference}\n"
