from __future__ import annotations

import json
import re
from enum import StrEnum
from typing import Literal

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from pydantic import BaseModel, Field

from artoo.contracts.criteria import Criterion, FileMatches, OutputIsJson, ToolSucceeded
from artoo.contracts.plan import Plan, PlannedSubTask
from artoo.contracts.request import TaskSpec
from artoo.llm.grammar import grammar_of
from artoo.llm.schema import schema_of

from .gbnf_matcher import Grammar


class Colour(StrEnum):
    RED = "red"
    BLUE = "blue"


class Leaf(BaseModel):
    kind: Literal["leaf"] = "leaf"
    size: int = Field(default=1, ge=1, le=9)


class Tree(BaseModel):
    kind: Literal["tree"] = "tree"
    parts: list[Tree | Leaf] = Field(default=[], max_length=2)


class Step(BaseModel):
    thought: str = ""
    tool: str
    colour: Colour | None = None
    count: int = 0
    share: float = 0.0
    sure: bool = True
    tags: tuple[str, ...] = ()
    pair: tuple[str, int] | None = None
    names: dict[str, int] = Field(default_factory=dict)
    command: str = ""


def compact(value: object) -> str:
    return json.dumps(value, ensure_ascii=False, separators=(", ", ": "))


STEP = Grammar(grammar_of(schema_of(Step)))
PLAN = Grammar(grammar_of(schema_of(Plan)))


def test_answers_in_field_order_are_in_the_language():
    """Every field kind can be written, in order, and optional ones may be left out."""
    assert STEP.matches(compact({"tool": "shell"}))
    assert STEP.matches('{"tool":"shell"}')
    assert STEP.matches(
        compact(
            {
                "thought": 'say "no" \\ \n 也 𝄞',
                "tool": "shell",
                "colour": "blue",
                "count": -12,
                "share": 1.5e-3,
                "sure": False,
                "tags": ["a", "b", "c"],
                "pair": ["x", 3],
                "names": {"a": 1, "b": 2},
                "command": "ls",
            }
        )
    )


@pytest.mark.parametrize(
    "text",
    [
        "",
        "{}",
        '{"tool": 1}',
        '{"tool": "a"',
        '{"tool": "a"} and more',
        '{"tool": "a", "thought": "b"}',
        '{"tool": "a", "colour": "green"}',
        '{"tool": "a", "unknown": 1}',
        '{"tool": "a",  "count": 1}',
        '{\n"tool": "a"}',
        '{"tool": "a\nb"}',
        '{"tool": "a", "pair": ["x"]}',
        '{"tool": "a", "count": 01}',
    ],
)
def test_other_texts_are_not(text: str):
    """Missing and unknown fields, other orders, wrong types, indentation and raw newlines cannot be written."""
    assert not STEP.matches(text)


def test_unions_references_and_recursion():
    """Tagged unions need their tag, bounds of arrays and small integers hold, a schema may contain itself."""
    tree = Grammar(grammar_of(schema_of(Tree)))
    leaf = {"kind": "leaf", "size": 9}
    assert tree.matches(compact({"kind": "tree", "parts": [leaf, {"kind": "tree", "parts": [leaf]}]}))
    assert not tree.matches(compact({"kind": "tree", "parts": [leaf, leaf, leaf]}))
    assert not tree.matches(compact({"kind": "tree", "parts": [{"kind": "leaf", "size": 10}]}))
    assert not tree.matches(compact({"kind": "tree", "parts": [{"size": 1}]}))


def test_a_schema_of_any_kind_has_a_grammar():
    """One that contains itself by `#`, definitions of an older draft, and what the subset does not know."""
    itself = {"name": {"type": "string"}, "below": {"$ref": "#"}}
    tree = Grammar(grammar_of({"type": "object", "properties": itself}))
    assert tree.matches(compact({"name": "a", "below": {"name": "b", "below": {}}}))
    assert not tree.matches(compact({"name": "a", "below": [1]}))
    older = {"properties": {"a": {"$ref": "#/definitions/A"}}, "definitions": {"A": {"type": "boolean"}}}
    assert Grammar(grammar_of({"type": "object", **older})).matches(compact({"a": True}))
    assert not Grammar(grammar_of({"type": "object", **older})).matches(compact({"a": 1}))
    odd_ones: list[object] = [True, {"$ref": "#/nowhere"}, {"$ref": "https://x.example/y"}, {"enum": []}, {}]
    for odd in odd_ones:
        written = Grammar(grammar_of({"type": "object", "properties": {"a": odd}, "required": ["a"]}))
        assert written.matches(compact({"a": [1, {"b": None}]}))
    listed = Grammar(grammar_of({"type": "array", "items": [{"type": "string"}]}))
    assert listed.matches(compact(["x", 1]))


def test_contracts_can_be_written():
    """The real contracts, with every kind of check, are in the language of their own grammars."""
    plan = Plan(
        task_criteria=(
            Criterion(text="a", check=FileMatches(path="x", regex=r"\d+")),
            Criterion(text="b", check=OutputIsJson(schema={"type": "array", "items": {"minimum": 1.5}})),
        ),
        subtasks=(PlannedSubTask(intent="数一数", success_criteria=(Criterion(text="c", check=ToolSucceeded()),)),),
    )
    assert PLAN.matches(compact(plan.model_dump(mode="json", by_alias=True)))
    spec = TaskSpec(task_id="a", intent="b", raw_input="c")
    assert Grammar(grammar_of(schema_of(TaskSpec))).matches(compact(spec.model_dump(mode="json")))


@given(
    st.builds(Step, share=st.floats(allow_nan=False, allow_infinity=False), count=st.integers(-(10**15), 10**15))
)
@example(Step(tool="", share=0.00012345678901234567))
@settings(max_examples=40, deadline=None)
def test_every_value_can_be_written(step: Step):
    """Whatever a contract can hold, the grammar lets a model say."""
    text = re.sub(r"\.0(?=[,}e])", "", compact(step.model_dump(mode="json")))
    names = step.model_dump()["names"]
    if all(abs(value) < 10**15 for value in names.values()) and (step.pair is None or abs(step.pair[1]) < 10**15):
        assert STEP.matches(text.replace("\x7f", "\\u007f"))


def test_no_length_limit_reaches_the_grammar():
    """A limit on text would cut it and spill the rest into the next field, so the grammar ignores it."""

    class Short(BaseModel):
        name: str = Field(max_length=3)

    assert Grammar(grammar_of(schema_of(Short))).matches('{"name": "longer than three"}')
