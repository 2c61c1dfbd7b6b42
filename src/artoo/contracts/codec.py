"""Encode and decode an envelope as one JSON line, with the schema version.

The task log, audit log, spool files, event output and network use this format.

Pydantic serializes the payload once. The other fields are written around its bytes. Every line contains the schema
version, so that the line can be read without its file.
"""

from __future__ import annotations

import importlib
import json
import pkgutil
from collections.abc import Mapping
from datetime import datetime
from functools import cache
from types import MappingProxyType
from typing import cast

import orjson
import pydantic_core
from pydantic import ValidationError

from artoo import contracts
from artoo.contracts.base import Contract
from artoo.contracts.envelope import Envelope
from artoo.contracts.errors import MessageUnreadable
from artoo.contracts.roles import Role
from artoo.contracts.routes import ROUTES

# The schema version. It is increased by one whenever lines of the previous version can no longer be read.
SCHEMA_VERSION = 1

_SHOWN = 80


@cache
def payload_classes() -> Mapping[str, type[Contract]]:
    """Return every payload class by kind. These are the classes in artoo.contracts that are in the table of
    routes."""
    modules = pkgutil.iter_modules(contracts.__path__, f"{contracts.__name__}.")
    return MappingProxyType(
        {
            name: value
            for module in modules
            for name, value in vars(importlib.import_module(module.name)).items()
            if name in ROUTES and isinstance(value, type) and issubclass(value, Contract)
        }
    )


def encode(envelope: Envelope) -> bytes:
    """Encode an envelope as one line of JSON in UTF-8, without a line end."""
    try:
        return _spliced(envelope, pydantic_core.to_json(envelope.payload))
    except (pydantic_core.PydanticSerializationError, orjson.JSONEncodeError):
        # File names need not be UTF-8. Python represents such bytes as lone surrogates. Only the encoder of the
        # standard library can write these, and only its decoder can read them.
        return json.dumps(_plain(envelope), separators=(",", ":")).encode("ascii")


def encode_line(envelope: Envelope) -> bytes:
    """Encode as `encode` does, with a line end."""
    return encode(envelope) + b"\n"


def decode(line: bytes | str) -> Envelope:
    """Return the envelope of one line. Raises MessageUnreadable with the reason."""
    return from_fields(fields_of(line))


def fields_of(line: bytes | str) -> dict[str, object]:
    """Parse a line as JSON, for code that reads fields of a message without building the message. Raises
    MessageUnreadable."""
    try:
        # orjson would round an integer that does not fit into 64 bits
        parsed: object = pydantic_core.from_json(line)
    except (ValueError, TypeError):
        try:
            parsed = json.loads(line)
        except (ValueError, RecursionError) as error:  # raised also for thousands of digits or brackets
            raise MessageUnreadable(f"not a line of JSON ({error}): {line[:_SHOWN]!r}") from error
    if not isinstance(parsed, dict):
        raise MessageUnreadable(f"not a JSON object: {line[:_SHOWN]!r}")
    return cast("dict[str, object]", parsed)


def line_of(fields: Mapping[str, object]) -> bytes:
    """Return parsed fields as a line without a line end. This is the inverse of `fields_of`."""
    try:
        return orjson.dumps(fields)
    except orjson.JSONEncodeError:
        return json.dumps(fields, separators=(",", ":")).encode("ascii")


def from_fields(fields: Mapping[str, object]) -> Envelope:
    """Return the envelope of a line that is already parsed. Raises MessageUnreadable."""
    version = fields.get("v")
    if version != SCHEMA_VERSION:
        raise MessageUnreadable(
            f"the message has schema version {version!r}, this artoo reads version {SCHEMA_VERSION}; "
            "read it with the artoo that wrote it, or a newer one"
        )
    kind = fields.get("kind")
    payload_class = payload_classes().get(kind) if isinstance(kind, str) else None
    if payload_class is None:
        raise MessageUnreadable(
            f"no message is of kind {kind!r}; it was written by another version of artoo, or is not a message"
        )
    try:
        return Envelope(
            id=_text(fields, "id"),
            sender=Role(_text(fields, "sender")),
            task_id=_text(fields, "task_id"),
            at=datetime.fromisoformat(_text(fields, "at")),
            payload=payload_class.model_validate(fields["payload"]),
            subtask_id=_optional_text(fields, "subtask_id"),
            cause_id=_optional_text(fields, "cause_id"),
        )
    except ValidationError as error:
        # The first error is enough for the text of the exception, because a damaged line could have dozens of them.
        first = error.errors()[0]
        where = ".".join(str(part) for part in first["loc"])
        raise MessageUnreadable(f"the payload is not a {kind}: {where or 'as a whole'}: {first['msg']}") from error
    except (KeyError, TypeError, ValueError) as error:
        raise MessageUnreadable(f"the envelope of a {kind} is incomplete or wrong: {error}") from error


def _spliced(envelope: Envelope, payload: bytes) -> bytes:
    return orjson.dumps(
        {
            "v": SCHEMA_VERSION,
            "id": envelope.id,
            "kind": envelope.kind,
            # orjson reads the value of an enum in Python, which takes a third of the time
            "sender": str(envelope.sender),
            "task_id": envelope.task_id,
            "subtask_id": envelope.subtask_id,
            "cause_id": envelope.cause_id,
            "at": envelope.at,
            "payload": orjson.Fragment(payload),
        }
    )


def _plain(envelope: Envelope) -> dict[str, object]:
    return {
        "v": SCHEMA_VERSION,
        "id": envelope.id,
        "kind": envelope.kind,
        "sender": envelope.sender.value,
        "task_id": envelope.task_id,
        "subtask_id": envelope.subtask_id,
        "cause_id": envelope.cause_id,
        "at": envelope.at.isoformat(),
        "payload": envelope.payload.model_dump(mode="json"),
    }


def _text(fields: Mapping[str, object], name: str) -> str:
    value = fields[name]
    if not isinstance(value, str):
        raise TypeError(f"{name} must be a string, not {value!r}")
    return value


def _optional_text(fields: Mapping[str, object], name: str) -> str | None:
    return None if fields.get(name) is None else _text(fields, name)
