"""Numbers and empty documents of a YAML file are read as a user means them, or stay text and are refused."""

from __future__ import annotations

from pathlib import Path

import pytest

from artoo.runtime.config.loader import read_config
from artoo.settings.yaml_edit import with_value
from artoo.settings.yaml_file import parse


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("010", 10),
        ("-08", -8),
        ("0o17", 15),
        ("0x1F", 31),
        ("1e2", 100.0),
        (".5", 0.5),
        ("1:30", "1:30"),
        ("1_0", "1_0"),
        ("0b11", "0b11"),
        ("2026-11-28", "2026-11-28"),
        ("no", False),
        ("~", None),
    ],
)
def test_scalars_are_read_as_yaml_1_2_reads_them(text: str, value: object) -> None:
    """A leading zero is decimal, and minutes or thousands with underscores are no numbers."""
    assert parse(f"a: {text}", Path("config.yaml"))[0] == {"a": value}


@pytest.mark.parametrize(
    "text", ["", "# nothing\n", "---\n# nothing\n", "---\n", "null\n", "~\n", "--- null\n...\n"]
)
def test_a_file_without_settings_is_an_empty_configuration(text: str, tmp_path: Path) -> None:
    """Comments, a document mark and an explicit null hold no setting."""
    file = tmp_path / "config.yaml"
    file.write_text(text)
    assert read_config(file, {}) == read_config(tmp_path / "none.yaml", {})


@pytest.mark.parametrize("value", ["08", "010", "1e2", "1_0", "0o17", ".5", "no", "null", "~", "", "1:30", "x"])
@pytest.mark.parametrize("text", ["", "---\n# mine\n", "null\n", "~ # mine\n", "b: 1\n"])
def test_a_text_that_is_written_is_read_as_that_text(text: str, value: str) -> None:
    """What looks like a number is quoted, also in a file that held nothing."""
    assert parse(with_value(text, ("a",), value), Path("config.yaml"))[0]["a"] == value
