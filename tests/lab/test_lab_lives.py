"""What a life of the lab counts as a false rule."""

from __future__ import annotations

from artoo.contracts.memory import MemoryChange
from artoo.contracts.tags import Pair, kind_pair, label, macro_pair, tool_pair
from lab.lives import INTENTS, LIFE, Truth

TRUTH = Truth(5, 0, LIFE.names)


def rule(pair: Pair, kind: str) -> MemoryChange:
    """What the Dreamer reports of a rule that it has made."""
    return MemoryChange(megram_id="r", space=pair.space, entity=pair.entity, reason=f"{kind}: attention 6.0")


def test_a_rule_is_false_where_it_speaks() -> None:
    """One for a kind of request is held against that kind, one about a tool as such against all."""
    here = TRUTH.right(0, 0)
    elsewhere = next(tool for at in range(len(INTENTS)) if (tool := TRUTH.right(at, 0)) != here)
    nowhere = next(tool for tool in LIFE.names if tool not in {TRUTH.right(at, 0) for at in range(len(INTENTS))})
    false = {
        (kind, pair)
        for kind in ("constraint", "best practice")
        for tool in (here, elsewhere, nowhere)
        for pair in (kind_pair(tool, INTENTS[0]), tool_pair(tool))
        if TRUTH.false(rule(pair, kind), 0, {label(INTENTS[0]): {0}})
    }
    assert false == {
        ("constraint", kind_pair(here, INTENTS[0])),
        ("constraint", tool_pair(here)),
        ("constraint", tool_pair(elsewhere)),
        ("best practice", kind_pair(elsewhere, INTENTS[0])),
        ("best practice", kind_pair(nowhere, INTENTS[0])),
        ("best practice", tool_pair(nowhere)),
    }


def test_rules_about_no_tool_are_not_judged() -> None:
    """What an intent is like has no truth in this world."""
    assert not TRUTH.false(rule(macro_pair(INTENTS[0]), "constraint"), 0, {label(INTENTS[0]): {0}})
