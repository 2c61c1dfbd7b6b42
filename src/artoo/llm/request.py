"""The body of a chat-completions request for a prompt, in a server's dialect (pure)."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

from pydantic import BaseModel

from artoo.llm.dialect import Dialect, Wire
from artoo.llm.grammar import grammar_of
from artoo.llm.prompt import Prompt, stated_schema
from artoo.llm.schema import Schema, is_strict, schema_of, strict_form
from artoo.llm.wires import chat

_FENCE_END = "\n```\n"
"""Where a small model's program ends; what it writes afterwards is only waited for."""
_WARMER, _HOTTEST = 0.3, 0.9
"""Each further variant samples a little more freely: a small model that is made hot at once loses the thread."""


SMALL_BYTES = 5_000_000_000
"""Weights below this are a small model: about eight billion parameters in four bits."""


@dataclass(frozen=True, slots=True)
class ServerTraits:
    """What is known of a server besides its dialect.

    `is_openai`: it insists on strict schemas. `compact`: where it is llama.cpp, every answer is held by our own
    grammar and not by the server's, which lets a model indent its JSON (a third more tokens). `model_bytes`:
    the size of its weights, `window`: its context in tokens, where the server tells.
    """

    is_llama: bool = False
    model_bytes: int | None = None
    window: int | None = None
    is_openai: bool = False
    compact: bool = False

    @property
    def is_small(self) -> bool:
        """True when the model is known to be small."""
        return self.model_bytes is not None and self.model_bytes < SMALL_BYTES


def wire_for(prompt: Prompt, dialect: Dialect, traits: ServerTraits) -> Wire:
    """How structure is asked for; what may hold a fenced block or calls is held by nothing."""
    if prompt.schema is None:
        return Wire.FREE
    if traits.compact and traits.is_llama and dialect.compact is Wire.GRAMMAR:
        return Wire.GRAMMAR
    return dialect.structure


def body_for(
    prompt: Prompt, *, model: str, wire: Wire, dialect: Dialect, traits: ServerTraits, stream: bool = False
) -> dict[str, object]:
    """The request's body. Variant 0 is greedy; variant n samples with seed n, the same answer for the same n.

    Where the server does not enforce the schema, the system message states it.
    """
    system = prompt.system
    if prompt.schema is not None and wire in (Wire.JSON_OBJECT, Wire.PROMPTED):
        system = f"{system}\n\n{stated_schema(prompt.schema)}"
    body: dict[str, object] = {"model": model, "messages": chat.messages_of(prompt, system)}
    if prompt.tools:
        body["tools"] = chat.tools_of(prompt.tools)
    if stream:
        body |= {"stream": True, "stream_options": {"include_usage": True}}
    body["temperature"] = min(_HOTTEST, _WARMER * prompt.variant)
    if prompt.variant:
        body["seed"] = prompt.variant
    body["max_tokens"] = prompt.max_tokens
    if traits.is_llama:
        body["cache_prompt"] = True
    if wire is Wire.FREE and traits.is_small and not prompt.tools:
        body["stop"] = [_FENCE_END]
    for name in dialect.without:
        body.pop(name, None)
    if "max_tokens" in dialect.without:
        body["max_completion_tokens"] = prompt.max_tokens
    if prompt.schema is not None:
        body |= _form(prompt.schema, prompt.contract, wire, traits)
    return body


def _form(schema: type[BaseModel], contract: str, wire: Wire, traits: ServerTraits) -> dict[str, object]:
    if wire is Wire.JSON_SCHEMA:
        return {"response_format": _schema_format(schema, contract, traits.is_openai)}
    if wire is Wire.JSON_OBJECT:
        return {"response_format": {"type": "json_object"}}
    return {"grammar": _grammar(schema)} if wire is Wire.GRAMMAR else {}


@lru_cache(maxsize=256)
def _schema_format(schema: type[BaseModel], contract: str, wants_strict: bool) -> dict[str, object]:
    form: Schema = schema_of(schema)
    strict = strict_form(form) if wants_strict else (form if is_strict(form) else None)
    described: dict[str, object] = {"name": contract, "schema": form if strict is None else strict}
    if strict is not None:
        described["strict"] = True
    return {"type": "json_schema", "json_schema": described}


@lru_cache(maxsize=256)
def _grammar(schema: type[BaseModel]) -> str:
    return grammar_of(schema_of(schema))
