"""Structured results: a value of the caller's own type, grounded in what was delivered, or none and the reason."""

from __future__ import annotations

from pathlib import Path
from typing import Literal

import pytest
from pydantic import BaseModel, Field, field_validator

from artoo import Artoo, Config, ConfigurationError, RunOptions
from artoo.contracts.criteria import Assurance
from artoo.contracts.findings import OwnValues, Unformed
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


async def test_a_type_without_a_schema_is_refused(config: Config) -> None:
    """Before anything is started, with what would do."""
    with ScriptedModel({}) as model:
        async with Artoo(config, environ={}, model=model) as artoo:
            with pytest.raises(ConfigurationError, match="Use a Pydantic model"):
                await artoo.run("Who is last?", returns=Path.__class__)
