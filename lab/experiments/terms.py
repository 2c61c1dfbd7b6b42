"""Group 1, second half: the control law with each of its own terms taken out, or put as the paper has it."""

from __future__ import annotations

from artoo.control.hyperparameters import Hyperparameters
from lab.cells import WORLDS, Jobs, Paired, base, in_both_worlds, named, paired
from lab.experiment import Claim, Experiment, Finding, Outcome, Rows, Table
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

NO_HARM = Claim(
    "No term of the law does harm: taking it out does not solve significantly more at no more calls.",
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
    """Return the law and every variant in both worlds."""
    return in_both_worlds((Arm(LAW, Law), *REMOVED, *CHANGED))


Compared = dict[tuple[str, str], Paired]


def judge(rows: Rows) -> Outcome:
    """Judge paired differences from the law, job by job."""
    found = {
        (world, arm.name): paired(rows, named(world, arm.name), named(world, LAW))
        for world in WORLDS
        for arm in (*REMOVED, *CHANGED)
    }
    return Outcome(_findings(found), tuple(_table(world, rows, found) for world in WORLDS))


def _findings(found: Compared) -> tuple[Finding, ...]:
    removed = [arm.name for arm in REMOVED]
    better = [
        key for key, each in found.items() if key[1] in removed and each.solved.above and not each.calls.above
    ]
    idle = [name for name in removed if not any(found[world, name].moves for world in WORLDS)]
    return (
        Finding(NO_HARM, not better, _said(found, better) or "no removal solves more for as few calls"),
        Finding(USED, not idle, ", ".join(idle) or "each changes something"),
        *(
            Finding(
                claim,
                not any(found[world, name].solved.above for world in WORLDS),
                _said(found, [(world, name) for world in WORLDS]),
            )
            for claim, name in zip((EQUAL_COST, TARGETS, CELL_6), (arm.name for arm in CHANGED), strict=True)
        ),
    )


def _said(found: Compared, keys: list[tuple[str, str]]) -> str:
    return "; ".join(found[key].said(", ".join(key)) for key in keys)


def _table(world: str, rows: Rows, found: Compared) -> Table:
    lines = tuple(found[world, arm.name].cells(arm.name) for arm in (*REMOVED, *CHANGED))
    columns = ("variant", "solved − law, points", "calls − law")
    note = f"The law itself solves {base(rows, named(world, LAW))}."
    return Table(f"The {world} world: each variant less the law, job by job", columns, lines, note)


EXPERIMENT = Experiment(
    name="terms",
    title="The control law without each of its terms",
    question="Which terms of the law are seen to change anything, and where does the paper's own form do better?",
    claims=(NO_HARM, USED, EQUAL_COST, TARGETS, CELL_6),
    cells=cells,
    judge=judge,
    real="bus and routes, R1 to R4b with their checks, facts and plan rules, the dispatcher, R7 with its law",
    simulated="models, tools, the person, time",
)
