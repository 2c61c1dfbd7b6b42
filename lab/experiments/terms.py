"""Group 1, second half: the control law with each of its own terms taken out, or put as the paper has it."""

from __future__ import annotations

from artoo.control.hyperparameters import Hyperparameters
from lab.cells import WORLDS, Jobs, calls, in_both_worlds, named, solved, traces
from lab.experiment import Claim, Experiment, Finding, Outcome, Picture, Rows, Table
from lab.laws import (
    AllEnvironmental,
    AllLogical,
    Arm,
    Cell6Refines,
    Law,
    NoGradient,
    NoTargets,
    NoTools,
    TargetsLate,
)
from lab.plot import Bar, bars
from lab.statistics import Estimate, difference, mean

LAW = "the law"
REMOVED: tuple[Arm, ...] = (
    Arm("without ∇L (always a plateau)", NoGradient),
    Arm("without P: all logical", AllLogical),
    Arm("without P: all environmental", AllEnvironmental),
    Arm("without the Ω stop (θ = 1)", Law, Hyperparameters(theta=1.0)),
    Arm("without D ≤ δ (δ = 0)", Law, Hyperparameters(delta=0.0)),
    Arm("without the kill switch", Law, Hyperparameters(kill_after=99)),
    Arm("without blocked tools", NoTools),
    Arm("without blocked targets", NoTargets),
)
CHANGED: tuple[Arm, ...] = (
    Arm("the paper's gradient", Law, Hyperparameters(gradient="paper")),
    Arm("targets blocked only after a wrong approach", TargetsLate),
    Arm("cell 6 refines, as in v0.7", Cell6Refines),
)

EARNS = Claim(
    "Every term of the law earns its place: taking it out does not solve significantly more at no more calls.",
    "for some term, in some world, the interval of (without − with) solved is all above 0 while calls do not rise",
)
USED = Claim(
    "Every term of the law changes something: taking it out costs solved jobs or calls in at least one world.",
    "for some term all intervals, solved and calls, in both worlds contain 0",
    "withdrawn. θ and the kill switch stay as bounds, which these worlds do not reach; blocked tools stay because "
    "the specification has them, and docs/design/lab.md says that they were not seen to help.",
)
EQUAL_COST = Claim(
    "Taking the gradient at equal cost is no worse than the paper's L_t − L_{t−1}.",
    "in some world the paper's gradient solves significantly more",
)
CELL_6 = Claim(
    "The paper is right about cell 6: a falling loss with a wrong approach is no reason to refine.",
    "in some world refining in cell 6, as v0.7 did, solves significantly more",
)
TARGETS = Claim(
    "Blocking targets after every directive, as the paper has it, is no worse than after a wrong approach only.",
    "in some world blocking them only after a wrong approach solves significantly more",
)


def cells() -> dict[str, Jobs]:
    """The law and every variant in both worlds."""
    return in_both_worlds((Arm(LAW, Law), *REMOVED, *CHANGED))


def judge(rows: Rows) -> Outcome:
    """Paired differences from the law, job by job."""
    found = {
        (world, arm.name): _compared(rows, world, arm.name) for world in WORLDS for arm in (*REMOVED, *CHANGED)
    }
    tables = tuple(_table(world, rows, found) for world in WORLDS)
    pictures = tuple(_picture(world, found) for world in WORLDS)
    return Outcome(_findings(found), tables, pictures)


Compared = dict[tuple[str, str], tuple[Estimate, Estimate]]


def _compared(rows: Rows, world: str, name: str) -> tuple[Estimate, Estimate]:
    law, other = traces(rows, named(world, LAW)), traces(rows, named(world, name))
    return difference(solved(other), solved(law)), difference(calls(other), calls(law))


def _findings(found: Compared) -> tuple[Finding, ...]:
    removed = [arm.name for arm in REMOVED]
    useless = [key for key, (more, cost) in found.items() if key[1] in removed and more.above and not cost.above]
    idle = [
        name
        for name in removed
        if not any(each.above or each.below for world in WORLDS for each in found[world, name])
    ]
    return (
        Finding(EARNS, not useless, _said(found, useless) or "no removal solves more for as few calls"),
        Finding(USED, not idle, ", ".join(idle) or "each changes something"),
        *(
            Finding(claim, not any(found[world, name][0].above for world in WORLDS), _said(found, _keys(name)))
            for claim, name in zip((EQUAL_COST, TARGETS, CELL_6), (arm.name for arm in CHANGED), strict=True)
        ),
    )


def _keys(name: str) -> list[tuple[str, str]]:
    return [(world, name) for world in WORLDS]


def _said(found: Compared, keys: list[tuple[str, str]]) -> str:
    return "; ".join(
        f"{world}, {name}: {found[world, name][0].text(1, 100)} points, {found[world, name][1].text(1)} calls"
        for world, name in keys
    )


def _table(world: str, rows: Rows, found: Compared) -> Table:
    law = traces(rows, named(world, LAW))
    lines = [
        (
            arm.name,
            found[world, arm.name][0].text(1, 100),
            found[world, arm.name][1].text(2),
            _rest(rows, world, arm),
        )
        for arm in (*REMOVED, *CHANGED)
    ]
    everybody = range(len(law))
    note = (
        f"The law itself solves {100 * mean(solved(law), everybody):.1f} % at {mean(calls(law), everybody):.1f} "
        f"calls, and has {sum(each.redundant for each in law) / len(law):.2f} redundant steps a job."
    )
    columns = ("variant", "solved − law, points", "calls − law", "redundant steps")
    return Table(f"The {world} world: each variant less the law, job by job", columns, tuple(lines), note)


def _rest(rows: Rows, world: str, arm: Arm) -> str:
    other = traces(rows, named(world, arm.name))
    return f"{sum(each.redundant for each in other) / len(other):.2f}"


def _picture(world: str, found: Compared) -> Picture:
    title = f"Solved without a term, less the law, {world} world"
    rows = [
        Bar(arm.name, 100 * one.value, 100 * one.low, 100 * one.high)
        for arm in (*REMOVED, *CHANGED)
        for one in (found[world, arm.name][0],)
    ]
    return Picture(f"terms-{world}", title, bars(title, "points", rows))


EXPERIMENT = Experiment(
    name="terms",
    title="The control law without each of its terms",
    question="Which terms of the law earn their place, and where does the paper's own form do better?",
    claims=(EARNS, USED, EQUAL_COST, TARGETS, CELL_6),
    cells=cells,
    judge=judge,
    real="bus and routes, R1 to R4b with their checks, facts and plan rules, the dispatcher, R7 with its law",
    simulated="models, tools, the person, time",
)
