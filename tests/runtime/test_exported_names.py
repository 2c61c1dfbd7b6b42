"""The public names of artoo."""

from __future__ import annotations

import subprocess
import sys

import pytest

import artoo

NAMES = [
    "ApplyMode",
    "Artoo",
    "ArtooError",
    "BudgetExhausted",
    "Budgets",
    "Changes",
    "Choice",
    "Config",
    "ConfigurationError",
    "ConfirmationRequest",
    "Consent",
    "Envelope",
    "FinalResult",
    "MemoryStoreError",
    "ModelAnswerInvalid",
    "ModelError",
    "ModelRefused",
    "ModelUnreachable",
    "Pending",
    "ProtocolError",
    "Returned",
    "RunOptions",
    "RunResult",
    "SandboxError",
    "ToolError",
    "Turn",
    "load_config",
    "run_sync",
    "tool",
]


def test_the_public_names_are_these() -> None:
    """Adding, renaming or removing a public name is a decision: it changes this list."""
    assert sorted(artoo.__all__) == NAMES
    assert dir(artoo) == NAMES


@pytest.mark.parametrize("name", NAMES)
def test_every_public_name_is_there(name: str) -> None:
    """Each name can be imported, and is what it is called."""
    assert getattr(artoo, name).__name__ == name


def test_other_names_are_not_there() -> None:
    """An unknown name is an AttributeError that says so."""
    with pytest.raises(AttributeError, match="no attribute 'nothing'"):
        _ = artoo.nothing  # pyright: ignore[reportAttributeAccessIssue]


def test_importing_artoo_imports_nothing_heavy() -> None:
    """`import artoo` loads none of its libraries."""
    program = "import sys, artoo; print(sorted({'pydantic', 'aiohttp', 'yaml', 'asyncio'} & set(sys.modules)))"
    ended = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert ended.stdout.strip() == "[]"
