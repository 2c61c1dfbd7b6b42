"""Group 1, third part: the law on samples of long subtasks, against the same law without samples."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import cast

from lab.experiment import Claim, Experiment, Finding, Outcome, Rows, Table
from lab.long import BUDGETS, FILES, NOTICES, Flights, Flown
from lab.statistics import difference, mean_of

WITH, WITHOUT = "with samples", "without samples"
AIM, LOOKED_AT = 0.10, 80
AWARE = 3 * NOTICES
"""A model that notices by itself three times as often."""
AWARE_WITH, AWARE_WITHOUT = f"{WITH}, aware", f"{WITHOUT}, aware"

SOLVES = Claim(
    f"Within {LOOKED_AT} model calls samples in flight solve at least 10 points more of the long jobs.",
    "the difference is below 10 points, or its interval reaches down to 0",
    "withdrawn: no document says that samples in flight solve more.",
)
NO_LESS = Claim(
    "At no number of calls samples in flight solve fewer.",
    "for one of 40, 80, 120 and 200 calls the whole interval of the difference is below 0",
    "withdrawn: docs/long-tasks.md says at how many calls they cost something.",
)


def cells() -> Mapping[str, Flights]:
    """Return both arms, on the same jobs; and both with a model that notices more by itself."""
    return {
        WITH: Flights(True),
        WITHOUT: Flights(False),
        AWARE_WITH: Flights(True, AWARE),
        AWARE_WITHOUT: Flights(False, AWARE),
    }


def judge(rows: Rows) -> Outcome:
    """Judge what was solved within a number of calls, job by job."""
    ours, theirs = (cast("Sequence[Flown]", rows[name]) for name in (WITH, WITHOUT))
    ahead = {most: difference(_within(ours, most), _within(theirs, most)) for most in BUDGETS}
    main = ahead[LOOKED_AT]
    worse = [most for most in BUDGETS if ahead[most].below]
    findings = (
        Finding(SOLVES, main.value >= AIM and main.above, f"{main.text(1, 100)} points"),
        Finding(NO_LESS, not worse, "; ".join(f"{m}: {ahead[m].text(1, 100)}" for m in worse) or "at none"),
    )
    lines = [_line(f"{most}", ours, theirs, most) for most in BUDGETS]
    for name, fresh in ((", each failure prints something new", True), (", failures print the same", False)):
        one, other = ([each for each in found if each.fresh is fresh] for found in (ours, theirs))
        lines += [_line(f"{LOOKED_AT}{name}", one, other, LOOKED_AT)] if one else []
    one, other = (cast("Sequence[Flown]", rows[name]) for name in (AWARE_WITH, AWARE_WITHOUT))
    aware = f"{LOOKED_AT}, the model notices by itself with {100 * AWARE:.0f} % a turn"
    lines.append(_line(aware, one, other, LOOKED_AT))
    note = (
        f"A job is solved within a number of calls if its {FILES} files were there by then. All calls of a job: "
        f"{mean_of([float(each.calls) for each in ours]).text(1)} with samples, "
        f"{mean_of([float(each.calls) for each in theirs]).text(1)} without; words of R7 in flight: "
        f"{sum(each.directives for each in ours) / len(ours):.2f} a job."
    )
    columns = ("model calls", "solved with samples, %", "without, %", "difference, points")
    return Outcome(findings, (Table("Solved within a number of model calls", columns, tuple(lines), note),))


def _line(name: str, ours: Sequence[Flown], theirs: Sequence[Flown], most: int) -> tuple[str, ...]:
    one, other = _within(ours, most), _within(theirs, most)
    return name, mean_of(one).text(1, 100), mean_of(other).text(1, 100), difference(one, other).text(1, 100)


def _within(found: Sequence[Flown], most: int) -> list[float]:
    return [float(0 < each.done_at <= most) for each in found]


EXPERIMENT = Experiment(
    name="flight",
    title="Samples in flight",
    question="Does it help to check a long subtask while it works, and to tell its executor what the law says?",
    claims=(SOLVES, NO_LESS),
    cells=cells,
    judge=judge,
    real="bus and routes, all roles, the executor's conversation and its end when stuck, sampling, R7 on samples",
    simulated="models, tools, files, the person, time",
)
