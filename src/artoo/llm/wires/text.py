"""The text dialect: one step per call, written as JSON with programs and file contents in a fenced block (pure).

    free text
    {"tool": "write_file", "input": "a.txt"}        a call; code and file content stand in the block below
    ```text
    …

For models that are small, and for endpoints without function calling. It is no wire of its own: a conversation is
rewritten so that any wire can carry it as plain text, and the text that comes back is read as a turn. A block of
bash or Python alone is a call too, and its output the answer: small models write programs in this way.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import Any, ClassVar, Literal

from pydantic import BaseModel, ConfigDict, Field, JsonValue, PrivateAttr, create_model

from artoo.contracts.conversation import Message, ModelTurn, Returned, Said, Took, ToolRequest
from artoo.llm.prompt import Exchange, Prompt, carried, exchanges
from artoo.llm.text.reading import read_answer
from artoo.ports.arguments import as_text, json_types
from artoo.ports.model import Conversation
from artoo.ports.tools import ToolSpec, own_names

ANSWER, CANNOT, DELIVER = "answer", "cannot", "deliver"


class _Step(BaseModel):
    """One step as models write it. `body` is the text of the fenced block. `sources` and `failures` are read and
    ignored: the record decides what an answer rests on."""

    model_config = ConfigDict(extra="forbid", frozen=True)
    languages: ClassVar[tuple[tuple[str, str], ...]] = ()
    specs: ClassVar[Mapping[str, ToolSpec]] = {}

    tool: str
    input: JsonValue = ""
    more: dict[str, JsonValue] = Field(default_factory=dict[str, JsonValue])
    is_final: bool = False
    sources: tuple[int, ...] = ()
    failures: tuple[int, ...] = ()
    body: str = ""
    _others: int = PrivateAttr(default=0)

    @property
    def others(self) -> int:
        """How many more steps stood in the same answer: the first is taken."""
        return self._others

    def among(self, others: int) -> _Step:
        """Return the step, with how many more there were."""
        step = self.model_copy()
        step._others = others
        return step

    @property
    def block(self) -> str | None:
        """The fenced block; None where none was given, which is not an empty one."""
        return self.body if "body" in self.model_fields_set else None

    @classmethod
    def is_words(cls, header: Mapping[str, object]) -> bool:
        """True if the body is what a person reads, which may hold blocks itself."""
        return header.get("tool") in (ANSWER, CANNOT)

    @classmethod
    def from_bare_body(cls, info: str, body: str) -> _Step | None:
        """A step from a block without its line of JSON; None when the block's language fits no tool."""
        wanted = info.strip().lower()
        tool = next((tool for language, tool in cls.languages if wanted == language), None)
        return cls(tool=tool, is_final=True, body=body) if tool is not None else None

    @classmethod
    def from_words(cls, text: str) -> _Step | None:
        """Words without any form are an answer."""
        return cls(tool=ANSWER, body=text) if text else None


@lru_cache(maxsize=64)
def _step_type(specs: tuple[ToolSpec, ...]) -> type[_Step]:
    """A step with these tools, `answer` or `cannot`, so that no other tool can be named."""
    names = (*(spec.name for spec in specs), ANSWER, CANNOT)
    fields: dict[str, Any] = {"tool": (Literal[names], ...)}  # pyright: ignore[reportInvalidTypeForm]
    schema = create_model("ExecutorStep", __base__=_Step, **fields)
    schema.specs = {spec.name: spec for spec in specs}
    schema.languages = tuple(
        (language, spec.name) for spec in specs if spec.languages for language in (*spec.languages, spec.name)
    )
    return schema


def text_prompt(conversation: Conversation) -> Prompt:
    """The prompt of a conversation's next turn in the text dialect."""
    by_name = {spec.name: spec for spec in conversation.tools}
    messages: list[Message] = []
    for part in exchanges(tuple(map(carried, conversation.messages))):
        if isinstance(part, Exchange):
            messages.append(_said(part))
        else:
            messages.append(Took(turn=ModelTurn(text=written(part, by_name))))
    return Prompt(
        contract=conversation.contract,
        system=conversation.text_system,
        messages=tuple(messages),
        variant=conversation.variant,
        key=conversation.key,
        pictures=conversation.pictures,
    )


def _said(part: Exchange) -> Said:
    both: tuple[Returned | Said, ...] = (*part.returned, *part.said)
    images = tuple(image for each in both for image in each.images)
    return Said(text="\n\n".join(each.text for each in both), images=images)


def written(turn: ModelTurn, specs: Mapping[str, ToolSpec]) -> str:
    """A turn as the model would have written it in this dialect: the same text for the same turn."""
    delivered = any(call.name == DELIVER for call in turn.calls)
    acts = [call for call in turn.calls if call.name != DELIVER] or list(turn.calls)
    steps = [_written_call(call, specs.get(call.name), final=delivered and call.name != DELIVER) for call in acts]
    return "\n".join(filter(None, (turn.text, *steps))) or "(empty)"


def _written_call(call: ToolRequest, spec: ToolSpec | None, *, final: bool) -> str:
    header: dict[str, object] = {"tool": call.name}
    rest = dict(call.arguments)
    block = rest.pop(spec.body, None) if spec is not None and spec.body is not None else None
    inline = spec.inline if spec is not None else None
    if inline is not None and isinstance(rest.get(inline.name), str):
        header["input"] = rest.pop(inline.name)
    if rest:
        header["more"] = rest
    if final:
        header["is_final"] = True
    line = json.dumps(header, ensure_ascii=False)
    if not isinstance(block, str):
        return line
    fence = "```"
    while fence in block:
        fence += "`"
    info = spec.languages[0] if spec is not None and spec.languages else "text"
    return f"{line}\n{fence}{info}\n{block.removesuffix(chr(10))}\n{fence}"


def turn_of(
    text: str, tools: Sequence[ToolSpec], new_id: str, *, cut: bool = False, small: bool = False
) -> ModelTurn:
    """The turn that a text says. `new_id`: of its call. `small`: a final step counts although more steps follow.

    Raises Unreadable.
    """
    step = read_answer(text, _step_type(tuple(tools)), body_field="body", cut=cut)
    words = (step.body or as_text(step.input)).strip()
    if step.tool == ANSWER:
        return ModelTurn(text=words, cut=cut)
    if step.tool == CANNOT:
        reason: dict[str, JsonValue] = {"reason": words}
        return ModelTurn(calls=(ToolRequest(id=new_id, name=CANNOT, arguments=reason),), cut=cut)
    spec = next(spec for spec in tools if spec.name == step.tool)
    arguments = arguments_for(spec, step.input, step.block, step.more)
    calls = [ToolRequest(id=new_id, name=spec.name, arguments=arguments)]
    # The output of the first of several steps cannot be the whole answer.
    if step.is_final and (small or not step.others):
        calls.append(ToolRequest(id=f"{new_id}_deliver", name=DELIVER))
    return ModelTurn(calls=tuple(calls), cut=cut)


def arguments_for(
    spec: ToolSpec, inline: JsonValue, block: str | None, more: Mapping[str, JsonValue]
) -> dict[str, JsonValue]:
    """A step's input, block and further values as this tool's named arguments; `block` is None where none came.

    Models put code into `input` now and then, and a path into the block: the empty one takes what the other one
    lacks, if that parameter is required. What is left over keeps its name, and the tool refuses it, except where
    the call is whole without it: a program says everything itself, and a tool that only reads does no harm.
    """
    inline = as_text(inline) if isinstance(inline, bool | int | float) else inline  # 0 and false are input too
    first = None if spec.inline is None else spec.inline.name
    own = own_names(one.named for one in spec.parameters)
    given = {own.get(name, name): value for name, value in more.items()}
    arguments = dict(more)
    if spec.body is not None and block is not None and (block or first or not inline):
        text = f"{block}\n" if spec.whole_lines and block.strip("\n") else block
        if text or spec.body not in given:
            arguments[spec.body if given.get(spec.body, text) == text else "block"] = text
    if first is not None and first not in given:
        arguments[first] = inline or ("" if spec.body is not None else (block or "").strip())
    elif spec.body is not None and spec.body not in {**given, **arguments} and (inline or first is None):
        arguments[spec.body] = inline
    elif inline:
        arguments["input"] = inline
    harmless = bool(spec.languages) or not spec.writes
    types = {name: json_types(one.schema) for one in spec.parameters for name in (one.name, *one.aliases)}
    return {
        name: as_text(value) if types.get(name) == frozenset({"string"}) else value
        for name, value in arguments.items()
        if name in types or not harmless
    }
