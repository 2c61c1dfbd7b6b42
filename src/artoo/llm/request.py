"""The body of a chat-completions request for a question, in a server's dialect (pure)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import TypeVar

import orjson
from pydantic import BaseModel

from artoo.contracts.well_formed import well_formed
from artoo.llm.dialect import Dialect, Wire
from artoo.llm.grammar import grammar_of
from artoo.llm.schema import Schema, is_strict, schema_of, strict_form
from artoo.ports.model import Question

T = TypeVar("T", bound=BaseModel)
Message = dict[str, str]
PICTURE_TOKENS = 1_600
"""Of one image, by estimate, until the server has counted: what published formulas give for one of a megapixel."""
_REPAIR_KEEPS = 2_000
_FRAME = 16
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


def wire_for(question: Question[T], dialect: Dialect, traits: ServerTraits) -> Wire:
    """How structure is asked for; what may hold a fenced block is held by nothing."""
    if question.body_field is not None:
        return Wire.FREE
    if traits.compact and traits.is_llama and dialect.compact is Wire.GRAMMAR:
        return Wire.GRAMMAR
    return dialect.structure


def messages_for(question: Question[T], wire: Wire) -> list[Message]:
    """System and user message. Where the server does not enforce the schema, the system message states it.

    What cannot be sent as UTF-8 is a question mark.
    """
    system = question.system
    if wire in (Wire.JSON_OBJECT, Wire.PROMPTED):
        system = f"{system}\n\n{_stated(question.schema)}"
    said = {"system": system, "user": question.user}  # descriptions, names and history come from anywhere
    return [{"role": role, "content": well_formed(text)} for role, text in said.items()]


def body_for(
    question: Question[T],
    messages: list[Message],
    *,
    model: str,
    wire: Wire,
    dialect: Dialect,
    traits: ServerTraits,
    max_tokens: int,
) -> dict[str, object]:
    """The request's body. Variant 0 is greedy; variant n samples with seed n, the same answer for the same n."""
    body: dict[str, object] = {"model": model, "messages": _with_pictures(messages, question.pictures)}
    body["temperature"] = min(_HOTTEST, _WARMER * question.variant)
    if question.variant:
        body["seed"] = question.variant
    body["max_tokens"] = max_tokens
    if traits.is_llama:
        body["cache_prompt"] = True
    if wire is Wire.FREE and traits.is_small:
        body["stop"] = [_FENCE_END]
    for name in dialect.without:
        body.pop(name, None)
    if "max_tokens" in dialect.without:
        body["max_completion_tokens"] = max_tokens
    if wire is Wire.JSON_SCHEMA:
        body["response_format"] = _schema_format(question.schema, question.contract, traits.is_openai)
    elif wire is Wire.JSON_OBJECT:
        body["response_format"] = {"type": "json_object"}
    elif wire is Wire.GRAMMAR:
        body["grammar"] = _grammar(question.schema)
    return body


def _with_pictures(messages: list[Message], pictures: Sequence[str]) -> object:
    """The messages with the images after the words of the question, as parts of its content."""
    if not pictures:
        return messages
    shown = [{"type": "image_url", "image_url": {"url": url}} for url in pictures]
    system, user, *more = messages
    return [system, {"role": user["role"], "content": [{"type": "text", "text": user["content"]}, *shown]}, *more]


def repair_messages(
    messages: list[Message], answer: str, problem: str, question: Question[T], wire: Wire
) -> list[Message]:
    """The same conversation with the bad answer and what is wrong with it."""
    shown = answer if len(answer) <= _REPAIR_KEEPS else answer[:_REPAIR_KEEPS] + " …"
    form = "only the complete JSON object" if question.body_field is None else "one of the forms above, complete"
    request = f"That answer is no valid {question.contract}: {problem}. Answer again with {form}."
    if wire is Wire.JSON_SCHEMA:
        # Some servers accept a schema and ignore it; then the model has not seen it yet.
        request = f"{request}\n{_stated(question.schema)}"
    return [
        *messages,
        {"role": "assistant", "content": well_formed(shown) or "(empty)"},
        {"role": "user", "content": request},
    ]


def estimated_tokens(*texts: str) -> int:
    """Tokens of these texts by rule of thumb: four bytes of UTF-8 each, which suits English and Chinese alike."""
    return sum(map(_bytes, texts)) // 4


def most_tokens(messages: list[Message], body: dict[str, object], pictures: int = 0) -> int:
    """Tokens that the prompt has at most: one a byte, which no tokenizer exceeds, and some for each frame.

    A schema counts, because servers may write it into the prompt. What images take is an estimate.
    """
    form = body.get("response_format")
    most = len(orjson.dumps(form)) if form is not None else 0
    for each in messages:
        most += _bytes(each["content"]) + _FRAME
    return most + pictures * PICTURE_TOKENS


def _bytes(text: str) -> int:
    """Length in UTF-8; of plain English without a copy."""
    return len(text) if text.isascii() else len(text.encode(errors="replace"))


@lru_cache(maxsize=256)
def _stated(schema: type[BaseModel]) -> str:
    described = orjson.dumps(schema_of(schema)).decode()
    return f"Answer with one JSON object and nothing else. It fits this JSON schema: {described}"


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
