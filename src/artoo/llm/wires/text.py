"""Render a conversation in the text dialect, one JSON step per message with fenced blocks.

Programs and files are written in a fenced block. The functions are pure.

    free text
    {"tool": "write_file", "input": "a.txt"}        a call; code and file content are in the block below
    ```text
    …

The dialect is used for small models and for endpoints without function calling. It is not a wire of its own. A
conversation is rewritten as plain text, which any wire can send. `text.steps` parses the answer into a turn.
"""

from __future__ import annotations

import json
from collections.abc import Mapping

from artoo.contracts.conversation import Message, ModelTurn, Returned, Said, Took, ToolRequest
from artoo.llm.prompt import Exchange, Prompt, carried, exchanges
from artoo.llm.text.steps import DELIVER
from artoo.ports.model import Conversation
from artoo.ports.tools import ToolSpec


def text_prompt(conversation: Conversation) -> Prompt:
    """Return the prompt for the next turn of a conversation in the text dialect."""
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
    """Write a turn as the model would have written it in this dialect. Equal turns give equal texts."""
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
