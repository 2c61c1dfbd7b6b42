"""`artoo init` and `artoo laws`."""

from __future__ import annotations

import json
from pathlib import Path

import jsonschema
import pytest
import yaml

from artoo.cli.commands.config_command import schema_text
from artoo.cli.main import main
from artoo.prompts.laws import LAWS
from artoo.runtime.config.loader import load_config, read_config
from artoo.runtime.config.model import Config
from artoo.runtime.config.template import template_text


def test_init_writes_a_configuration_that_holds_the_defaults(home: Path) -> None:
    """What init writes loads, and changes nothing; only its owner can read it."""
    assert main(["init"]) == 0
    assert home.stat().st_mode & 0o777 == 0o700
    assert (home / "config.yaml").stat().st_mode & 0o077 == 0
    assert load_config() == Config()
    assert sorted(path.name for path in home.iterdir()) == ["config.schema.json", "config.yaml"]


def test_init_never_overwrites_unasked(home: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """An existing configuration stays as it is, unless --force."""
    home.mkdir()
    (home / "config.yaml").write_text("workspace: /elsewhere\n")
    assert main(["init"]) == 2
    assert "--force replaces it" in capsys.readouterr().err
    assert (home / "config.yaml").read_text() == "workspace: /elsewhere\n"
    assert main(["init", "--force"]) == 0
    assert (home / "config.yaml").read_text() == template_text()


def test_init_says_when_it_cannot_write(home: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A home that is a file is an error of configuration."""
    home.write_text("in the way", encoding="utf-8")
    assert main(["init"]) == 2
    assert str(home) in capsys.readouterr().err


def test_the_schema_fits_the_template(capsys: pytest.CaptureFixture[str]) -> None:
    """The schema for editors accepts what init writes, and refuses an unknown key."""
    assert main(["init", "--schema"]) == 0
    schema = json.loads(capsys.readouterr().out)
    assert json.loads(schema_text()) == schema
    given = yaml.safe_load(template_text())
    jsonschema.validate(given, schema)
    with pytest.raises(jsonschema.ValidationError):
        jsonschema.validate({**given, "zzz": 1}, schema)


def test_every_setting_is_in_the_template() -> None:
    """Each setting stands in the template, at least as a comment."""
    from artoo.runtime.config.env_overrides import variables

    text = template_text()
    for route in variables().values():
        assert f"{route[-1]}:" in text, route


def test_the_template_is_read_with_its_own_values(tmp_path: Path) -> None:
    """Every value in the template is the default (so that deleting a line changes nothing)."""
    path = tmp_path / "config.yaml"
    path.write_text(template_text())
    assert read_config(path, {}) == Config()


def test_laws_are_shown_with_what_enforces_them(capsys: pytest.CaptureFixture[str]) -> None:
    """All four laws, their text, and each enforcement point."""
    assert main(["laws"]) == 0
    shown = capsys.readouterr().out
    for law in LAWS:
        assert f"Law {law.number}: {law.name}" in shown
        assert law.text in shown
        assert all(place in shown for place in law.enforced_by)
    assert main(["laws", "--json"]) == 0
    assert [law["number"] for law in json.loads(capsys.readouterr().out)] == [0, 1, 2, 3]
