"""Group 2: memory in lives of a hundred jobs, in whose middle half of what was right becomes wrong."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import cast

from lab.experiment import Claim, Experiment, Finding, Outcome, Picture, Rows, Table
from lab.lives import INTENTS, LENGTH, NONE_ALIKE, TWO_ALIKE, WHAT_IS_THE, Lived, Lives, Memory
from lab.plot import Line, lines
from lab.statistics import Estimate, bootstrap

NONE, FULL, KNOWS = "no memory", "memory", "oracle"
WORDED = {wording: f"memory, {wording}" for wording in (TWO_ALIKE, WHAT_IS_THE, NONE_ALIKE)}
ARMS: Mapping[str, Lives] = {
    NONE: Lives(None),
    FULL: Lives(Memory()),
    **{name: Lives(Memory(), wording=wording) for wording, name in WORDED.items()},
    KNOWS: Lives(None, knows=True),
}
WORDINGS_TRIED = (FULL, *WORDED.values())
MOST_REGRET: Mapping[str, float] = dict(zip(WORDINGS_TRIED, (0.6, 0.7, 0.75, 1.02), strict=True))
MOST_FALSE, MOST_TASKS = 1.0, 10.0

REGRET = Claim(
    "Memory saves however requests are worded: its regret (calls beyond what an oracle needs), as a share of that "
    "without memory, is at most .6 with kinds that have words of their own, .7 where two begin alike and .75 where "
    "all do; and where no two requests are alike, memory does no harm (1.02).",
    "a ratio is above its bound",
)
FALSE_RULES = Claim(
    "False rules are rare: at most 1 in 100 jobs.",
    "more than one promoted rule in 100 jobs forbids a tool that is right for something, or recommends one that is "
    "right for nothing",
)
UNLEARNT = Claim(
    "What became wrong is unlearnt within 10 jobs that use it.",
    "on average the tool that was right before is chosen first for more than 10 jobs of an intent that drifted",
)


def cells() -> Mapping[str, Lives]:
    """Return every arm, with the same lives."""
    return ARMS


def judge(rows: Rows) -> Outcome:
    """Judge by life: jobs of one life depend on each other, so lives are what is drawn again."""
    lives = by_life(rows, ARMS)
    ratio = {name: ratio_of(lives, name, NONE) for name in WORDINGS_TRIED}
    everything = [each for name in WORDINGS_TRIED for life in lives[name] for each in life]
    false = 100 * sum(each.false for each in everything) / len(everything)
    stale = _stale(lives[FULL])
    findings = (
        Finding(
            REGRET,
            all(ratio[name].value <= most for name, most in MOST_REGRET.items()),
            "; ".join(f"{name}: {ratio[name].text(2)}" for name in MOST_REGRET),
        ),
        Finding(
            FALSE_RULES,
            false <= MOST_FALSE,
            f"{false:.2f} false rules in 100 jobs, of {sum(each.promoted for each in everything)} rules made in "
            f"{len(everything)} jobs; those about a kind of request alone name no tool and cannot be false",
        ),
        Finding(UNLEARNT, stale <= MOST_TASKS, f"{stale:.1f} jobs on average"),
    )
    return Outcome(findings, (table_of(lives, ratio),), (_picture(lives),), (_reading(lives),))


Life = list[Lived]


def by_life(rows: Rows, arms: Collection[str]) -> dict[str, list[Life]]:
    """Return the jobs of each arm, life by life."""
    found = dict[str, list[Life]]()
    for name in arms:
        lives: dict[int, Life] = {}
        for each in cast("Sequence[Lived]", rows[name]):
            lives.setdefault(each.life, []).append(each)
        found[name] = [lives[number] for number in sorted(lives)]
    return found


def calls_of(lives: Sequence[Life], at: Sequence[int]) -> float:
    """Return the model calls of each job, in the lives at these positions."""
    return sum(each.calls for number in at for each in lives[number]) / sum(len(lives[number]) for number in at)


def ratio_of(lives: Mapping[str, list[Life]], name: str, other: str) -> Estimate:
    """Return the regret of one arm as a share of the other's."""

    def statistic(at: Sequence[int]) -> float:
        least = calls_of(lives[KNOWS], at)
        return (calls_of(lives[name], at) - least) / max(1e-9, calls_of(lives[other], at) - least)

    return bootstrap(len(lives[name]), statistic)


def _stale(lives: Sequence[Life]) -> float:
    """Return the jobs of a drifted intent until the outdated tool is not chosen first any more.

    For the intents for which it was the first choice when the drift came.
    """
    lengths = list[int]()
    for life in lives:
        for intent in range(len(INTENTS)):
            after = [each.outdated for each in life if each.intent == intent and each.drifted]
            if after and after[0]:
                lengths.append(next((number for number, each in enumerate(after) if not each), len(after)))
    return sum(lengths) / len(lengths) if lengths else 0.0


def table_of(lives: Mapping[str, list[Life]], ratio: Mapping[str, Estimate]) -> Table:
    """Return a line for each arm."""
    lines_ = list[tuple[str, ...]]()
    for name, found in lives.items():
        everything = [each for life in found for each in life]
        late = [each for each in everything if each.drifted]
        lines_.append(
            (
                name,
                ratio[name].text(2) if name in ratio else "",
                f"{calls_of(found, range(len(found))):.2f}",
                _share([each.solved for each in everything]),
                _share([each.right for each in everything]),
                _share([each.right for each in late]),
                f"{_stale(found):.1f}",
                f"{100 * sum(each.false for each in everything) / len(everything):.2f}",
            )
        )
    columns = (
        *("arm", "regret / regret without memory", "calls a job", "solved, %", "right first, %"),
        *("the same after drift", "jobs to unlearn", "false rules in 100 jobs"),
    )
    note = (
        "Regret is calls a job less the oracle's. Right first: R2's first choice is the tool that is right now. "
        "After drift: jobs of intents whose tool has changed."
    )
    return Table("Under drift", columns, tuple(lines_), note)


def _share(values: Sequence[bool]) -> str:
    return f"{100 * sum(values) / max(1, len(values)):.1f}"


def _picture(lives: Mapping[str, list[Life]]) -> Picture:
    width = 10
    series = [
        Line(
            name,
            tuple(
                (
                    float(start + width / 2),
                    calls_of(
                        [[each for each in life if start <= each.at < start + width] for life in found], everybody
                    )
                    - calls_of(
                        [[e for e in life if start <= e.at < start + width] for life in lives[KNOWS]], everybody
                    ),
                )
                for start in range(0, LENGTH, width)
            ),
        )
        for name, found in lives.items()
        for everybody in (range(len(found)),)
        if name != KNOWS
    ]
    title = "Regret over a life; the drift is at 50"
    return Picture("memory-regret", title, lines(title, "job of the life", "calls beyond the oracle's", series))


def _reading(lives: Mapping[str, list[Life]]) -> str:
    return f"{len(lives[FULL])} lives of {LENGTH} jobs an arm; the intervals are over lives, and wide for that."


EXPERIMENT = Experiment(
    unit="lives",
    name="memory",
    title="Memory under drift",
    question="Does what is remembered save calls, and is it forgotten in time when it stops being true?",
    claims=(REGRET, FALSE_RULES, UNLEARNT),
    cells=cells,
    judge=judge,
    tasks=4,
    piece=1,
    real="bus and routes, all roles, R7's lessons, the store with writer and sums, calibration, the Dreamer",
    simulated="models (the Dreamer's too), tools, the person, time",
)
