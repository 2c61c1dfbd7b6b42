"""Group 5: every hyperparameter of the law, one at a time, in the faulty world."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from artoo.control.hyperparameters import Hyperparameters
from lab.cells import Jobs, base, calls, paired, traces
from lab.experiment import Claim, Experiment, Finding, Outcome, Rows, Table
from lab.laws import Arm, Law
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
    "Another value of α, β or λ is seen to move the result: they reach decisions only through |∇L| against ε.",
    "for none of their values an interval, of solved or of calls, is clear of 0",
    "withdrawn: no document says that α, β and λ matter at these values.",
)


def cells() -> dict[str, Jobs]:
    """Return the defaults, and each value."""
    return {name: Jobs(FAULTY, Arm(name, Law, h)) for name, h in {DEFAULT: H, **VALUES}.items()}


def judge(rows: Rows) -> Outcome:
    """Judge each value against the defaults, job by job."""
    law = calls(traces(rows, DEFAULT))
    tenth = sum(law) / len(law) / 10
    found = {name: paired(rows, name, DEFAULT) for name in VALUES}
    better = [name for name, each in found.items() if each.solved.low > 0.03 and each.calls.value <= tenth]
    moving = [name for name in found if name.startswith(_DULL) and found[name].moves]
    findings = (
        Finding(NEAR_BEST, not better, "; ".join(found[name].said(name) for name in better) or "none does"),
        Finding(WEIGHTS, bool(moving), "; ".join(found[name].said(name) for name in moving) or "none does"),
    )
    lines = tuple(each.cells(name) for name, each in found.items())
    note = (
        f"The defaults solve {base(rows, DEFAULT)}. The claim about α, β and λ looks at twelve intervals, "
        "without a correction for so many."
    )
    return Outcome(
        findings, (Table("Each value less the defaults", ("value", "solved, points", "calls"), lines, note),)
    )


EXPERIMENT = Experiment(
    name="sensitivity",
    title="Every value of the control law",
    question="Which values matter, and are the paper's near the best?",
    claims=(NEAR_BEST, WEIGHTS),
    cells=cells,
    judge=judge,
    tasks=60,
    real="bus and routes, R1 to R4b with their checks, facts and plan rules, the dispatcher, R7 with its law",
    simulated="models, tools, the person, time",
)
