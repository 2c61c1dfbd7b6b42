"""A finding's two readings: in English for models and logs, bare for whoever has another language's sentences."""

from __future__ import annotations

import pytest

from artoo.contracts.findings import Found, Reason


@pytest.mark.parametrize("found", Found)
def test_every_finding_reads_as_a_sentence_with_its_exact_things(found: Found) -> None:
    """No finding is without a sentence, and none leaves a gap where subject or words were given."""
    text = Reason(found=found, subject="SUBJECT", said="SAID").text
    assert text
    assert "{" not in text


def test_a_finding_without_details_ends_without_a_colon() -> None:
    """Nothing was said, so nothing is announced."""
    assert Reason(found=Found.FAILED, subject="shell").text == "shell failed"


@pytest.mark.parametrize(
    ("reason", "bare"),
    [
        (Reason(found=Found.FAILED, subject="shell", said="exit 2"), "shell: exit 2"),
        (Reason(found=Found.MISSING, subject="site/index.html"), "site/index.html"),
        (Reason(found=Found.EMPTY), ""),
    ],
)
def test_the_bare_finding_holds_its_exact_things_only(reason: Reason, bare: str) -> None:
    """Paths, commands and a program's own words are in no language but their own."""
    assert reason.bare == bare
