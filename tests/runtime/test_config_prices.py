"""Prices and log retention in the configuration: read, checked, and mistakes named."""

from __future__ import annotations

from pathlib import Path

import pytest

from artoo import ConfigurationError
from artoo.runtime.config.loader import read_config


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("prices: {models: {a: {promt: 1, prompt: 1, completion: 1}}}", "did you mean prompt?"),
        (
            "prices: {models: {a: {prompt: -1, completion: 1}}}",
            "prices.models.a.prompt is -1, but must be at least 0",
        ),
        ("prices: {models: {a: {prompt: 1}}}", "prices.models.a.completion is missing"),
        ("limits: {money: 0}", "limits.money is 0, but must be above 0"),
        ("log: {keep_days: 0}", "log.keep_days is 0, but must be above 0"),
        ("mcp_servers: {notes: {comand: x}}", "did you mean command?"),
    ],
)
def test_mistakes_are_named(tmp_path: Path, text: str, complaint: str) -> None:
    """Each mistake stands at its place, with what was probably meant."""
    path = tmp_path / "config.yaml"
    path.write_text(text)
    with pytest.raises(ConfigurationError) as caught:
        read_config(path, {})
    assert complaint in str(caught.value)
