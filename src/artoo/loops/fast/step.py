"""One decision of the executor: the contract ExecutorStep with the tools that are open to it."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from typing import Any, ClassVar, Literal

from pydantic import BaseModel, create_model

from artoo.contracts.base import Contract
from artoo.ports.model import AnswerForm
from artoo.ports.tools import ToolSpec

ANSWER = "answer"
"""The step that ends an attempt with the executor's own words."""

FAILED_PREFIX = "failed:"


class ExecutorStep(Contract):
    """A tool call, or the final answer. `is_final`: the call's output is the result, which saves a step.

    `body` is the text of the fenced block. `languages` maps a block's info string to the tool that runs it.
    """

    languages: ClassVar[tuple[tuple[str, str], ...]] = ()

    tool: str
    input: str = ""
    is_final: bool = False
    body: str = ""

    @property
    def failure(self) -> str | None:
        """Why the executor says that the subtask cannot be done, or None."""
        text = self.answer
        if self.tool == ANSWER and text.lower().startswith(FAILED_PREFIX):
            return text[len(FAILED_PREFIX) :].strip() or "no reason given"
        return None

    @property
    def answer(self) -> str:
        """The text of an answering step."""
        return (self.body or self.input).strip()

    @classmethod
    def from_bare_body(cls, info: str, body: str) -> ExecutorStep | None:
        """A step from a fenced block without its line of JSON; None when the block's language fits no tool."""
        for language, tool in cls.languages:
            if info.strip().lower() == language:
                return cls(tool=tool, is_final=True, body=body)
        return None


@dataclass(frozen=True, slots=True)
class StepContract:
    """What one step may be: the schema that every answer must fit, and its forms, one a tool."""

    schema: type[ExecutorStep]
    forms: tuple[AnswerForm, ...]


@lru_cache(maxsize=64)
def step_contract(specs: tuple[ToolSpec, ...]) -> StepContract:
    """ExecutorStep with these tools or `answer`, so that a model cannot name another.

    A tool without a block takes its input in the JSON; a tool that runs code takes it in a block alone. A model
    that is held to these forms cannot put code into a JSON string.
    """
    languages = tuple((language, spec.name) for spec in specs for language in spec.languages)
    schema = _narrowed((*(spec.name for spec in specs), ANSWER))
    schema.languages = languages
    forms = (*map(_form, specs), AnswerForm(_header(ANSWER, inline=False, final=False), ""))
    return StepContract(schema, forms)


def _narrowed(tools: tuple[str, ...]) -> type[ExecutorStep]:
    fields: dict[str, Any] = {"tool": (Literal[tools], ...)}  # pyright: ignore[reportInvalidTypeForm]
    return create_model("ExecutorStep", __base__=ExecutorStep, **fields)


def _form(spec: ToolSpec) -> AnswerForm:
    inline = any(parameter.name != spec.body for parameter in spec.parameters)
    header = _header(spec.name, inline=inline, final=True)
    if spec.body is None:
        return AnswerForm(header)
    return AnswerForm(header, spec.languages[0] if spec.languages else "")


def _header(tool: str, *, inline: bool, final: bool) -> type[BaseModel]:
    fields: dict[str, Any] = {"tool": (Literal[tool], ...)}  # pyright: ignore[reportInvalidTypeForm]
    if inline:
        fields["input"] = (str, ...)
    if final:
        fields["is_final"] = (bool, ...)
    return create_model("StepHeader", **fields)
