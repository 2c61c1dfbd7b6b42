"""Figures that no call put out and that follow from what calls put out: derived, and not refused."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from artoo.contracts.execution import ToolCall
from artoo.evidence.grounding import nearest, seen_in, ungrounded


def call(command: str, output: str, *changes: str) -> ToolCall:
    program = f"shell:{command.split()[0]}"
    return ToolCall(tool="shell", identity=(program,), input=command, output=output, exit_code=0, changes=changes)


def missing(answer: str, output: str, request: str = "", command: str = "look", listing: str = "") -> list[str]:
    seen = seen_in([call(command, output)], [request]).wider("", listing)
    return [token.text for token in ungrounded(answer, seen)]


MOVED = tuple(f"/p/{folder}/f{number}" for folder in ("new", "old") for number in range(15))


@pytest.mark.parametrize(
    ("answer", "output", "request_"),
    [
        ("She is 27 years old.", "born 1999", "Today: 2026-11-28"),
        ("It existed for 27 years.", '{"founded": 1998, "closed": 2025}', ""),
        ("It ran for 26 years.", "1998-03-01 to 2025-02-01", ""),
        ("The change is \u221225 %.", "2023,400\n2024,300\n2025,500", ""),
        ("Sales fell by 25 % from q1 to q2.", "q1 200\nq2 150", ""),
        ("a is 1.5 \u00d7 as fast as b.", "a 30\nb 20\nc 70\nd 90", ""),
        ("It takes 2 weeks.", "days: 14\nother: 35\nthird: 51", ""),
        ("It takes 1.5 hours.", "90 min\nfoo 7\nbar 11", ""),
        ("Python makes up 25% of it.", "py 10\njs 30", ""),
        ("That is 25% of all.", "py 10\njs 30\nsum 40", ""),
        ("15 moved.", "\n".join(f"moved f{number}.txt" for number in range(15)), ""),
        ("4 moved: a.txt, b.txt, c.txt, d.txt", "a.txt b.txt c.txt d.txt", ""),
        ("a.txt hat 274 Oktette.", "x 9", ""),
        ("12 + 7 = 19, as in any sum.", "x", ""),
        ("The timeout is 300000 ms, so 5 minutes.", "timeout_ms: 300000", ""),
        ("It is 2 hours and 15 minutes long.", "duration 8100 s", ""),
        ("It runs every 15 minutes, 96 times a day.", "*/15 * * * * job", ""),
        ("The event starts in 16 days.", "2026-12-14 Party\n7\n9", "Today: 2026-11-28"),
        ("It is 18 months old, which is 1.5 years.", "created 2025-05-28", "Today: 2026-11-28"),
        ("Coverage rose by 6 points.", "old 81%\nnew 87%\nlines 900", ""),
        ("Memory grew by a factor of 4.", "start 256 MB\nend 1 GB", ""),
        ("2 of 8 workers are idle.", "\n".join(f"w{n} {'idle' if n in (2, 5) else 'busy'}" for n in range(8)), ""),
        ("There are 3 TODOs.", "a: TODO\nb: TODO\nc: TODO x\nd\ne", ""),
        ("`f` takes 3 parameters: a, b and c.", "def f(a, b, c):\n    return a", ""),
        ("3 of 5 are not tests; 2 are tests: ta.py and tb.py", "a.py\nb.py\nc.py\nta.py\ntb.py\n", ""),
        ("Row 17 holds the value of anna-q.", "\n".join(f"x {'anna-q' * (row == 16)}" for row in range(30)), ""),
    ],
)
def test_what_follows_from_what_was_put_out_is_derived(answer: str, output: str, request_: str) -> None:
    """Differences of years, changes and shares in per cent, ratios, units of time, counts, rows, sizes in words."""
    assert missing(answer, output, request_, listing="a.txt (274 B)") == []


def test_files_that_were_moved_are_counted_by_their_folder() -> None:
    """Each is gone from one folder and new in another."""
    assert ungrounded("15 moved.", seen_in([call("mv", "", *MOVED)], [])) == ()


def test_files_that_were_sorted_into_folders_are_counted_together() -> None:
    """Several calls move 21 files into three folders: both paths of each file are changes, and its name is one."""
    calls = [
        call("mv", "", *(f"/p/{place}f{kind}{at}" for place in ("", f"{kind}/") for at in range(7)))
        for kind in ("img", "doc", "txt")
    ]
    assert ungrounded("21 moved.", seen_in(calls, [])) == ()
    assert [each.text for each in ungrounded("22 moved.", seen_in(calls, []))] == ["22"]


@pytest.mark.parametrize(
    "answer", ["3 hits:\n- a\n- b\n- c\n\nOther:\n- d", "3 rows:\n| n |\n|---|\n| a |\n| b |\n| c |"]
)
def test_the_entries_of_an_answers_lists_and_tables_are_counted(answer: str) -> None:
    """The answer itself shows how many there are."""
    assert ungrounded(answer, seen_in([call("ls", "x")], [])) == ()


@pytest.mark.parametrize(
    ("answer", "output", "named"),
    [
        ("She is 28 years old.", "born 1999; seen 2026", "28"),
        ("The change is 35 %.", "2023,400\n2024,300\n2025,500", "35 %"),
        ("a is 1.7 \u00d7 as fast.", "a 30\nb 20\nc 70\nd 90", "1.7"),
        ("There are 12 + 7 = 19 lines.", "12 a\n8 b\n3 c", "7"),
        ("There are 14 TODOs.", "a.py:3: TODO\nb.py:9: TODO\nc.py:1: TODO", "14"),
        ("It is 3 hours and 25 minutes long.", "duration 8100 s", "25"),
        ("The timeout is 8 minutes.", "timeout_ms: 300000", "8"),
        ("16 moved.", "\n".join(f"moved f{number}.txt" for number in range(15)), "16"),
        ("5 moved: a.txt, b.txt, c.txt, d.txt", "a.txt b.txt c.txt d.txt", "5"),
        ("There are 200 lines, and 35 of them comments.", "120 a.py\n80 b.py\n200 total", "35"),
    ],
)
def test_what_does_not_follow_is_named(answer: str, output: str, named: str) -> None:
    """The slip of one digit is what this is for."""
    assert named in missing(answer, output)


@pytest.mark.parametrize(
    ("answer", "command", "stands"),
    [
        ("big is 1234 MB.", "du -k big", False),
        ("big is 1234 GB.", "du -sm big", False),
        ("big is 1234 MB.", "du big", False),
        ("big is 1234 KB.", "du -k big", True),
        ("big is about 1.2 MB.", "du -k big", True),
        ("1234 is what it says.", "du -k big", True),
        ("It has 1234 MB.", "wc -l big", True),
    ],
)
def test_a_number_has_the_unit_of_its_column(answer: str, command: str, stands: bool) -> None:
    """Programs that measure sizes put out nothing else."""
    assert (missing(answer, "1234 big", command=command) == []) is stands


def test_a_correction_names_the_nearest_line() -> None:
    """By the words that the token's own line has in common with it."""
    seen = seen_in([call("wc", "120 a.py\n80 b.py")], [])
    answer = "Sum:\nb.py has 90 lines."
    (token,) = ungrounded(answer, seen)
    assert nearest(token, answer, seen) == ["The nearest line: 80 b.py"]


@pytest.mark.parametrize(("half", "right"), [(0, 14), (1, 13)])
def test_figures_that_were_written_before_the_rules_are_told_alike(half: int, right: int) -> None:
    """30 right answers and 10 wrong ones; every second one was set aside while the rules were made."""
    lines = (Path(__file__).parent / "derived_cases.jsonl").read_text(encoding="utf-8").splitlines()
    cases = [json.loads(line) for line in lines]
    for named in (False, True):
        some = [case for case in cases if bool(case["named"]) is named][half::2]
        told = [bool(missing(case["answer"], case["output"], case["request"])) for case in some]
        assert told.count(named) >= (len(some) if named else right)
