"""How one request is written: what a server accepts, and what the configuration wants (pure)."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from functools import lru_cache
from typing import Literal

from pydantic import BaseModel

from artoo.llm.schema import Schema, is_strict, schema_of, strict_form

Reasoning = Literal["off", "low", "medium", "high"]


class Form(StrEnum):
    """How structure is asked for, strongest first. `grammar` is llama.cpp's; `free` asks for none."""

    JSON_SCHEMA = "json_schema"
    FORCED_TOOL = "forced_tool"
    JSON_OBJECT = "json_object"
    GRAMMAR = "grammar"
    PROMPTED = "prompted"
    FREE = "free"


@dataclass(frozen=True, slots=True)
class How:
    """`without` names the optional features that the server refuses, see `artoo.llm.dialect`. `reasoning` None:
    as the server likes. `strict`: schemas are wanted in strict form. `llama`: the server is llama.cpp's."""

    model: str
    form: Form = Form.FREE
    without: frozenset[str] = frozenset()
    temperature: float = 0.0
    seed: int = 0
    max_tokens: int | None = 1_024
    stop: tuple[str, ...] = ()
    stream: bool = False
    reasoning: Reasoning | None = None
    strict: bool = False
    llama: bool = False
    caches: bool = False

    def has(self, feature: str) -> bool:
        """True if the server was not seen to refuse this feature."""
        return feature not in self.without


@lru_cache(maxsize=256)
def answer_schema(schema: type[BaseModel], *, wants_strict: bool) -> tuple[Schema, bool]:
    """The schema of an answer, and whether it is strict: every object closed, every property required."""
    form = schema_of(schema)
    strict = strict_form(form) if wants_strict else (form if is_strict(form) else None)
    return (form, False) if strict is None else (strict, True)
