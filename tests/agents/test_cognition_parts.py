"""What an agent's memory is made of: words, observations, patterns, the knowledge file. Pure functions."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from artoo.agents.cognition.consolidation_plan import Promotion, megram_of, planned, worth
from artoo.agents.cognition.knowledge_file import HEADING, Learnt, merged, plain, relevant
from artoo.agents.cognition.observations import observation_of
from artoo.agents.cognition.patterns import MOST_PATTERNS, Pattern, Seen, counted
from artoo.agents.cognition.similarity import general, likeness, one_line, words
from artoo.contracts.memory import Level
from artoo.contracts.solution import Directive, FinalResult, StoppedBy, UnmetCriterion
from artoo.contracts.tags import macro_pair

NOW = datetime(2026, 1, 7, tzinfo=UTC)
DONE = FinalResult(task_id="t", summary="s", directive=Directive.ACCEPT, done=("wrote sums.csv",))
FAILED = FinalResult(
    task_id="t",
    summary="s",
    directive=Directive.ABANDON,
    stopped_by=StoppedBy.REPLANS,
    unmet=(UnmetCriterion(criterion="notes.pdf exists", reason="pandoc: command not found"),),
)


def _seen(position: int, request: str, result: FinalResult = DONE) -> Seen:
    noted = observation_of(request, result)
    assert noted is not None
    return Seen(position, noted.text, noted.pattern, NOW + timedelta(minutes=position))


def _learnt(number: int, text: str = "something", *, value: float = 1.0) -> Learnt:
    return Learnt(f"{number:012x}", text, value)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("Sum up reports/q1.csv", "sum up  reports/q2.csv"),
        ("convert notes.md to pdf", "Convert letters.md to PDF"),
        ("send 12 letters by 2026-01-07", "send 3 letters by 2026-02-01"),
        ('rename "a b" please', 'rename "c d e" please'),
        ("look at https://a.example/x?y=1", "look at https://b.example"),
        ("总结 reports/一月.csv", "总结 reports/二月.csv"),
    ],
)
def test_what_is_particular_to_one_occasion_does_not_count(one: str, other: str) -> None:
    """The same request about another file, number or name is the same thing to remember."""
    assert general(one) == general(other)


@given(st.text(max_size=200), st.text(max_size=200))
def test_likeness_is_a_share(one: str, other: str) -> None:
    """Between 0 and 1, the same both ways, 1 for a text with itself."""
    first, second = words(one), words(other)
    assert 0 <= likeness(first, second) == likeness(second, first) <= 1
    assert likeness(first, first) == (1 if first else 0)


def test_chinese_is_compared_by_pairs_of_characters() -> None:
    """Text without spaces has words too."""
    assert words("总结报告 PDF") == {"总结", "结报", "报告", "pdf"}
    assert likeness(words("总结销售报告"), words("总结财务报告")) > 0


@given(st.text(max_size=500), st.integers(2, 100))
def test_one_line_is_one_line_and_closes_no_comment(text: str, limit: int) -> None:
    """Nothing that a task said can end the line, the list or a mark."""
    line = one_line(text, limit)
    assert len(line.splitlines()) <= 1
    assert len(line) <= limit
    assert "-->" not in line
    assert "<!--" not in line


def test_an_observation_says_what_was_asked_how_it_ended_and_why() -> None:
    """Made by code from the result; the output is not in it."""
    noted = observation_of("convert notes.md to pdf", FAILED)
    assert noted is not None
    assert noted.text == (
        '"convert notes.md to pdf": given up (replans) — notes.pdf exists: pandoc: command not found'
    )
    done = observation_of("sum up", DONE)
    assert done is not None
    assert done.text == '"sum up": done — wrote sums.csv'


@pytest.mark.parametrize("why", [StoppedBy.NO_MODEL, StoppedBy.INTERRUPTED, StoppedBy.INTERNAL])
def test_an_ending_by_infrastructure_teaches_nothing(why: StoppedBy) -> None:
    """A dead server is no experience."""
    assert observation_of("sum up", FAILED.model_copy(update={"stopped_by": why})) is None


def test_what_was_not_there_is_noted() -> None:
    """That a program is missing is worth knowing: the note says which."""
    noted = observation_of("convert", FAILED.model_copy(update={"stopped_by": StoppedBy.MISSING_INPUT}))
    assert noted is not None and "pandoc: command not found" in noted.text


def test_the_same_thing_three_times_is_ripe() -> None:
    """Three files, one pattern; twice is not enough."""
    fresh = [_seen(n, f"convert notes{n}.md to pdf", FAILED) for n in range(3)]
    assert [each.ripe for each in counted((), fresh[:2])] == [False]
    (pattern,) = counted(counted((), fresh[:2]), fresh[2:])
    assert (pattern.seen, pattern.ripe, pattern.text) == (3, True, fresh[2].text)


def test_alike_wordings_are_one_pattern_and_other_endings_another() -> None:
    """Most words in common and the same ending: one pattern. Done and failed never are."""
    alike = [
        "please convert the notes a.md to pdf",
        "convert the notes b.md to pdf",
        "please convert notes c.md to pdf",
    ]
    fresh = [_seen(n, text) for n, text in enumerate(alike)]
    assert [each.seen for each in counted((), fresh)] == [3]
    others = ["convert the notes a.md to pdf", "print the notes a.md to pdf"]
    assert [each.seen for each in counted((), [_seen(n, text) for n, text in enumerate(others)])] == [1, 1]
    mixed = [*fresh, _seen(4, alike[0], FAILED), _seen(5, "tell me a joke")]
    assert sorted(each.seen for each in counted((), mixed)) == [1, 1, 3]


def test_patterns_are_bounded_and_the_rare_go_first() -> None:
    """What was promoted or often seen outlives what was seen once."""
    often = Pattern("0" * 12, "done|often|", "often", 9, NOW, NOW, promoted=True)
    letters = "abcdefghijklmnopqrstuvwxyz"
    fresh = [_seen(n, f"{letters[n % 26]}{letters[n // 26]} unlike") for n in range(MOST_PATTERNS + 50)]
    patterns = counted((often,), fresh)
    assert len(patterns) == MOST_PATTERNS
    assert often in patterns


@settings(deadline=None)
@given(
    own=st.text(alphabet="ab #-\n", max_size=300),
    numbers=st.lists(st.integers(0, 40), unique=True, max_size=30),
    limit=st.integers(200, 2_000),
)
def test_merging_keeps_the_operators_text_the_limit_and_itself(own: str, numbers: list[int], limit: int) -> None:
    """Whatever is learnt: the operator's lines stay, the limit holds, and merging again changes nothing."""
    lines = [_learnt(number, f"learnt {number}", value=number) for number in numbers]
    result = merged(own, lines, {}, limit)
    kept = result.text.split("\n")
    for line in own.rstrip("\n").split("\n"):
        assert not line or line in kept
    assert len(result.text) <= limit or result.excess == len(result.text) - limit > 0
    again = merged(result.text, [line for line in lines if line.id not in result.trimmed], {}, limit)
    assert again.text == result.text
    gone = {int(each, 16) for each in result.trimmed}
    assert all(number < min(set(numbers) - gone, default=99) for number in gone)


def test_the_operators_hand_wins() -> None:
    """A learnt line that was edited stays as edited, one that was deleted stays away, others are renewed."""
    first = merged("Own words.\n", [_learnt(1, "one"), _learnt(2, "two"), _learnt(3, "three")], {}, 1_000).text
    assert first.startswith(f"Own words.\n\n{HEADING}\n- one <!-- 000000000001:")
    edited = "\n".join(
        line.replace("- two", "- two, says the operator") for line in first.split("\n") if "- three" not in line
    )
    again = [Learnt(f"{n:012x}", f"{n} renewed", 1.0, new=False) for n in (1, 2, 3)]
    assert plain(merged(edited, again, {}, 1_000).text).split("\n")[3:] == [
        "- 1 renewed",
        "- two, says the operator",
    ]


def test_nothing_learnt_leaves_the_file_alone() -> None:
    """Not a byte of the operator's file changes for nothing."""
    for text in ("", "a", "a\n\n\nb  ", "\n# x\r\ny\r\n"):
        assert merged(text, [], {}, 1_000).text == text


def test_a_file_too_long_by_itself_is_reported_and_not_touched() -> None:
    """The operator's words are never trimmed; what was learnt makes room first."""
    result = merged("x" * 300, [_learnt(1)], {}, 200)
    assert result.trimmed == ("000000000001",)
    assert result.excess >= 100
    _, pending = planned("ada", (), "x" * 300, NOW, ids=(), limit=200, observations=0)
    assert "knowledge.md is 100 characters longer than the 200" in (pending.report.error or "")


def test_a_small_model_gets_the_lines_that_its_task_needs() -> None:
    """Within the budget, closest lines, in the file's order, without marks; a large budget gets the whole."""
    lines = [_learnt(n, f"requests about topic{n} need tool{n}") for n in range(50)]
    text = merged("# Known\n\nInvoices are kept in books.\n", lines, {}, 15_000).text
    shown = relevant(text, "what does topic7 need, and where are invoices kept?", 120)
    assert shown.split("\n")[0] == "Invoices are kept in books."
    assert "topic7 " in shown
    assert len(shown) <= 120
    assert "<!--" not in shown
    assert relevant(text, "topic7", 15_000) == plain(text)
    assert relevant(text, "完全 不同", 120) == ""


@given(st.text(max_size=400), st.text(max_size=50), st.integers(0, 200))
def test_relevant_text_never_exceeds_its_budget(text: str, task: str, budget: int) -> None:
    """Whatever the file holds."""
    assert len(relevant(text, task, budget)) <= budget


def test_a_pattern_fades_and_is_trimmed_when_worth_least() -> None:
    """A thing seen often long ago gives way to what is seen now; to come back it is counted anew."""
    old = Pattern("a" * 12, "done|old|", "old " * 20, 4, NOW - timedelta(days=90), NOW - timedelta(days=90))
    new = Pattern("b" * 12, "done|new|", "new " * 20, 3, NOW, NOW)
    assert worth(old, NOW) < worth(new, NOW)
    standing, pending = planned("ada", (old, new), "", NOW, ids=("p1", "p2"), limit=200, observations=7)
    assert [(each.id[0], each.promoted, each.seen) for each in standing] == [("a", False, 0), ("b", True, 3)]
    assert [each.startswith("new") for each in pending.report.promoted] == [True]
    assert [each.startswith("old") for each in pending.report.trimmed] == [True]
    assert [each.seen for each in pending.promotions] == [3]


def test_a_promotion_becomes_context_without_a_verdict() -> None:
    """Level K under what was asked, with no weight in any decision: the loops have written the evidence already."""
    about = '"convert notes.md to pdf": given up'
    megram = megram_of(Promotion("p1", "ada", "pandoc is missing", about, 3, NOW))
    assert (megram.level, megram.sigma, megram.content) == (Level.KNOWLEDGE, 0.0, "pandoc is missing")
    assert megram.pair == macro_pair("convert notes.md to pdf")
