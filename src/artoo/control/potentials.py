"""Memory's decay, stimuli of macro-states, and the thresholds from which it advises, prefers, avoids or forgets.

Source: the paper, sections 6.3 and 6.4, except where SPEC section 5 differs.

    attention = Σ |f|·exp(−k·Δdays)  ≥ 0        decision = Σ σ·f·exp(−k·Δdays)  in [−attention, attention]

The functions are pure: they use no I/O and no clock.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Literal

# If the attention of entries with a valence is below this, there is too little experience for advice.
IGNORE_BELOW = 0.5
# Half of the width of the Caution band, as an absolute value and as a share of the attention.
DECISION_BAND = 0.2
# The Dreamer deletes a megram whose own present magnitude is below this.
FORGET_BELOW = 0.1
PROMOTION_ATTENTION = 5.0
PROMOTION_DECISION = 3.0
# If more than this share of the promotions proves false, the thresholds for a promotion rise.
TOLERATED_RATE = 0.05
MOST_SCALE = 4.0
# The decay k that a rule gets when it is demoted as bankrupt.
DEMOTED_DECAY = 0.05


Advice = Literal["exploit", "avoid", "caution", "ignore"]
"""The advice of the two channels of a tag pair (the values of the contract `MemoryAction`)."""


@dataclass(frozen=True, slots=True)
class Sums:
    """The sums of a pair: both channels, and the part of the attention that has a valence.

    `judged`, in [0, attention], is the part of the attention that comes from entries with σ ≠ 0. An entry without a
    valence (for example a network failure, or a note of the dream cycle) records that something happened, but not
    whether it was good.
    """

    attention: float = 0.0
    decision: float = 0.0
    judged: float = 0.0


@dataclass(frozen=True, slots=True)
class Stimulus:
    """The signal of a megram: the magnitude f in [0, 1], the valence σ in [−1, 1], and the decay k ≥ 0 per day."""

    f: float
    sigma: float
    k: float


# The GGS quantisation matrix, which gives the stimulus for each macro-state.
QUANTISATION: Mapping[str, Stimulus] = MappingProxyType(
    {
        "abandon": Stimulus(0.95, -1.0, 0.05),
        "accept": Stimulus(0.90, 1.0, 0.05),
        "change_approach": Stimulus(0.85, -1.0, 0.05),
        "success": Stimulus(0.80, 1.0, 0.05),
        "break_symmetry": Stimulus(0.75, 1.0, 0.05),
        "change_path": Stimulus(0.30, 0.0, 0.2),
        "refine": Stimulus(0.10, 0.5, 0.5),
    }
)

# The magnitude of a megram that counts against a rule because new evidence contradicts the rule.
DISSONANCE = 0.9
# Local context, such as the place where something was found. It is forgotten after ten days, and it must be
# verified before it is used.
KNOWLEDGE = Stimulus(0.8, 1.0, 0.2)
# A guess of the Dreamer. By itself it is too weak to change the advice from Ignore.
HYPOTHESIS = Stimulus(0.2, 1.0, 0.05)
# A round of the paper's cell 6, which came nearer by a wrong approach. It judges no tool and is remembered for
# three weeks.
SUSPICION = Stimulus(0.3, 0.0, 0.05)
# The note that the Dreamer makes about repeated rounds of cell 6. It is context for a planner of the same intent.
BIAS = Stimulus(0.5, 0.0, 0.05)
# The words of a request of one kind. They contain no judgement and are remembered for five months.
MET = Stimulus(0.5, 0.0, 0.01)
# The magnitude of entries of level C. They do not decay (k = 0), and they never enter the sums.
RULE = 1.0


def failure_stimulus(state: str) -> Stimulus:
    """Return the stimulus of a pair that failed in `state`.

    In `break_symmetry` the failing pairs are anti-patterns like those of `change_approach`. The +.75 in this row of
    the matrix goes to the pairs of the next round if that round matched (SPEC section 5). Raises KeyError if
    `state` is not in the matrix.
    """
    return QUANTISATION["change_approach" if state == "break_symmetry" else state]


def dissonance(rule_sigma: float) -> Stimulus:
    """Return the stimulus that counts against a rule whose valence is `rule_sigma`. If σ ≤ 0, the rule is a
    constraint."""
    return Stimulus(DISSONANCE, -1.0 if rule_sigma > 0 else 1.0, DEMOTED_DECAY)


def retention(k: float, days: float) -> float:
    """Return the share, in [0, 1], of a signal that remains after `days`. Negative days count as 0.

    A record from the future can appear after a clock was set back. If such a record were amplified exponentially,
    it alone would outvote all others.
    """
    return math.exp(-k * days) if days > 0 else 1.0


def classify(sums: Sums) -> Advice:
    """Return the advice about a pair. It is Caution if |decision| ≤ max(.2, .2·judged attention). The bounds are
    included.

    If the judged attention is below .5, there is too little experience for advice, however often the pair was met.
    Entries without a valence do not say how mixed the others are, so they do not widen the band.
    """
    if sums.judged < IGNORE_BELOW:
        return "ignore"
    band = max(DECISION_BAND, DECISION_BAND * sums.judged)
    if sums.decision > band:
        return "exploit"
    if sums.decision < -band:
        return "avoid"
    return "caution"


def contradicts(rule_sigma: float, decision: float) -> bool:
    """Return whether present evidence contradicts a rule. It does if it is negative for a practice, or positive for
    a constraint."""
    return decision < 0 if rule_sigma > 0 else decision > 0


def promotable(attention: float, decision: float, scale: float = 1.0) -> bool:
    """Return whether a cluster is strong and one-sided enough to become a rule. `scale` multiplies both
    thresholds."""
    return attention >= PROMOTION_ATTENTION * scale and abs(decision) >= PROMOTION_DECISION * scale


def holds_as_such(kinds: int, exceptions: int) -> bool:
    """Return whether an observation may be applied to kinds of request that were not seen yet. It was made for
    `kinds` kinds of request, of which `exceptions` disagree.

    By Laplace's rule of succession the next kind is an exception with probability (exceptions + 1) / (kinds + 2). A
    probability of at most one in twenty is allowed. This takes 18 kinds without an exception, or 38 kinds with one.
    """
    return (exceptions + 1) / (kinds + 2) <= TOLERATED_RATE


def promotion_scale(promoted: int, bankrupt: int) -> float:
    """Return the factor, in [1, 4], by which a promotion in this store needs more evidence than the paper requires.

    Of the `promoted` rules, `bankrupt` ones were contradicted later, so their promotions were false. The rate of
    false promotions is estimated with a prior of one in twenty. So an early mistake doubles the thresholds, and a
    late one changes nothing.
    """
    rate = (bankrupt + 1) / (max(promoted, bankrupt) + 1 / TOLERATED_RATE)
    return min(MOST_SCALE, max(1.0, rate / TOLERATED_RATE))
