"""Formulas of an answer: what they may use that no call shows, and what code refutes by itself."""

from __future__ import annotations

import pytest

from artoo.contracts.execution import ToolCall
from artoo.evidence.grounding import seen_in, ungrounded
from artoo.evidence.tokens import Token


def missing(answer: str, output: str, request: str = "") -> tuple[Token, ...]:
    call = ToolCall(tool="shell", identity=("shell",), input="look", output=output, exit_code=0)
    return ungrounded(answer, seen_in([call], [request]))


@pytest.mark.parametrize(
    ("answer", "output", "asked"),
    [
        ("820 × 3 = 2,460 EUR a quarter", "rent 820 EUR per month", "a quarter"),
        ("35 + 2 × 12 = 59", "seit 1998, 214 Mitglieder, 35 Euro, Kinder 12 Euro", "duas crianças e um adulto"),
        ("250 / 2 = 125 g, 3 / 2 = 1.5 eggs", "250 g flour, 3 eggs, 500 ml", "make it half"),
        ("1. 410 × 2 = 820\n2. 820 × 52 = 42,640", "a 410; 820; 7; 9", ""),
        ("100.00 × 1.19 = 119.00", "net 100.00", "plus 19 % VAT"),
        ("240 × 0.8 = 192", "price 240", "20% off"),
        ("24:10 / 5 = 4:50 per km", "5 km in 24:10", "pace"),
        ("32:30 / 5 = 6:30 per km", "5 km in 32:30", "pace"),
        ("2026-12-03 − 2026-11-27 = 6 days", "trip 2026-12-03", "Today: 2026-11-27"),
        ("From a to b: 2026-03-02 − 2026-01-15 = 46 days", "a,2026-01-15\nb,2026-03-02", ""),
        ("a.txt: due 2026-10-01, 58 days late", "a,2026-10-01\nb,2026-11-19\n7,9", "Today: 2026-11-28"),
        ("- logs/app-2026-08-01.log (119 Tage alt)", "logs/app-2026-08-01.log\n7\n9", "Today: 2026-11-28"),
        ("| a | 2026-03-02 | 2026-01-15 | 46 |", "a,2026-01-15\nb,2026-03-02\n7,9", ""),
    ],
)
def test_a_formula_may_use_what_words_and_a_percentage_say(answer: str, output: str, asked: str) -> None:
    """A small factor, one and a known share, a time, two dates, or a date of its line and today: no call has to
    show the factor itself."""
    assert missing(answer, output, asked) == ()


@pytest.mark.parametrize(
    ("answer", "output", "asked", "named"),
    [
        ("820 × 3 = 2,460 for 3 of them", "rent 820", "", ["3", "2,460"]),
        ("3 were lost", "rent 820", "", ["3"]),
        ("820 × 13 = 10,660", "rent 820", "", ["13", "10,660"]),
        ("49 / 4 = 12.25", "sum 49; 12; 7; 30", "", ["4", "12.25"]),
        ("820 × 3 = 2,460, or 823 each", "rent 820; 7; 9", "", ["823"]),
        ("100.00 × 1.18 = 118.00", "net 100.00; 7", "plus 19 % VAT", ["1.18", "118.00"]),
        ("2026-12-03 − 2026-11-27 = 7 days", "trip 2026-12-03", "Today: 2026-11-27", ["7"]),
        ("2026-12-03 − 2026-11-20 = 13 days", "trip 2026-12-03", "", ["20", "13"]),
        ("a: due 2026-10-01, 57 days late", "a,2026-10-01\n7,9", "Today: 2026-11-28", ["57"]),
        ("a: due 2026-10-02, 57 days late", "a,2026-10-01\n7,9", "Today: 2026-11-28", ["57"]),
        ("a: 2026-10-01, 58 EUR", "a,2026-10-01\nb,2026-11-28\n7,9", "", ["58"]),
        ("It took 8:30", "5 km in 32:30", "", ["8:30"]),
    ],
)
def test_what_no_formula_needs_is_named(answer: str, output: str, asked: str, named: list[str]) -> None:
    """A factor is one in its formula alone: it says no count, divides nothing, and is near no other figure."""
    assert {each.text for each in missing(answer, output, asked)} >= set(named)


def test_a_table_is_summed_up_though_another_text_follows() -> None:
    """A number of the text below stands where the column would go on, and after another sign."""
    output = "Anna,12\nBen,7\nCara,30\nNote: we meet on Friday at 15 o'clock.\n"
    assert missing("49 in all", output) == ()
    assert [each.text for each in missing("48 in all", output)] == ["48"]
