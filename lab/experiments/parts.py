"""Group 2, second half: memory without each of its parts."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from lab.experiment import Claim, Experiment, Finding, Outcome, Rows, Table
from lab.experiments.memory import FULL, KNOWS, NONE, by_life, calls_of, ratio_of, table_of
from lab.lives import Lives, Memory, attention_alone, decision_alone, fixed_band, no_band
from lab.statistics import bootstrap

PARTS: Mapping[str, Lives] = {
    "without the Dreamer": Lives(Memory(dreams=False)),
    "without decay": Lives(Memory(decays=False)),
    "without a Caution band": Lives(Memory(classify=no_band)),
    "the paper's fixed band": Lives(Memory(classify=fixed_band)),
    "decision channel alone": Lives(Memory(classify=decision_alone)),
    "attention channel alone": Lives(Memory(classify=attention_alone)),
}
ARMS: Mapping[str, Lives] = {
    NONE: Lives(None),
    FULL: Lives(Memory()),
    KNOWS: Lives(None, knows=True),
    **PARTS,
}

NO_HARM = Claim(
    "No part of memory does harm: without it the regret is not smaller.",
    "without one of them the regret is significantly smaller",
    "withdrawn: docs/memory.md says which part was seen to cost more than it saves.",
)
EACH_SAVES = Claim(
    "Each part of memory saves: without it the regret is larger.",
    "for one of them the interval of the difference contains 0 or is below it",
    "withdrawn: the first page names the parts that were not seen to help in this world.",
)


def judge(rows: Rows) -> Outcome:
    """Judge the calls of each job beyond the whole memory's, by life."""
    lives = by_life(rows, ARMS)

    def more(name: str, at: Sequence[int]) -> float:
        return calls_of(lives[name], at) - calls_of(lives[FULL], at)

    against = {name: bootstrap(len(lives[name]), lambda at, name=name: more(name, at)) for name in PARTS}
    better = [name for name in PARTS if against[name].below]
    idle = [name for name in PARTS if not (against[name].below or against[name].above)]
    lines = tuple((name, each.text(2)) for name, each in against.items())
    return Outcome(
        (
            Finding(NO_HARM, not better, ", ".join(better) or "no removal helps"),
            Finding(EACH_SAVES, not (idle or better), f"not clear of 0: {', '.join(idle) or 'none'}"),
        ),
        (
            Table("Calls a job without a part, less the whole memory's", ("part", "calls"), lines),
            table_of(lives, {name: ratio_of(lives, name, NONE) for name in (FULL, *PARTS)}),
        ),
    )


EXPERIMENT = Experiment(
    unit="lives",
    name="parts",
    title="Memory without each of its parts",
    question="Which of decay, the two channels, the Caution band and the Dreamer are seen to save calls?",
    claims=(NO_HARM, EACH_SAVES),
    cells=lambda: ARMS,
    judge=judge,
    tasks=4,
    piece=1,
    real="bus and routes, all roles, R7's lessons, the store with writer and sums, calibration, the Dreamer",
    simulated="models (the Dreamer's too), tools, the person, time",
)
