from __future__ import annotations

from typing import cast

import jsonschema
from pydantic import BaseModel, ConfigDict, Field

from artoo.contracts.criteria import Criterion, FileExists
from artoo.contracts.plan import Plan, PlannedSubTask
from artoo.llm.schema import Schema, schema_of


class Part(BaseModel):
    """A docstring for programmers."""

    model_config = ConfigDict(extra="forbid")
    name: str = Field(default="x", description="what to call it")


class Whole(BaseModel):
    model_config = ConfigDict(extra="forbid")
    parts: list[Part] = []
    code: str = ""
    size: int


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
