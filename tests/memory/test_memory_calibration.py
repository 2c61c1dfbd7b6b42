from __future__ import annotations

from artoo.contracts.memory import MemoryAction, Potentials, SOPRecord
from artoo.contracts.tags import Pair, macro_pair, tool_pair
from artoo.control.potentials import Sums, classify
from artoo.memory.calibration import ENTRIES, calibration
from artoo.testing.clock import FakeClock


def live(pair: Pair, attention: float, decision: float) -> Potentials:
    """A pair's potentials."""
    return Potentials(
        space=pair.space,
        entity=pair.entity,
        attention=attention,
        decision=decision,
        action=MemoryAction(classify(Sums(attention, decision, attention))),
    )


def rule(name: str, pair: Pair, sigma: float) -> SOPRecord:
    """A C-level rule."""
    return SOPRecord(
        id=name,
        space=pair.space,
        entity=pair.entity,
        content=f"rule {name}",
        f=1.0,
        sigma=sigma,
        created_at=FakeClock().now(),
    )


def test_actions_become_lists() -> None:
    """Exploit is SHOULD PREFER, Avoid is MUST NOT, Caution is CAUTION, Ignore is nothing."""
    advice = calibration(
        [
            live(tool_pair("a"), 1, 0.9),
            live(tool_pair("b"), 1, -0.9),
            live(tool_pair("c"), 1, 0.1),
            live(tool_pair("d"), 0.4, 0.4),
        ],
        [],
    )
    assert [entry.pair for entry in advice.should_prefer] == [tool_pair("a")]
    assert [entry.pair for entry in advice.must_not] == [tool_pair("b")]
    assert [entry.pair for entry in advice.caution] == [tool_pair("c")]


def test_rules_by_sign() -> None:
    """σ > 0 is SHOULD PREFER; anything else MUST NOT, enforced when it names a tool."""
    advice = calibration(
        [], [rule("p", tool_pair("a"), 1), rule("n", tool_pair("b"), 0), rule("m", macro_pair("x y z"), -1)]
    )
    assert [entry.rule_id for entry in advice.should_prefer] == ["p"]
    assert {entry.rule_id: entry.enforced for entry in advice.must_not} == {"n": True, "m": False}


def test_macro_avoid_is_advice() -> None:
    """That an intent went badly is told to the planner, and refuses no plan."""
    (entry,) = calibration([live(macro_pair("x y z"), 1, -0.9)], []).must_not
    assert not entry.enforced


def test_fresh_evidence_overrules_a_rule() -> None:
    """A rule that live evidence contradicts is reported and left out; weak or mixed evidence overrules nothing."""
    pair = tool_pair("a")
    overruled = calibration([live(pair, 2, -1.5)], [rule("p", pair, 1)])
    assert [entry.rule_id for entry in overruled.contradicted] == ["p"]
    assert overruled.should_prefer == ()
    assert [entry.rule_id for entry in overruled.must_not] == [None]
    for weak in (live(pair, 0.4, -0.4), live(pair, 2, -0.1), live(pair, 2, 1.5)):
        assert calibration([weak], [rule("p", pair, 1)]).contradicted == ()
    constraint = calibration([live(pair, 2, 1.5)], [rule("n", pair, -1)])
    assert [entry.rule_id for entry in constraint.contradicted] == ["n"]


def test_at_most_ten() -> None:
    """Ten entries in all: what forbids first, then what warns, then what recommends; stronger first."""
    potentials = [live(tool_pair(f"bad{number}"), 1 + number, -1 - number) for number in range(8)]
    potentials += [live(tool_pair(f"good{number}"), 1 + number, 1 + number) for number in range(8)]
    advice = calibration(potentials, [rule("n", tool_pair("z"), -1)])
    assert len(advice.must_not) + len(advice.caution) + len(advice.should_prefer) == ENTRIES
    assert advice.must_not[0].rule_id == "n"
    assert advice.must_not[1].pair == tool_pair("bad7")
    assert [entry.pair for entry in advice.should_prefer] == [tool_pair("good7")]
