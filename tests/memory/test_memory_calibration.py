from __future__ import annotations

from artoo.contracts.memory import MemoryAction, Potentials, SOPRecord
from artoo.contracts.tags import Pair, kind_pair, macro_pair, micro_pair, tool_pair
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


def test_a_rule_of_which_experience_has_become_mixed_is_not_said() -> None:
    """Neither recommended nor forbidden is what works as often as not; the caution is said, and no dissonance."""
    pair = kind_pair("a", "sort my mail")
    for sigma in (1, -1):
        found = calibration([live(pair, 2, -0.1)], [rule("r", pair, sigma)])
        assert (found.should_prefer, found.must_not, found.contradicted) == ((), (), ())
        assert [entry.pair for entry in found.caution] == [pair]


def test_at_most_ten() -> None:
    """Ten entries in all: what forbids first, then what warns, then what recommends; stronger first."""
    potentials = [live(tool_pair(f"bad{number}"), 1 + number, -1 - number) for number in range(8)]
    potentials += [live(tool_pair(f"good{number}"), 1 + number, 1 + number) for number in range(8)]
    advice = calibration(potentials, [rule("n", tool_pair("z"), -1)])
    assert len(advice.must_not) + len(advice.caution) + len(advice.should_prefer) == ENTRIES
    assert advice.must_not[0].rule_id == "n"
    assert advice.must_not[1].pair == tool_pair("bad7")
    assert [entry.pair for entry in advice.should_prefer] == [tool_pair("good7")]


def test_a_kind_of_request_speaks_before_the_tool_as_such() -> None:
    """Where this kind of request has an experience of its own, what was learnt with others is not said."""
    good, bad = live(tool_pair("a"), 3, 3), live(kind_pair("a", "sort my mail"), 1, -0.9)
    found = calibration([good, bad], [])
    assert [entry.pair for entry in found.must_not] == [bad.pair] and found.should_prefer == ()
    unknown = live(kind_pair("a", "sort my mail"), 0.3, -0.3)
    assert [entry.pair for entry in calibration([good, unknown], []).should_prefer] == [good.pair]


def test_a_kind_of_request_is_excepted_from_a_rule() -> None:
    """A rule about a tool as such does not reach a kind of request that knows better; nothing is contradicted."""
    never, always = rule("n", tool_pair("a"), -1), rule("p", tool_pair("b"), 1)
    here = [live(kind_pair("a", "sort my mail"), 2, 1.8), live(kind_pair("b", "sort my mail"), 2, -1.8)]
    found = calibration(here, [never, always])
    assert not found.contradicted
    assert [entry.rule_id for entry in (*found.must_not, *found.should_prefer)] == [None, None]
    mixed = calibration([live(kind_pair("a", "sort my mail"), 2, 0.1)], [never])
    assert [entry.rule_id for entry in mixed.must_not] == ["n"]


def test_tools_as_such_are_said_last() -> None:
    """Many tools that failed elsewhere do not crowd out what is known of this request."""
    wide = [live(tool_pair(f"bad{number}"), 5, -5) for number in range(ENTRIES)]
    own = [live(kind_pair("a", "sort my mail"), 1, 0.9), live(micro_pair("b", "x"), 1, 0.1)]
    found = calibration([*wide, *own], [])
    assert [entry.pair for entry in (*found.should_prefer, *found.caution)] == [each.pair for each in own]
    assert len(found.must_not) == ENTRIES - 2


def test_recommended_is_what_was_good_and_not_what_was_met_often() -> None:
    """Attention says where to look, decision what to do."""
    often, good = live(micro_pair("often", "x"), 9, 2), live(micro_pair("good", "x"), 3, 3)
    assert [entry.pair for entry in calibration([often, good], []).should_prefer] == [good.pair, often.pair]
