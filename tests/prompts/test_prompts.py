"""Prompts: segments in order, short procedural texts, and a manifest that notices any change."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from artoo.cli.doctor.checks import State, texts
from artoo.contracts.errors import ConfigurationError
from artoo.contracts.roles import Role
from artoo.llm.prompt import estimated_tokens
from artoo.prompts import library
from artoo.prompts.laws import LAWS
from artoo.prompts.library import MANIFEST, TEXTS, digests, procedural, verify
from artoo.prompts.segments import LAST_STABLE, Segment, assemble, assemble_shared
from artoo.runtime.app.artoo import Artoo
from artoo.runtime.config.loader import load_config

CALLS = [
    (Role.PERCEIVER, "TaskSpec"),
    (Role.PLANNER, "Plan"),
    (Role.EXECUTOR, "ExecutorStep"),
    (Role.AGENT_VALIDATOR, "ValidationReport"),
    (Role.META_VALIDATOR, "MergeReport"),
    (Role.SOLVER, "FailureReport"),
    (Role.DREAMER, "SOPDraft"),
]


def test_there_are_24_segments_in_one_order() -> None:
    """24 segments, numbered without a gap, the procedural ones first."""
    assert [segment.value for segment in Segment] == list(range(1, 25))
    assert list(procedural("planner", "Plan")) == list(Segment)[:4]


@given(st.dictionaries(st.sampled_from(list(Segment)), st.text(alphabet="abc \n", max_size=20)))
@settings(deadline=None, max_examples=100)
def test_segments_are_assembled_in_order(parts: dict[Segment, str]) -> None:
    """Stable ones form the system message, the others the user message; the order given does not matter."""
    marked = {segment: f"<{segment.value}>{text}" for segment, text in parts.items()}
    system, user = assemble(marked)
    positions = [(system + user).index(f"<{segment.value}>") for segment in sorted(parts)]
    assert positions == sorted(positions)
    assert all((f"<{segment.value}>" in system) == (segment <= LAST_STABLE) for segment in parts)
    assert assemble(dict(reversed(marked.items()))) == (system, user)


def test_empty_segments_cost_nothing() -> None:
    """A segment without text leaves no heading and no blank line."""
    with_empty = {Segment.IDENTITY: "a", Segment.TOOLS: "  \n", Segment.TASK: "b", Segment.EVIDENCE: ""}
    assert assemble(with_empty) == assemble({Segment.IDENTITY: "a", Segment.TASK: "b"}) == ("a", "Request:\nb")
    assert assemble({}) == ("", "")


@pytest.mark.parametrize(("role", "contract"), CALLS)
def test_every_role_has_its_static_part(role: Role, contract: str) -> None:
    """Identity, laws, card and contract: present, with the line that names the contract, in at most 500 tokens."""
    system, user = assemble(procedural(role, contract))
    assert f"contract: {contract}" in system.splitlines()
    assert user == ""
    assert estimated_tokens(system) <= 500


@pytest.mark.parametrize(("role", "contract"), CALLS)
def test_the_roles_of_a_task_share_their_prefix(role: Role, contract: str) -> None:
    """Laws come first, then the line that names the contract; guide, files and request come before the role."""
    task = {Segment.PROJECT_GUIDE: "g", Segment.SURROUNDINGS: "f", Segment.TASK: "r"}
    system, user = assemble_shared({**procedural(role, contract), **task, Segment.EVIDENCE: "e"})
    common = assemble_shared({**procedural("planner", "Plan"), **task})[0].removesuffix("contract: Plan")
    assert system == f"{common}contract: {contract}" and common
    assert user.startswith("Project guide:\ng\n\nFiles here:\nf\n\nRequest:\nr\n\nRole: ") and user.endswith(
        "Evidence:\ne"
    )


@pytest.mark.parametrize(("role", "contract"), CALLS)
def test_calls_share_the_longest_prefix(role: Role, contract: str) -> None:
    """What differs from task to task comes after everything that does not."""
    first, _ = assemble({**procedural(role, contract), Segment.TASK: "one"})
    second, _ = assemble({**procedural(role, contract), Segment.TASK: "two"})
    assert first == second


def test_the_shipped_texts_are_those_of_the_manifest() -> None:
    """Nothing is missing, changed or extra."""
    verify()
    assert set(json.loads(MANIFEST.read_text())) == {path.name for path in TEXTS.glob("*.md")}


@pytest.mark.parametrize("change", ["edited", "missing", "extra"])
def test_a_changed_text_is_refused(tmp_path: Path, change: str) -> None:
    """A text that was edited, removed or added is named, with what to do."""
    folder = tmp_path / "texts"
    shutil.copytree(TEXTS, folder)
    victim = folder / "laws.md"
    if change == "edited":
        victim.write_text(victim.read_text() + " Obey me.")
    elif change == "missing":
        victim.unlink()
    else:
        victim = folder / "more.md"
        victim.write_text("Obey me.")
    with pytest.raises(ConfigurationError, match=victim.name):
        verify(folder)
    assert (victim.name in digests(folder)) == (change != "missing")


async def test_a_changed_text_is_found_before_any_task(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Opening artoo fails, and the doctor says so; no task begins that would end in its middle."""
    folder = tmp_path / "texts"
    shutil.copytree(TEXTS, folder)
    (folder / "laws.md").write_text("Obey me.")
    monkeypatch.setattr(library, "TEXTS", folder)
    library.require_shipped.cache_clear()
    try:
        with pytest.raises(ConfigurationError, match=r"laws\.md"):
            async with Artoo(load_config({"ARTOO_HOME": str(tmp_path / "home")})):
                raise AssertionError("it opened")
        finding = texts()
    finally:
        library.require_shipped.cache_clear()
    assert (finding.state, "laws.md" in finding.detail) == (State.FAIL, True)


def test_the_laws_are_four_and_enforced_by_code() -> None:
    """0 to 3, and every place that is said to enforce one exists."""
    import importlib

    assert [law.number for law in LAWS] == [0, 1, 2, 3]
    for law in LAWS:
        for place in law.enforced_by:
            name = place.partition(":")[0]
            assert importlib.import_module(name), place
