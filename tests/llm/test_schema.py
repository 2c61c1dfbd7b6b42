from __future__ import annotations

from typing import cast

import jsonschema
from pydantic import BaseModel, ConfigDict, Field

from artoo.contracts.criteria import Criterion, FileExists
from artoo.contracts.plan import Plan, PlannedSubTask
from artoo.llm.schema import Schema, is_strict, schema_of, strict_form


class Part(BaseModel):
    """A docstring for programmers."""

    model_config = ConfigDict(extra="forbid")
    name: str = Field(default="x", description="what to call it")


class Whole(BaseModel):
    model_config = ConfigDict(extra="forbid")
    parts: list[Part] = []
    code: str = ""
    size: int


class Open(BaseModel):
    model_config = ConfigDict(extra="forbid")
    anything: dict[str, object]


def test_schemas_are_small_and_still_true():
    """Titles, defaults and class docstrings are gone, field descriptions stay, and the contract still fits."""
    text = str(schema_of(Plan))
    assert not any(word in text for word in ("'title'", "'default'", "discriminator", "oneOf"))
    part = cast(dict[str, Schema], schema_of(Whole)["$defs"])["Part"]
    assert "description" not in part
    assert cast(dict[str, Schema], part["properties"])["name"]["description"] == "what to call it"
    plan = Plan(
        subtasks=(PlannedSubTask(intent="a"),), task_criteria=(Criterion(text="b", check=FileExists(path="c")),)
    )
    jsonschema.validate(plan.model_dump(mode="json", by_alias=True), schema_of(Plan))


def test_strict_form_requires_everything_or_gives_up():
    """Closed objects become strict by requiring every property; free-form objects cannot."""
    assert not is_strict(schema_of(Whole))
    strict = strict_form(schema_of(Whole))
    assert strict is not None
    assert is_strict(strict)
    assert strict["required"] == ["parts", "code", "size"]
    assert cast(dict[str, Schema], strict["$defs"])["Part"]["required"] == ["name"]
    assert strict_form(schema_of(Open)) is None
    assert strict_form(schema_of(Plan)) is None
