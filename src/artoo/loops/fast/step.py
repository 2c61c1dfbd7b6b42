"""One decision of the executor: a tool call, an answer with its sources, or that it cannot be done.

    free text
    {"tool": "write_file", "input": "a.txt"}        a call; code and file content stand in the block below
    ```text
    …

A block of bash or Python alone is a call too, and its output the answer: that is how small models write programs.
Nothing holds this form but the prompt; what comes back is read leniently (`artoo.llm.reading`).
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache
from typing import Any, ClassVar, Literal

from pydantic import Field, PrivateAttr, create_model

from artoo.contracts.base import Contract
from artoo.ports.tools import ToolSpec

ANSWER = "answer"
"""The step that ends an attempt with the executor's own words."""

CANNOT = "cannot"
"""The step that ends an attempt with why it cannot be done."""


class ExecutorStep(Contract):
    """`is_final`: the call's output is the answer, word for word. `sources`: numbers of the calls that an answer
    rests on; `failures`: those that did not end well, and of which it says so. `body` is the text of the fenced
    block; `languages` maps a block's info string to its tool, `specs` are the tools by name.
    """

    languages: ClassVar[tuple[tuple[str, str], ...]] = ()
    specs: ClassVar[Mapping[str, ToolSpec]] = {}

    tool: str
    input: str = ""
    more: dict[str, str] = Field(default_factory=dict[str, str])
    is_final: bool = False
    sources: tuple[int, ...] = Field(default=(), max_length=64)
    failures: tuple[int, ...] = Field(default=(), max_length=64)
    body: str = ""

    _others: int = PrivateAttr(default=0)

    @property
    def others(self) -> int:
        """How many more steps stood in the same answer: one is taken, the first."""
        return self._others

    def among(self, others: int) -> ExecutorStep:
        """The step, with how many more there were."""
        step = self.model_copy()
        step._others = others
        return step

    @property
    def block(self) -> str | None:
        """The fenced block; None where none was given, which is not an empty one."""
        return self.body if "body" in self.model_fields_set else None

    @property
    def words(self) -> str:
        """The text of a step that ends an attempt."""
        return (self.body or self.input).strip()

    @classmethod
    def is_words(cls, header: Mapping[str, object]) -> bool:
        """Whether the body is what a person reads, which may hold blocks itself."""
        return header.get("tool") in (ANSWER, CANNOT)

    @classmethod
    def from_bare_body(cls, info: str, body: str) -> ExecutorStep | None:
        """A step from a block without its line of JSON; None when the block's language fits no tool."""
        wanted = info.strip().lower()
        for language, tool in cls.languages:
            if wanted == language:
                return cls(tool=tool, is_final=True, body=body)
        return None

    @classmethod
    def from_words(cls, text: str) -> ExecutorStep | None:
        """Words without any form are an answer that names no source."""
        return cls(tool=ANSWER, body=text) if text else None


@lru_cache(maxsize=64)
def step_contract(specs: tuple[ToolSpec, ...]) -> type[ExecutorStep]:
    """ExecutorStep with these tools, `answer` or `cannot`, so that no other tool can be named."""
    names = (*(spec.name for spec in specs), ANSWER, CANNOT)
    fields: dict[str, Any] = {"tool": (Literal[names], ...)}  # pyright: ignore[reportInvalidTypeForm]
    schema = create_model("ExecutorStep", __base__=ExecutorStep, **fields)
    schema.specs = {spec.name: spec for spec in specs}
    schema.languages = tuple(
        (language, spec.name) for spec in specs if spec.languages for language in (*spec.languages, spec.name)
    )
    return schema
