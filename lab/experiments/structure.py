"""Group 3, first half: what more agents cost, in messages and in time."""

from __future__ import annotations

import math
from collections.abc import Sequence

from lab.cells import Jobs, traces
from lab.experiment import Claim, Experiment, Finding, Outcome, Picture, Rows, Table
from lab.laws import Arm, Law
from lab.plot import Line, lines
from lab.running import Trace
from lab.statistics import Estimate, bootstrap, mean, mean_of
from lab.world import World

COUNTS = (1, 2, 4, 8, 16, 32)
SMOOTH = World(chained=0.0, big=0.0, hopeless=0.0, foresight=1.0, skill=1.0)
"""Everything works at once: what is left is the cost of the structure."""
UNEVEN = World(chained=0.0, big=0.0, hopeless=0.0, foresight=1.0, skill=1.0, jitter=0.5)
"""The same, with calls that take between half and one and a half times their mean."""
MOST_GROWTH = 1.05

LINEAR = Claim(
    "Messages grow in proportion to the number of subtasks: the exponent from 8 to 32 subtasks is 1.",
    "the exponent is above 1.1",
)
NO_TIME = Claim(
    "N subtasks in parallel add no time, when every call takes as long as every other.",
    f"32 subtasks take more than {MOST_GROWTH} times as long as 2",
)
NO_TIME_UNEVEN = Claim(
    "N subtasks in parallel add no time, when calls take unequally long.",
    f"the interval of the ratio of 32 subtasks to 2 is above {MOST_GROWTH}",
    "withdrawn: a round waits for its slowest subtask, and no document says that parallel work is free in time.",
)


def cells() -> dict[str, Jobs]:
    """Return jobs of 1 to 32 parallel parts, with even and uneven calls."""
    arm = Arm("the law", Law)
    return {
        _cell(name, count): Jobs(world, arm, count)
        for name, world in (("even", SMOOTH), ("uneven", UNEVEN))
        for count in COUNTS
    }


def judge(rows: Rows) -> Outcome:
    """Judge messages and seconds by number of subtasks."""
    even = {count: traces(rows, _cell("even", count)) for count in COUNTS}
    uneven = {count: traces(rows, _cell("uneven", count)) for count in COUNTS}
    exponent = _exponent(even)
    growth, uneven_growth = _growth(even), _growth(uneven)
    findings = (
        Finding(LINEAR, exponent.high <= 1.1, f"exponent {exponent.text(3)}"),
        Finding(NO_TIME, growth.high <= MOST_GROWTH, f"{growth.text(3)} times as long"),
        Finding(NO_TIME_UNEVEN, uneven_growth.low <= MOST_GROWTH, f"{uneven_growth.text(3)} times as long"),
    )
    table = tuple(
        (
            str(count),
            f"{mean([float(each.messages) for each in even[count]], range(len(even[count]))):.0f}",
            str(count * (count - 1)),
            mean_of([each.seconds for each in even[count]]).text(1),
            mean_of([each.seconds for each in uneven[count]]).text(1),
            f"{mean([float(each.calls) for each in even[count]], range(len(even[count]))):.0f}",
        )
        for count in COUNTS
    )
    columns = ("subtasks", "messages", "N·(N − 1)", "seconds, even", "seconds, uneven", "model calls")
    note = (
        "Messages are all that was on the stream, records for the log included. N·(N − 1) is what one round of "
        "everybody telling everybody would take; it is computed, not run. The exponent is below 1 because a task "
        "has messages of its own, which more subtasks share."
    )
    picture = lines("Messages by subtasks", "subtasks", "messages", _message_lines(even))
    return Outcome(
        findings,
        (Table("Cost of more agents", columns, table, note),),
        (Picture("structure-messages", "Messages by subtasks", picture),),
    )


def _cell(name: str, count: int) -> str:
    return f"{name}: {count}"


def _exponent(found: dict[int, list[Trace]]) -> Estimate:
    few, many = ([float(each.messages) for each in found[count]] for count in (8, 32))
    return bootstrap(len(few), lambda at: math.log(mean(many, at) / mean(few, at)) / math.log(4))


def _growth(found: dict[int, list[Trace]]) -> Estimate:
    few, many = ([each.seconds for each in found[count]] for count in (2, 32))
    return bootstrap(len(few), lambda at: mean(many, at) / mean(few, at))


def _message_lines(found: dict[int, list[Trace]]) -> Sequence[Line]:
    ours = tuple(
        (float(n), mean([float(each.messages) for each in found[n]], range(len(found[n])))) for n in COUNTS
    )
    theirs = tuple((float(n), float(n * (n - 1))) for n in COUNTS)
    return (Line("artoo's stream", ours), Line("N·(N − 1), one round", theirs))


EXPERIMENT = Experiment(
    name="structure",
    title="What more agents cost",
    question="Do messages grow with the number of agents, not with its square, and is parallel work free in time?",
    claims=(LINEAR, NO_TIME, NO_TIME_UNEVEN),
    cells=cells,
    judge=judge,
    tasks=33,
    piece=25,
    real="bus and routes, all roles",
    simulated="models, tools, the person, time: a call takes 4 s, a tool 2 s, and any number may run at once",
)
