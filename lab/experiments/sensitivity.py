"""Group 5: every hyperparameter of the law, one at a time, in the faulty world."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from artoo.control.hyperparameters import Hyperparameters
from lab.cells import Jobs, calls, solved, traces
from lab.experiment import Claim, Experiment, Finding, Outcome, Picture, Rows, Table
from lab.laws import Arm, Law
from lab.plot import Bar, bars
from lab.statistics import Estimate, difference, mean
from lab.world import FAULTY

DEFAULT = "defaults"
H = Hyperparameters()
VALUES: Mapping[str, Hyperparameters] = {
    **{f"α = {value}": replace(H, alpha=value) for value in (0.3, 0.9)},
    **{f"β = {value}": replace(H, beta=value) for value in (0.1, 0.6)},
    **{f"λ = {value}": replace(H, lambda_=value) for value in (0.2, 0.8)},
    "w₁ = 0.3": replace(H, w1=0.3),
    "w₁ = 0.9, w₂ = 0.1": replace(H, w1=0.9, w2=0.1),
    "w₂ = 0.2": replace(H, w2=0.2),
    "w₂ = 0.8, w₁ = 0.2": replace(H, w1=0.2, w2=0.8),
    **{f"ε = {value}": replace(H, epsilon=value) for value in (0.02, 0.3)},
    **{f"ρ = {value}": replace(H, rho=value) for value in (0.3, 0.7)},
    **{f"θ = {value}": replace(H, theta=value) for value in (0.6, 1.0)},
    **{f"time budget = {value // 1000} s": replace(H, time_budget_ms=value) for value in (60_000, 600_000)},
    **{f"replans = {value}": replace(H, max_replans=value) for value in (1, 6)},
    **{f"retries = {value}": replace(H, max_retries=value) for value in (0, 1, 4)},
    **{f"kill after {value}": replace(H, kill_after=value) for value in (1, 3)},
}
"""δ has an experiment of its own (stop), the gradient too (terms). Each is one that the configuration takes: where
w₁ + w₂ would pass 1 the other gives way.
"""
_DULL = ("α", "β", "λ")

NEAR_BEST = Claim(
    "The defaults are near the best: no single change of one value solves 3 points more for at most a tenth more "
    "calls.",
    "for some value the whole interval is above 3 points, while calls rise by at most a tenth",
)
WEIGHTS = Claim(
    "The weights α, β and λ matter: they reach decisions only through |∇L| against ε, and still move the result.",
    "for none of their values an interval, of solved or of calls, is clear of 0",
)


def cells() -> dict[str, Jobs]:
    """The defaults, and each value."""
    return {name: Jobs(FAULTY, Arm(name, Law, h)) for name, h in {DEFAULT: H, **VALUES}.items()}


def judge(rows: Rows) -> Outcome:
    """Each value against the defaults, job by job."""
    law = traces(rows, DEFAULT)
    base = mean(calls(law), range(len(law)))
    found = {
        name: (difference(solved(other), solved(law)), difference(calls(other), calls(law)))
        for name in VALUES
        for other in (traces(rows, name),)
    }
    better = [name for name, (more, cost) in found.items() if more.low > 0.03 and cost.value <= base / 10]
    moving = [name for name in found if name.startswith(_DULL) and _moves(found[name])]
    findings = (
        Finding(NEAR_BEST, not better, "; ".join(_said(name, found[name]) for name in better) or "none does"),
        Finding(WEIGHTS, bool(moving), "; ".join(_said(name, found[name]) for name in moving) or "none does"),
    )
    lines = tuple((name, more.text(1, 100), cost.text(2)) for name, (more, cost) in found.items())
    note = (
        f"The defaults solve {100 * mean(solved(law), range(len(law))):.1f} % at {base:.1f} calls a job. The claim "
        "about α, β and λ looks at twelve intervals, without a correction for so many."
    )
    table = Table("Each value less the defaults", ("value", "solved, points", "calls"), lines, note)
    title = "Solved with one value changed, less the defaults"
    rows_ = [Bar(name, 100 * each.value, 100 * each.low, 100 * each.high) for name, (each, _) in found.items()]
    return Outcome(findings, (table,), (Picture("sensitivity", title, bars(title, "points", rows_)),))


def _moves(found: tuple[Estimate, Estimate]) -> bool:
    return any(each.above or each.below for each in found)


def _said(name: str, found: tuple[Estimate, Estimate]) -> str:
    return f"{name}: {found[0].text(1, 100)} points, {found[1].text(1)} calls"


EXPERIMENT = Experiment(
    name="sensitivity",
    title="Every value of the control law",
    question="Which values matter, and are the paper's near the best?",
    claims=(NEAR_BEST, WEIGHTS),
    cells=cells,
    judge=judge,
    real="bus and routes, R1 to R4b with their checks, facts and plan rules, the dispatcher, R7 with its law",
    simulated="models, tools, the person, time",
)
