"""Structured results: a value of the caller's own type, grounded in what was delivered, or none and the reason."""

from __future__ import annotations

import copy
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, cast

import pytest
from pydantic import BaseModel, Field, field_validator

from artoo import Artoo, Budgets, Config, ConfigurationError, RunOptions, run_sync
from artoo.contracts.criteria import Assurance
from artoo.contracts.findings import OwnValues, Unformed
from artoo.contracts.solution import StoppedBy
from artoo.loops.medium.shaping import _contract  # pyright: ignore[reportPrivateUsage]
from artoo.runtime.replay.replay import replay
from artoo.tasklog.reader import find_log
from artoo.testing import ScriptedModel, with_body
from artoo.testing.script import Entry

ANSWERED = {"text": "there is an answer", "check": {"check": "output_matches", "regex": r"[A-Za-z0-9]"}}


class Person(BaseModel):
    """A line of people.csv."""

    name: str
    age: int = Field(ge=0)
    group: Literal["young", "old"] = "old"


class Picky(BaseModel):
    """What its JSON schema cannot say."""

    age: int

    @field_validator("age")
    @classmethod
    def odd(cls, age: int) -> int:
        if age % 2 == 0:
            raise ValueError("must be odd")
        return age


@dataclass
class Point:
    """A plain dataclass."""

    x: int
    y: int


@pytest.fixture
def config(tmp_path: Path) -> Config:
    (tmp_path / "project").mkdir()
    (tmp_path / "project" / "people.csv").write_text("Ada Byron,36\nAlan Turing,41\n")
    return Config(workspace=tmp_path / "workspace").at_home(tmp_path / "home")


def options(tmp_path: Path) -> RunOptions:
    return RunOptions(project=tmp_path / "project")


def script(command: str, *formed: object) -> dict[str, Entry]:
    said: dict[str, Entry] = {
        "Plan": {"subtasks": [{"intent": "look", "tool": "shell", "success_criteria": [ANSWERED]}]},
        "ExecutorStep": with_body({"tool": "shell", "is_final": True}, command),
    }
    values: Entry = [{"value": each} for each in formed]
    return said | ({"StructuredResult": values} if formed else {})


async def test_an_answer_becomes_a_value_of_the_callers_type(config: Config, tmp_path: Path) -> None:
    """Every leaf stands in the output, a choice of the schema's is the model's reading: judged, not checked."""
    spoken = script("tail -1 people.csv", {"name": "Alan Turing", "age": 41, "group": "young"})
    with ScriptedModel(spoken) as model:
        async with Artoo(config, environ={}, model=model) as artoo:
            returned = await artoo.run("Who is last?", returns=Person, options=options(tmp_path))
        [asked] = model.player.of("StructuredResult")
    assert returned.value == Person(name="Alan Turing", age=41, group="young")
    assert returned.result.assurance is Assurance.JUDGED
    assert returned.result.cost.llm_calls == 3
    assert '"minimum": 0' in asked.user


async def test_what_is_in_the_form_already_costs_no_call(config: Config, tmp_path: Path) -> None:
    """Output that fits the schema is the value, with the assurance of the output."""
    with ScriptedModel(script("echo '[1, 2]' > a; cat a")) as model:
        async with Artoo(config, environ={}, model=model) as artoo:
            returned = await artoo.run("Which numbers?", returns=list[int], options=options(tmp_path))
    assert returned.value == [1, 2]
    assert returned.result.assurance is Assurance.CHECKED


async def test_what_the_model_puts_in_is_named(config: Config, tmp_path: Path) -> None:
    """A number that the answer does not hold makes the result unverified, and its place is a fact."""
    spoken = script("tail -1 people.csv", {"name": "Alan Turing", "age": 42})
    with ScriptedModel(spoken) as model:
        async with Artoo(config, environ={}, model=model) as artoo:
            returned = await artoo.run("Who is last?", returns=Person, options=options(tmp_path))
    assert returned.value is not None
    assert returned.result.assurance is Assurance.UNVERIFIED
    assert returned.result.facts[-1] == OwnValues(places=("$.age",))


async def test_a_misfit_is_asked_for_once_more(config: Config, tmp_path: Path) -> None:
    """The second question says what was wrong with the first answer."""
    spoken = script("tail -1 people.csv", {"name": "Alan Turing", "age": -1}, {"name": "Alan Turing", "age": 41})
    with ScriptedModel(spoken) as model:
        async with Artoo(config, environ={}, model=model) as artoo:
            returned = await artoo.run("Who is last?", returns=Person, options=options(tmp_path))
        _, again = model.player.of("StructuredResult")
    assert returned.value is not None and returned.value.age == 41
    assert "-1 is less than the minimum of 0" in again.user


async def test_a_model_that_cannot_leaves_no_value_and_the_reason(config: Config, tmp_path: Path) -> None:
    """The answer is delivered all the same, unverified, and a fact says what did not fit."""
    spoken = script("tail -1 people.csv", {"who": "Alan"}, {"who": "Alan"})
    with ScriptedModel(spoken) as model:
        async with Artoo(config, environ={}, model=model) as artoo:
            returned = await artoo.run("Who is last?", returns=Person, options=options(tmp_path))
    assert returned.value is None
    assert returned.result.output == "Alan Turing,41"
    assert returned.result.assurance is Assurance.UNVERIFIED
    fact = returned.result.facts[-1]
    assert isinstance(fact, Unformed) and "'name' is a required property" in fact.problem


async def test_a_validator_of_the_types_own_decides_too(config: Config, tmp_path: Path) -> None:
    """What only Python can tell is told after the task: no value, and why."""
    with ScriptedModel(script("echo 4 > a; cat a", {"age": 4})) as model:
        async with Artoo(config, environ={}, model=model) as artoo:
            returned = await artoo.run("How old?", returns=Picky, options=options(tmp_path))
    assert returned.value is None
    assert returned.result.facts[-1] == Unformed(problem="age: Value error, must be odd")


async def test_an_abandoned_task_has_no_value(config: Config, tmp_path: Path) -> None:
    """Nothing is made up from what was not reached, and no call is spent on it."""
    short = RunOptions(project=tmp_path / "project", budgets=Budgets(calls=1))
    with ScriptedModel({"Plan": script("")["Plan"]}) as model:
        async with Artoo(config, environ={}, model=model) as artoo:
            returned = await artoo.run("Who is last?", returns=Person, options=short)
    assert (returned.value, returned.result.stopped_by) == (None, StoppedBy.CALLS)


async def test_a_type_without_a_schema_is_refused(config: Config) -> None:
    """Before anything is started, with what would do."""
    with ScriptedModel({}) as model:
        async with Artoo(config, environ={}, model=model) as artoo:
            with pytest.raises(ConfigurationError, match="Use a Pydantic model"):
                await artoo.run("Who is last?", returns=Path.__class__)


async def test_a_replay_reaches_the_same_value(config: Config, tmp_path: Path) -> None:
    """The form is part of the request on the stream, and its call is in the log."""
    spoken = script("echo 3 4 > a; cat a", {"x": 3, "y": 4})
    with ScriptedModel(spoken) as model:
        async with Artoo(config, environ={}, model=model) as artoo:
            returned = await artoo.run("Where?", returns=Point, options=options(tmp_path))
    assert returned.value == Point(3, 4)
    again = await replay(list(find_log(config.home, returned.result.task_id)))
    assert again.difference is None


async def test_checks_may_be_given_to_a_run(config: Config, tmp_path: Path) -> None:
    """They stand beside those of the options, and decide."""
    spoken = script("echo made > made.txt; cat made.txt")
    with ScriptedModel(spoken) as model:
        async with Artoo(config, environ={}, model=model) as artoo:
            result = await artoo.run("make it", checks=["grep -q made made.txt"], options=options(tmp_path))
    assert result.assurance is Assurance.CHECKED
    assert (tmp_path / "project" / "made.txt").exists()


def test_without_an_event_loop(config: Config, tmp_path: Path) -> None:
    """`run_sync` opens, runs and closes."""
    with ScriptedModel(script("tail -1 people.csv")) as model:
        result = run_sync("Who is last?", options=options(tmp_path), config=config, model=model)
    assert result.output == "Alan Turing,41"


async def test_within_an_event_loop_it_says_what_to_use() -> None:
    """A wait that would never end is refused."""
    with pytest.raises(ConfigurationError, match=r"await artoo\.run"):
        run_sync("hello")


def test_references_of_a_schema_lead_into_it() -> None:
    """What stands inside the answer's schema still means itself, and its own definitions."""
    tree: dict[str, object] = {
        "type": "object",
        "properties": {"a": {"$ref": "#/definitions/A"}, "b": {"$ref": "#/$defs/B"}, "below": {"$ref": "#"}},
        "definitions": {"A": {"type": "string"}},
        "$defs": {"B": {"type": "integer"}},
    }
    made = _contract(tree).model_json_schema()
    value = made["properties"]["value"]
    assert {name: part["$ref"] for name, part in value["properties"].items()} == {
        "a": "#/properties/value/definitions/A",
        "b": "#/$defs/B",
        "below": "#/properties/value",
    }
    assert (made["$defs"], value["definitions"]) == (tree["$defs"], tree["definitions"])


def test_only_what_is_a_reference_of_a_schema_is_led_elsewhere() -> None:
    """A name leads to its anchor wherever that stands; values and properties only look like references."""
    looks = {"$ref": "#/x"}
    tree: dict[str, object] = {
        "type": "object",
        "properties": {
            "a": {"$ref": "#Address"},
            "b": {"const": looks},
            "c": {"enum": [looks, '{"$ref": "#/x"}'], "default": looks},
            "$ref": {"type": "string"},
            "default": {"anyOf": [{"$ref": "#/properties/a"}, {"type": "null"}]},
        },
        "$defs": {"A": {"$anchor": "Address", "type": "string", "not": {"$ref": "#"}}},
    }
    before = copy.deepcopy(tree)
    made = _contract(tree).model_json_schema()
    inner = cast("dict[str, object]", tree["properties"])
    led = {"anyOf": [{"$ref": "#/properties/value/properties/a"}, {"type": "null"}]}
    assert made["properties"]["value"]["properties"] == {**inner, "default": led}
    assert made["$defs"]["A"]["not"] == {"$ref": "#/properties/value"}
    assert tree == before
