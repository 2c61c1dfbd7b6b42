"""Memory's decay, stimuli of macro-states, and the thresholds from which it advises, prefers, avoids or forgets.

Source: the paper, sections 6.3 and 6.4, except where SPEC section 5 differs.

    attention = Σ |f|·exp(−k·Δdays)  ≥ 0        decision = Σ σ·f·exp(−k·Δdays)  in [−attention, attention]

Pure: no I/O, no clock.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Literal

# Below this attention (of entries with a valence) there is too little experience for advice.
IGNORE_BELOW = 0.5
# Half-width of the Caution band, absolute and as a share of the attention.
DECISION_BAND = 0.2
# A megram whose own live magnitude is below this is deleted by the Dreamer.
FORGET_BELOW = 0.1
PROMOTION_ATTENTION = 5.0
PROMOTION_DECISION = 3.0
# If more than this share of promotions proves false, the thresholds for a promotion rise.
TOLERATED_RATE = 0.05
MOST_SCALE = 4.0
# The decay k of a rule after it was demoted as bankrupt.
DEMOTED_DECAY = 0.05


Advice = Literal["exploit", "avoid", "caution", "ignore"]
"""The advice of the two channels of a tag pair (the values of the contract `MemoryAction`)."""


@dataclass(frozen=True, slots=True)
class Sums:
    """The sums of a pair: both channels, and the part of the attention that has a valence.

    `judged` in [0, attention]: the part of the attention from entries with σ ≠ 0. An entry without a valence (for
    example a network failure, or a note of the dream cycle) records that something happened, not whether it was
    good.
    """

    attention: float = 0.0
    decision: float = 0.0
    judged: float = 0.0


@dataclass(frozen=True, slots=True)
class Stimulus:
    """A megram's signal: magnitude f in [0, 1], valence σ in [−1, 1], decay k ≥ 0 per day."""

    f: float
    sigma: float
    k: float


# The GGS quantisation matrix: macro-state → stimulus.
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

# Magnitude of the megram that counts against a rule which new evidence contradicts.
DISSONANCE = 0.9
# Local context (where a named thing was found): forgotten after ten days, must be verified before use.
KNOWLEDGE = Stimulus(0.8, 1.0, 0.2)
# A guess of the Dreamer, too weak to leave Ignore by itself.
HYPOTHESIS = Stimulus(0.2, 1.0, 0.05)
# A round of the paper's cell 6 (nearer by a wrong approach). It judges no tool and is remembered for three weeks.
SUSPICION = Stimulus(0.3, 0.0, 0.05)
# The Dreamer's note about repeated cell-6 rounds: context for a planner of the same intent.
BIAS = Stimulus(0.5, 0.0, 0.05)
# The words of a request of one kind. They contain no judgement and are remembered for five months.
MET = Stimulus(0.5, 0.0, 0.01)
# Magnitude of C-level entries; they do not decay (k = 0) and never enter the sums.
RULE = 1.0


def failure_stimulus(state: str) -> Stimulus:
    """Return the stimulus of a pair that failed in `state`.

    In `break_symmetry` the failing pairs are anti-patterns like those of `change_approach`. The row's own +.75
    goes to the pairs of the next round if it matched (SPEC section 5). Raises KeyError if `state` is not in the
    matrix.
    """
    return QUANTISATION["change_approach" if state == "break_symmetry" else state]


def dissonance(rule_sigma: float) -> Stimulus:
    """Return the stimulus that counts against a rule of valence `rule_sigma` (σ ≤ 0 is a constraint)."""
    return Stimulus(DISSONANCE, -1.0 if rule_sigma > 0 else 1.0, DEMOTED_DECAY)


def retention(k: float, days: float) -> float:
    """Return the share in [0, 1] of a signal that remains after `days`. Negative days count as 0.

    A record from the future appears after a clock was set back. If it were amplified exponentially, that one record
    would outvote all others.
    """
    return math.exp(-k * days) if days > 0 else 1.0


def classify(sums: Sums) -> Advice:
    """Classify the advice about a pair. Caution is |decision| ≤ max(.2, .2·judged attention), bounds included.

    Below .5 of judged attention there is too little experience for advice, whatever the number of encounters.
    Entries without a valence contain no information about how mixed the others are, so they do not widen the band.
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
    """Check whether live evidence contradicts a rule: it is negative for a practice, positive for a constraint."""
    return decision < 0 if rule_sigma > 0 else decision > 0


def promotable(attention: float, decision: float, scale: float = 1.0) -> bool:
    """Check whether a cluster is strong and one-sided enough for a rule. `scale` multiplies both thresholds."""
    return attention >= PROMOTION_ATTENTION * scale and abs(decision) >= PROMOTION_DECISION * scale


def holds_as_such(kinds: int, exceptions: int) -> bool:
    """Check whether an observation about `kinds` kinds of request, of which `exceptions` disagree, may be applied
    to kinds that were not seen yet.

    By Laplace's rule of succession the next kind is an exception with probability (exceptions + 1) / (kinds + 2).
    At most one in twenty is allowed, which takes 18 kinds without an exception, or 38 with one.
    """
    return (exceptions + 1) / (kinds + 2) <= TOLERATED_RATE


def promotion_scale(promoted: int, bankrupt: int) -> float:
    """Return the factor in [1, 4] by which promotions in this store need more evidence than the paper requires.

    `bankrupt` of the `promoted` rules were contradicted later (false promotions). Their rate is estimated with a
    prior of one in twenty, so that an early mistake doubles the thresholds and a late one changes nothing.
    """
    rate = (bankrupt + 1) / (max(promoted, bankrupt) + 1 / TOLERATED_RATE)
    return min(MOST_SCALE, max(1.0, rate / TOLERATED_RATE))
