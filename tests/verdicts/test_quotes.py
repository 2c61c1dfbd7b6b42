"""A judge's verdict is worth what its quote is."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from artoo.contracts.criteria import Criterion
from artoo.contracts.failure import FailureClass
from artoo.verdicts.quotes import JudgedCriterion, numbered, usable_verdicts

ONE = [Criterion(text="c")]
EVIDENCE = "The sky\n  is   Blue.\nexit 0"


@pytest.mark.parametrize(
    ("quote", "passes"),
    [
        ("sky is blue", True),
        ("'The sky'", True),
        ("the SKY is blue.", True),
        ("sky is green", False),
        ("", False),
        ("T", False),
        ("   ", False),
        ("blue sky", False),
    ],
)
def test_a_pass_needs_a_quote_that_is_there(quote: str, passes: bool) -> None:
    """Spaces, case and outer quotation marks do not matter; everything else does."""
    (found,) = usable_verdicts([JudgedCriterion(number=1, quote=quote, verdict="pass")], ONE, EVIDENCE)
    assert (found.verdict == "pass") is passes


def test_a_verdict_that_is_missing_is_no_pass() -> None:
    """Criteria without verdict, and verdicts without criterion: not met, and ignored."""
    two = [Criterion(text="a"), Criterion(text="b")]
    report = [
        JudgedCriterion(number=2, quote="sky", verdict="pass"),
        JudgedCriterion(number=7, quote="sky", verdict="pass"),
    ]
    assert [each.verdict for each in usable_verdicts(report, two, EVIDENCE)] == ["open", "pass"]
    assert numbered(two) == "1. a\n2. b"
    assert numbered(two, "b").endswith("\n2. The request is done, in all its parts.")


def test_a_fail_needs_no_quote() -> None:
    """A reader may miss something without pointing at it; its class is kept."""
    verdict = JudgedCriterion(
        number=1, verdict="fail", reason="not there", failure_class=FailureClass.ENVIRONMENTAL
    )
    (found,) = usable_verdicts([verdict], ONE, EVIDENCE)
    assert (found.verdict, found.evidence, found.failure_class) == ("fail", "not there", FailureClass.ENVIRONMENTAL)


@given(st.text(min_size=1, max_size=40), st.text(max_size=200))
@settings(deadline=None, max_examples=100)
def test_no_quote_from_nowhere_passes(quote: str, evidence: str) -> None:
    """Whatever is quoted, a pass means that its letters are in the evidence, in order."""
    (found,) = usable_verdicts([JudgedCriterion(number=1, quote=quote, verdict="pass")], ONE, evidence)
    if found.verdict == "pass":
        squeezed = "".join(evidence.split()).casefold()
        assert "".join(quote.split()).casefold().strip("\"'`") in squeezed
