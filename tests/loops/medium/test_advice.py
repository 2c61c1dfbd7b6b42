"""What calibration means for a plan: pure functions."""

from __future__ import annotations

from artoo.contracts.memory import Calibration, CalibrationEntry
from artoo.contracts.plan import Caution
from artoo.contracts.tags import Pair, kind_pair, macro_pair, micro_pair, thing_pair, tool_pair
from artoo.loops.medium.advice import Advice, advice_from, in_words, mentions, pairs_of
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


def test_mentions_are_what_tools_take() -> None:
    """Files, patterns, places and addresses, in English and Chinese text, without their sentences' punctuation."""
    assert mentions("Count lines in ./src/a.py, then *.md.") == ("src/a.py", "*.md")
    assert mentions("fetch https://x.org/a.json now") == ("https://x.org/a.json",)
    assert mentions("统计data.csv的行数，写入“报告 一.txt”") == ("报告 一.txt", "data.csv")
    assert mentions("don't touch a.txt, it's mine") == ("a.txt",)
    assert mentions("say hello") == ()
    assert len(mentions(" ".join(f"f{number}.txt" for number in range(50)))) == 8


def test_what_is_asked_before_planning() -> None:
    """Tools on offer and their programs that memory has met, for this kind of request and as such; what worked,
    tools on named files, missing things.
    """
    met = [tool_pair("shell:find"), tool_pair("gone_tool"), tool_pair("glob")]
    asked = pairs_of(
        (GLOB, SHELL), met, [micro_pair("glob", "*.x")], "count words", "count a.txt", [thing_pair("lost.csv")]
    )
    assert asked == (
        *(of(name, "count words") for name in ("glob", "shell", "shell:find") for of in (kind_pair, _as_such)),
        micro_pair("glob", "*.x"),
        micro_pair("glob", "a.txt"),
        micro_pair("shell", "a.txt"),
        thing_pair("lost.csv"),
    )


def _as_such(name: str, _: str) -> Pair:
    return tool_pair(name)


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


def test_a_rule_binds_whatever_it_names() -> None:
    """Python or a shell that failed is nothing; a rule of level C about it binds."""
    bad = (entry(tool_pair("shell")), entry(tool_pair("shell:python3")))
    advice = advice_from(Calibration(must_not=bad), SPECS)
    assert advice.must_not.tools == () and advice.care == ()
    ruled = advice_from(Calibration(must_not=(entry(tool_pair("shell"), "no shell", rule=True),)), SPECS)
    assert ruled.must_not.tools == ("shell",) and ruled.forbid == ("no shell",)


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


def test_a_rule_for_a_kind_of_request_binds_it() -> None:
    """And its words are in the prompt."""
    ruled = entry(kind_pair("shell", "count lines"), "no shell for this", rule=True, bad=0.0)
    advice = advice_from(Calibration(must_not=(ruled,)), SPECS)
    assert advice.must_not.tools == ("shell",) and advice.forbid == ("no shell for this",)


def test_what_a_rule_was_made_of_is_not_told_below_it() -> None:
    """Neither a recommendation nor a warning; of another pair it is told."""
    pair, other = kind_pair("glob", "count lines"), kind_pair("shell:grep", "count lines")
    good = (
        entry(pair, "glob first", rule=True),
        entry(pair, "worked for: count", good=2.0),
        entry(other, "worked"),
    )
    assert advice_from(Calibration(should_prefer=good), SPECS).prefer == ("glob first", "shell:grep: worked")
    bad = (entry(pair, "no glob", rule=True), entry(pair, "no match", bad=0.85), entry(other, "no match", bad=0.85))
    advice = advice_from(Calibration(must_not=bad), SPECS)
    assert (advice.forbid, advice.care) == (("no glob",), ("shell:grep: no match",))


def test_the_last_hands_stay() -> None:
    """What would leave nothing that writes is a warning instead."""
    both = (entry(tool_pair("write_file"), "w", rule=True), entry(tool_pair("shell"), "no shell", rule=True))
    advice = advice_from(Calibration(must_not=both), SPECS)
    assert advice.must_not.tools == ("write_file",)
    assert advice.forbid == ("w",) and advice.care == ("no shell",)


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


def test_long_targets_are_not_spelled_out() -> None:
    """A script as a target is not put into the next prompt."""
    assert in_words(micro_pair("python", "print(1)\nprint(2)")) == "python"
    assert in_words(micro_pair("glob", "*.py")) == "glob on *.py"


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
