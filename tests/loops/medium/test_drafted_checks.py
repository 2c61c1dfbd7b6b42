"""Patterns that a planner drafts: which of them an answer can be expected to match."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from artoo.contracts.criteria import Criterion, FileExists, OutputMatches
from artoo.loops.medium.drafted_checks import kept, unasked
from artoo.loops.medium.pattern_demands import Demand, demands
from artoo.loops.medium.plan_draft import PlanDraft, SubTaskDraft

POINTER = (
    "The file latest.txt contains the name of a data file in the directory data. "
    "What is the sum of the numbers in that data file?"
)


def drafted(regex: str, text: str = "the answer") -> Criterion:
    return Criterion(text=text, check=OutputMatches(regex=regex))


@pytest.mark.parametrize(
    ("regex", "found"),
    [
        (r"sum: (.+)", [Demand(("sum: ",))]),
        (r"^\d+$", [Demand((), bare=True)]),
        (r"\A\s*\d+", [Demand((), bare=True)]),
        (r"^.*\d.*$", [Demand()]),
        (r"^[\s\S]*\d$", [Demand((), bare=True)]),
        ("yes|no", [Demand(("yes",)), Demand(("no",))]),
        (r"(?:total )?\d", [Demand()]),
        (r"(?i:total) \d", [Demand(("total ",))]),
        (r"(?P<n>\d+) rows?", [Demand((" row",))]),
        ("[Ss]um", [Demand(("Sum",))]),
        ("[a-z]um", [Demand(("um",))]),
        (r"(?!error)\d(?#sum)", [Demand()]),
        (r"\bOK\b", [Demand(("OK",))]),
        (r"总和(?:是|为)", [Demand(("总和是",)), Demand(("总和为",))]),
        (r"\u4e2d\x41", [Demand(("中A",))]),
        (r"a{2}b{0,1}c{,3}d{x}", [Demand(("a", "d{x}"))]),
        (r"\p{Lu}\.csv", [Demand((".csv",))]),
    ],
)
def test_what_a_pattern_demands(regex: str, found: list[Demand]) -> None:
    """Literal runs of each alternative; what may be left out, classes, and what must be absent demand nothing."""
    assert list(demands(regex)) == found


@pytest.mark.parametrize(
    "regex", ["(", "[", "a)", "(?x) a b", "\\", "(?", "[\\", "(?P<n", "\\x", "(" * 60 + ")" * 60]
)
def test_what_cannot_be_read_demands_nothing(regex: str) -> None:
    """A syntax that the scanner does not follow is no reason to drop a check."""
    assert demands(regex) == (Demand(),)


@given(st.text("ab1 .*+?()[]{}|^$\\d-,:<=!P", max_size=40))
@settings(deadline=None, max_examples=200)
def test_any_pattern_can_be_scanned(regex: str) -> None:
    """No pattern makes the scanner fail or find what is not in it."""
    assert all(one in regex for way in demands(regex) for run in way.runs for one in run if one.isalnum())


@given(st.lists(st.sampled_from(["ab", "x{2}", "(?:c|d)", "e?", r"\d+", ".*", "[fF]", "(g)", "h+"]), max_size=6))
@settings(deadline=None, max_examples=100)
def test_every_match_contains_a_demand(parts: list[str]) -> None:
    """Whatever a pattern matches contains the runs of one of its alternatives."""
    import re

    pattern = "".join(parts)
    for text in ("ababxxcdefFgh1", "abxx1cfgh", "xxabdFhg22"):
        match = re.search(pattern, text, re.IGNORECASE)
        if match is not None:
            said = match.group().casefold()
            assert any(all(run.casefold() in said for run in way.runs) for way in demands(pattern))


@pytest.mark.parametrize(
    ("request_text", "regex", "text"),
    [
        (POINTER, "sum of numbers in data/apr.txt: (.+)", "sum of numbers in data/apr.txt"),
        (POINTER, "^[0-9]+$", "the sum is a number"),
        (POINTER, "^[0-9]+", "the sum"),
        (POINTER, r"\A-?\d+(?:\.\d+)?\Z", "a figure"),
        (POINTER, r"(?i)(total|sum):?\s*\d+", "the sum"),
        (POINTER, "516", "the sum is 516"),
        (POINTER, r"The sum is \d+", "the output matches The sum is \\d+"),
        ('Which file contains the text "API_KEY="?', "API_KEY", "names the file"),
        ("How many lines has a.txt?", r"\d+ lines", "the number of lines"),
        ("Print the sum of the numbers in a.txt", r"sum of the numbers: \d+", "the sum"),
        ("Is there a file a.txt?", "^(yes|no)$", "yes or no"),
        ("Which file is the largest?", r"conf/prod/s3\.env", "names the file"),
        ("people.csv 中的平均年龄是多少？", r"平均年龄[是为]\s*\d+", "平均年龄"),
        ("data.csv 有多少行？", r"^\d+行$", "行数"),
        ("Answer in Chinese: how many files are there?", "文件", "Chinese"),
        (POINTER, "(unclosed", "the sum"),
    ],
)
def test_inventions_are_left_out(request_text: str, regex: str, text: str) -> None:
    """Words, figures and bare shapes that nobody asks the answer for, and what is no expression at all."""
    assert unasked(drafted(regex, text), [request_text]) is not None


@pytest.mark.parametrize(
    ("request_text", "regex", "text"),
    [
        (POINTER, r"\d+", "a number"),
        (POINTER, r"\d|none", "a number, or none"),
        (POINTER, r"^.*\d+.*$", "a number"),
        (POINTER, r"(?:total )?\d+\s*%?", "a number"),
        ("How many lines has a.txt? Give only the number.", r"^\d+$", "a number"),
        ("How many lines has a.txt? The number alone, please.", r"\A\d+\s*\Z", "a number"),
        ("Is there a file a.txt? Answer yes or no.", "(?i)^(yes|no)", "yes or no"),
        ("Run the tests and reply with DONE.", "DONE", "it is done"),
        ('Count the lines and print "Lines: " and the number', r"Lines:\s*\d+", "the count"),
        ("Give name and age of each person in the form name=age, total=sum", r"total=\d+", "the total"),
        ("Which .csv file is the largest?", r"\w+\.csv", "names a file"),
        ("Summarise a.txt", "(?i)apples", 'the answer mentions "apples"'),
        ("data.csv 有多少行？只输出数字。", r"^\d+$", "数字"),
        ("检查 a.txt 是否存在，回答是或否。", "是|否", "是或否"),
        ("统计行数，输出“总数：”和数字", r"总数：\d+", "总数"),
    ],
)
def test_what_is_asked_for_stays(request_text: str, regex: str, text: str) -> None:
    """Shapes that any answer has, and words that the request or the criterion asks the answer for."""
    assert unasked(drafted(regex, text), [request_text]) is None


def test_other_checks_are_not_touched() -> None:
    """Files, and criteria that a reader judges, stay as they are."""
    assert unasked(Criterion(text="out.txt exists", check=FileExists(path="out.txt")), [POINTER]) is None
    assert unasked(Criterion(text="sum of numbers: 5"), [POINTER]) is None


def test_a_draft_loses_what_is_invented_and_says_so() -> None:
    """Task and subtask criteria alike; the reasons go along; what stays keeps its place."""
    bad, good = drafted("sum: 5", "the sum"), drafted(r"\d", "a number")
    draft = PlanDraft(
        subtasks=(SubTaskDraft(intent="add up", success_criteria=(good, bad)),), task_criteria=(bad, good)
    )
    slim, left_out = kept(draft, POINTER)
    assert slim.task_criteria == (good,) and slim.subtasks[0].success_criteria == (good,)
    (reason,) = left_out
    assert reason.startswith("the sum: nothing asks the answer for sum, 5")
    assert kept(slim, POINTER) == (slim, ())


def test_the_wording_that_an_intent_tells_the_executor_stays() -> None:
    """What the plan itself says to print is known to whoever carries it out."""
    criterion = drafted(r"sum: \d+", "the sum")
    told = SubTaskDraft(intent='add up and print "sum: " first', success_criteria=(criterion,))
    assert kept(PlanDraft(subtasks=(told,)), POINTER)[1] == ()
