"""What must hold on a healthy stream, one small rule each. `artoo.auditor.watch` applies them."""

from __future__ import annotations

from artoo.auditor.rules import (
    ending,
    envelopes,
    execution,
    fan_in,
    guards,
    judging,
    outcomes,
    planning,
    settling,
    solving,
)
from artoo.auditor.rules.rule import Rule

ALL_RULES: tuple[Rule, ...] = (
    *envelopes.RULES,
    *planning.RULES,
    *execution.RULES,
    *judging.RULES,
    *outcomes.RULES,
    *fan_in.RULES,
    *solving.RULES,
    *ending.RULES,
    *guards.RULES,
    *settling.RULES,
)
