"""What calibration means for a plan: pure functions."""

from __future__ import annotations

from artoo.contracts.memory import Calibration, CalibrationEntry
from artoo.contracts.plan import Caution
from artoo.contracts.tags import Pair, kind_pair, macro_pair, micro_pair, tool_pair
from artoo.loops.medium.advice import Advice, advice_from
from artoo.ports.tools import Parameter, ToolSpec
from artoo.prompts.segments import Segment

READ = ToolSpec("read_file", "reads", (), 1)
GLOB = ToolSpec("glob", "finds", (), 2)
WRITE = ToolSpec("write_file", "writes", (), 3, reads=False, writes=True)
SHELL = ToolSpec("shell", "runs", (), 4, writes=True, languages=("bash",))
SPECS = (READ, GLOB, WRITE, SHELL)


def entry(
    pair: Pair, content: str = "", *, rule: bool = False, bad: float = 0.85, good: float = 0
) -> CalibrationEntry:
    """Advice about a pair, enforced when it names a tool; `bad` and `good` weigh the experiences behind it."""
    return CalibrationEntry(
        space=pair.space,
        entity=pair.entity,
        attention=good + bad,
        decision=good - bad,
        content=content,
        rule_id="r" if rule else None,
        enforced=pair.space.startswith("tool:"),
    )


OWN = ToolSpec("look_up", "looks up a customer", (Parameter("name", "a name"),), 100, special=True)


def test_avoid_binds_where_it_was_learnt() -> None:
    """An avoided pair binds for its target, a tool of the person's own everywhere; an avoided intent is a warning,
    and a lesson about a general tool is none beyond the target that it was learnt on."""
    found = Calibration(
        must_not=(
            entry(tool_pair("glob"), "break_symmetry: no match"),
            entry(tool_pair("shell:find"), "break_symmetry: no match"),
            entry(tool_pair("look_up"), "no longer maintained"),
            entry(micro_pair("read_file", "a.txt")),
            entry(macro_pair("do x"), "was abandoned before (time)"),
        )
    )
    advice = advice_from(found, (*SPECS, OWN))
    assert advice.must_not.tools == ("look_up",)
    assert advice.must_not.targets == (("read_file", "a.txt"),)
    assert advice.care == ("this kind of request: was abandoned before (time)",)


def test_several_bad_experiences_with_a_kind_of_request_bind_there() -> None:
    """A general tool that failed once or twice for such a request is a warning, after three times it is forbidden;
    one of the person's own at once.
    """
    for times, bound in ((1, ()), (2, ()), (3, ("shell:grep",))):
        bad = entry(kind_pair("shell:grep", "count lines"), "no match", bad=times * 0.85)
        advice = advice_from(Calibration(must_not=(bad,)), SPECS)
        assert advice.must_not.tools == bound
        assert advice.care == (() if bound else ("shell:grep: no match",))
    mixed = entry(kind_pair("shell:grep", "count lines"), "no match", bad=2.5, good=1.5)
    assert advice_from(Calibration(must_not=(mixed,)), SPECS).must_not.tools == ("shell:grep",)
    own = advice_from(Calibration(must_not=(entry(kind_pair("look_up", "count lines")),)), (*SPECS, OWN))
    assert own.must_not.tools == ("look_up",)


def test_caution_asks_about_pairs_with_a_target() -> None:
    """A doubtful pair is asked about; what is known of it or of the intent is a line in the prompt."""
    doubtful = (entry(micro_pair("read_file", "a.txt"), "was empty"), entry(macro_pair("do x"), "took long"))
    advice = advice_from(Calibration(caution=doubtful), SPECS)
    (caution,) = advice.cautions
    assert caution == Caution(identity="read_file", target="a.txt", reason=caution.reason)
    assert advice.care == ("read_file on a.txt: was empty", "this kind of request: took long")


def test_the_segments_of_the_prompt() -> None:
    """Preferences, prohibitions, warnings and places each have their own section; lines are short and single."""
    advice = advice_from(
        Calibration(
            should_prefer=(entry(tool_pair("glob")), entry(tool_pair("read_file"), "read\nfirst", rule=True)),
            known=("a.txt was found at /x/a.txt",),
        ),
        SPECS,
        [tool_pair("glob")],
    )
    segments = advice.segments("- python")
    assert segments[Segment.PROCEDURES] == "- glob\n- read first"
    assert segments[Segment.CONSTRAINTS] == "- python"
    assert segments[Segment.CURATED_KNOWLEDGE] == "- a.txt was found at /x/a.txt (remembered; check it first)"
    assert Advice().segments("") == dict.fromkeys(segments, "")


def test_what_runs_anything_is_recommended_only_where_it_served() -> None:
    """A general tool or a program that did well elsewhere is no advice here; a tool of the person's own is."""
    good = tuple(entry(tool_pair(name)) for name in ("shell", "shell:wc", "glob", "look_up"))
    specs = (*SPECS, OWN)
    assert advice_from(Calibration(should_prefer=good), specs).prefer == ("look_up",)
    assert advice_from(Calibration(should_prefer=good), specs, [tool_pair("shell:wc")]).prefer == (
        "shell:wc",
        "look_up",
    )
    served = (entry(kind_pair("shell:wc", "count lines")),)
    assert advice_from(Calibration(should_prefer=served), specs).prefer == ("shell:wc",)


def test_memory_speaks_with_one_voice() -> None:
    """A tool that must not be used, or failed for this kind of request, is neither recommended nor guessed."""
    found = Calibration(
        should_prefer=(entry(tool_pair("shell:awk"), "it summed", bad=0, good=2),),
        must_not=(
            entry(kind_pair("shell:awk", "sum"), "wrong sum", bad=4),
            entry(kind_pair("glob", "sum"), "no match"),
        ),
        hypotheses=tuple(
            CalibrationEntry(space="intent:sum", entity=f"tool:{name}", content=f"{name} may serve")
            for name in ("shell:awk", "glob", "read_file")
        ),
    )
    advice = advice_from(found, SPECS, worked=[tool_pair("shell:awk")])
    assert advice.must_not.tools == ("shell:awk",)
    assert advice.prefer == ("read_file may serve",)
