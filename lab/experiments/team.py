"""Group 2, many machines: ten solvers with one memory against ten with a memory each."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import cast

from lab.experiment import Claim, Experiment, Finding, Outcome, Rows, Table
from lab.statistics import Estimate, bootstrap, difference
from lab.teams import JOBS, SOLVERS, Learnt, Team

ONE, OWN = "one memory", "a memory each"
MOST_SHARE = 0.25

KNOWN = Claim(
    "Ten solvers with one memory know a trap after at most a quarter of the tasks that ten with their own need.",
    "the interval of the ratio is not all below 0.25",
    "withdrawn as it stood: no document says a quarter; what is said of one memory is the ratio that was seen.",
)
FALLS = Claim(
    "They fall into it at most a quarter as often.",
    "the interval of the ratio is not all below 0.25",
)
SOLVED = Claim(
    "One memory costs nothing: as much is solved, with no more calls.",
    "significantly less is solved, or significantly more calls are made",
)


def cells() -> Mapping[str, Team]:
    """Both teams, the same traps and jobs."""
    return {ONE: Team(1), OWN: Team(SOLVERS)}


def judge(rows: Rows) -> Outcome:
    """By trap: jobs of one trap depend on each other, so traps are what is drawn again."""
    one, own = (cast("Sequence[Learnt]", rows[name]) for name in (ONE, OWN))
    until = _ratio([each.until for each in one], [each.until for each in own])
    falls = _ratio([each.falls for each in one], [each.falls for each in own])
    solved = difference([100 * each.solved / JOBS for each in one], [100 * each.solved / JOBS for each in own])
    calls = difference([each.calls / JOBS for each in one], [each.calls / JOBS for each in own])
    findings = (
        Finding(KNOWN, until.high < MOST_SHARE, f"ratio {until.text(2)}"),
        Finding(FALLS, falls.high < MOST_SHARE, f"ratio {falls.text(2)}"),
        Finding(
            SOLVED,
            not (solved.below or calls.above),
            f"solved {solved.text(1)} points, {calls.text(2)} calls a job",
        ),
    )
    note = (
        f"{len(one)} traps, {JOBS} jobs each, of {SOLVERS} solvers in turns. Until known: jobs of the "
        "whole team before ten in a row, one of each solver, of which none chose the trap first."
    )
    columns = ("team", "jobs until known", "falls", "calls a job", "solved, %")
    table = Table("A trap and a team", columns, (_line(ONE, one), _line(OWN, own)), note)
    return Outcome(findings, (table,))


def _ratio(ours: Sequence[int], theirs: Sequence[int]) -> Estimate:
    return bootstrap(
        len(ours), lambda at: sum(ours[each] for each in at) / max(1, sum(theirs[each] for each in at))
    )


def _line(name: str, found: Sequence[Learnt]) -> tuple[str, ...]:
    count = len(found)
    return (
        name,
        f"{sum(each.until for each in found) / count:.1f}",
        f"{sum(each.falls for each in found) / count:.1f}",
        f"{sum(each.calls for each in found) / (count * JOBS):.2f}",
        f"{100 * sum(each.solved for each in found) / (count * JOBS):.1f}",
    )


EXPERIMENT = Experiment(
    name="team",
    title="Ten solvers, one memory",
    question="How many tasks does a team need until it knows a trap, with one memory and with one each?",
    claims=(KNOWN, FALLS, SOLVED),
    cells=cells,
    judge=judge,
    tasks=12,
    piece=1,
    real="bus and routes, all roles, R7's lessons, calibration; LMDB stores, of which one stands for PostgreSQL's",
    simulated="models, tools, the person, time, machines; the Dreamer does not run",
)
