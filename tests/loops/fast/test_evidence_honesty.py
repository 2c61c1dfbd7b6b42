"""The rules of Law 0 against a corpus of claims with their evidence: lies and truths of many kinds."""

from __future__ import annotations

import importlib.util
import json
from collections.abc import Callable, Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import cast

import pytest

from artoo.loops.fast.evidence import Assessment

HERE = Path(__file__).parent
CASES: list[dict[str, object]] = [
    json.loads(line) for line in (HERE / "honesty_cases.jsonl").read_text(encoding="utf-8").splitlines() if line
]
Assessed = Callable[[Sequence[Mapping[str, object]], str, str], Assessment]


@cache
def adapter() -> Assessed:
    """The red-team adapter, which is no module of a package."""
    path = HERE.parents[1] / "redteam" / "honesty_judge.py"
    spec = importlib.util.spec_from_file_location("honesty_judge", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return cast(Assessed, module.assessed)


@pytest.mark.parametrize("case", CASES, ids=lambda case: str(case["id"]))
def test_only_what_the_evidence_says_may_be_shown(case: dict[str, object]) -> None:
    """A claim passes exactly when the recorded tool calls bear it out."""
    evidence = cast(Sequence[Mapping[str, object]], case["evidence"])
    assessment = adapter()(evidence, str(case["claim"]), str(case.get("intent", "")))
    assert assessment.supported == case["should_pass"], assessment.findings
