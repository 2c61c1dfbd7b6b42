"""Every message can be written as a line and read back as the same message."""

from __future__ import annotations

import json
import re
from datetime import UTC, datetime
from enum import Enum
from types import UnionType
from typing import Annotated, Literal, Union, get_args, get_origin

import orjson
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.strategies import SearchStrategy
from pydantic import BaseModel, JsonValue
from pydantic.fields import FieldInfo

from artoo.contracts import codec
from artoo.contracts.base import Contract
from artoo.contracts.criteria import Criterion, OutputIsJson
from artoo.contracts.envelope import Envelope
from artoo.contracts.errors import MessageUnreadable
from artoo.contracts.execution import ExecutionResult, ToolCall, ToolCalled
from artoo.contracts.plan import Plan, PlannedSubTask
from artoo.contracts.request import UserRequest
from artoo.contracts.roles import Role
from artoo.contracts.routes import ROUTES
from artoo.contracts.solution import Directive, FinalResult

AT = datetime(2026, 5, 4, 3, 2, 1, 123456, tzinfo=UTC)


def wrapped(payload: Contract) -> Envelope:
    return Envelope("id-1", Role.EXECUTOR, "task-1", AT, payload, "s1", "id-0")


def any_text() -> SearchStrategy[str]:
    """Any text at all, lone surrogates (bytes of file names) included."""
    return st.text(max_size=20)


def line(**changes: object) -> bytes:
    """A good line, changed."""
    fields = codec.fields_of(codec.encode(wrapped(UserRequest(text="t", project="/p", workspace="/w"))))
    return orjson.dumps({**fields, **changes})


def test_every_kind_of_the_table_of_routes_has_its_class() -> None:
    """What can be published can be read back: no kind is without a payload class."""
    assert set(codec.payload_classes()) == set(ROUTES)
    assert all(name == payload.kind() for name, payload in codec.payload_classes().items())


@pytest.mark.parametrize("kind", sorted(ROUTES))
def test_a_message_of_every_kind_survives_the_line(kind: str) -> None:
    """decode(encode(x)) == x for generated instances of every registered contract."""

    @settings(max_examples=5, deadline=None, database=None)
    @given(instances(codec.payload_classes()[kind]))
    def survives(payload: BaseModel) -> None:
        assert isinstance(payload, Contract)
        envelope = wrapped(payload)
        encoded = codec.encode(envelope)
        assert b"\n" not in encoded
        assert codec.decode(encoded) == envelope
        assert codec.line_of(codec.fields_of(encoded)) == encoded

    survives()


def test_a_line_has_the_schema_version_and_the_envelope() -> None:
    """The form of a line is part of the contract: other programs read it."""
    payload = UserRequest(text="数一数", project="/p", workspace="/w")
    assert json.loads(codec.encode_line(wrapped(payload))) == {
        "v": codec.SCHEMA_VERSION,
        "id": "id-1",
        "kind": "UserRequest",
        "sender": "executor",
        "task_id": "task-1",
        "subtask_id": "s1",
        "cause_id": "id-0",
        "at": "2026-05-04T03:02:01.123456+00:00",
        "payload": {
            "text": "数一数",
            "project": "/p",
            "workspace": "/w",
            "history": [],
            "checks": [],
            "returns": None,
            "images": [],
        },
    }


def test_a_field_with_an_alias_survives() -> None:
    """The one aliased field of the contracts is read back whatever name it was written under."""
    check = OutputIsJson.model_validate({"schema": {"type": "object"}})
    plan = Plan(subtasks=(PlannedSubTask(intent="i", success_criteria=(Criterion(text="c", check=check),)),))
    assert codec.decode(codec.encode(wrapped(plan))).payload == plan


@pytest.mark.parametrize("name", ["\udcff", "a\udc80b", "\ud800"])
def test_names_that_are_not_utf_8_survive(name: str) -> None:
    """File names are bytes; those that are no UTF-8 travel as lone surrogates and come back the same."""
    call = ToolCall(tool="glob", identity=("glob",), output=name, changes=(name,))
    envelope = wrapped(ToolCalled(subtask_id="s1", attempt=1, call=call))
    encoded = codec.encode(envelope)
    assert encoded.isascii()
    assert codec.decode(encoded) == envelope
    assert codec.line_of(codec.fields_of(encoded)) == encoded


@pytest.mark.parametrize(
    ("bad", "says"),
    [
        (b"{", "not a line of JSON"),
        (b"\xff\xfe", "not a line of JSON"),
        (b"[" * 100_000, "not a line of JSON"),
        (b"[1" + b"0" * 5_000 + b"]", "not a line of JSON"),
        (b"[1]", "not a JSON object"),
        (line(v=2), "schema version 2, this artoo reads version 1"),
        (line(v=None), "schema version None"),
        (line(kind="Gossip"), "no message is of kind 'Gossip'"),
        (line(kind=7), "no message is of kind 7"),
        (line(sender="nobody"), "'nobody' is not a valid Role"),
        (line(id=7), "id must be a string, not 7"),
        (line(cause_id=7), "cause_id must be a string, not 7"),
        (line(at="yesterday"), "Invalid isoformat"),
        (line(payload={"text": "t"}), "not a UserRequest: project: Field required"),
        (line(payload=3), "not a UserRequest: as a whole"),
        (b'{"v":1,"kind":"Halt"}', "envelope of a Halt is incomplete"),
    ],
)
def test_what_is_not_a_message_is_refused_with_a_reason(bad: bytes, says: str) -> None:
    """decode raises MessageUnreadable and nothing else, and names what is wrong."""
    with pytest.raises(MessageUnreadable, match=says):
        codec.decode(bad)


@settings(max_examples=100, deadline=None, database=None)
@given(st.binary(max_size=60) | st.text(max_size=60))
def test_no_input_breaks_the_decoder(junk: bytes | str) -> None:
    """Whatever bytes a file holds, the only error is MessageUnreadable."""
    with pytest.raises(MessageUnreadable):
        codec.decode(junk)


def instances(model: type[BaseModel]) -> SearchStrategy[BaseModel]:
    """Instances of a contract from the types and limits of its fields, optional ones included."""
    codec.payload_classes()
    model.model_rebuild()
    fields = {name: field_values(field) for name, field in model.model_fields.items()}
    return st.builds(model, **fields)


def field_values(field: FieldInfo) -> SearchStrategy[object]:
    bounds = {type(limit).__name__: limit for limit in field.metadata}
    return values(field.annotation, bounds)


def values(annotation: object, bounds: dict[str, object] | None = None) -> SearchStrategy[object]:
    """Values of one annotation. `bounds` are the field's annotated limits by class name (Ge, Le, MaxLen …)."""
    limits = bounds or {}
    origin, arguments = get_origin(annotation), get_args(annotation)
    if origin is Annotated:
        return values(arguments[0], {type(limit).__name__: limit for limit in arguments[1:]} | limits)
    if origin in (Union, UnionType):
        return st.one_of([values(argument, limits) for argument in arguments])
    if origin is Literal:
        return st.sampled_from(arguments)
    if origin is tuple:
        if arguments[-1] is Ellipsis:
            return st.lists(values(arguments[0]), max_size=2).map(tuple)
        return st.tuples(*map(values, arguments))
    if origin is dict:
        plain = st.none() | st.booleans() | st.integers(-9, 9) | any_text()
        of = plain if arguments[1] in (object, JsonValue) else values(arguments[1])
        return st.dictionaries(any_text(), of, max_size=2)
    if isinstance(annotation, type):
        return values_of_class(annotation, limits)
    return st.none()


def limited_text(limits: dict[str, object]) -> SearchStrategy[str]:
    """Text that keeps the field's pattern, when it has one."""
    patterns = [str(found) for limit in limits.values() if (found := pattern_of(limit)) is not None]
    if patterns:
        return st.from_regex(re.compile(patterns[0], re.ASCII), fullmatch=True)
    return st.text("abc_-09", min_size=1, max_size=20)


def pattern_of(limit: object) -> object:
    for part in limit.metadata if isinstance(limit, FieldInfo) else (limit,):
        if (found := getattr(part, "pattern", None)) is not None:
            return found
    return None


def values_of_class(annotation: type, limits: dict[str, object]) -> SearchStrategy[object]:
    if issubclass(annotation, BaseModel):
        return instances(annotation)
    if issubclass(annotation, Enum):
        return st.sampled_from(list(annotation))
    if issubclass(annotation, bool):
        return st.booleans()
    low, high = getattr(limits.get("Ge"), "ge", 0), getattr(limits.get("Le"), "le", 50)
    if issubclass(annotation, int):
        return st.integers(low, high)
    if issubclass(annotation, float):
        return st.floats(low, high)
    if issubclass(annotation, str):
        return limited_text(limits) if limits else any_text()
    if annotation is type(None):
        return st.none()
    return st.datetimes(timezones=st.just(UTC))


@pytest.mark.parametrize("number", [2**64, -(2**63) - 1, 10**30])
def test_whole_numbers_beyond_64_bits_survive(number: int) -> None:
    """A model's number of a call, and a number in a structured answer, come back as they were."""
    for payload in (
        ExecutionResult(subtask_id="s1", attempt=1, status="completed", sources=(number,)),
        FinalResult(task_id="task-1", summary="", directive=Directive.ACCEPT, value={"n": number}),
    ):
        assert codec.decode(codec.encode(wrapped(payload))).payload == payload
