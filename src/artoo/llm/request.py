"""Build one request from a prompt for a wire and dialect, with the table of wires.

This module is pure.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from artoo.contracts.conversation import Said
from artoo.llm.dialect import Dialect
from artoo.llm.prompt import Prompt, stated_schema
from artoo.llm.wires import chat, messages, responses
from artoo.llm.wires.how import Form, How, ServerTraits, Wire

# The end of a small model's program. The stop sequence avoids waiting for text after it.
_FENCE_END = "\n```\n"
WIRES: Mapping[str, Wire] = {"chat": chat.WIRE, "responses": responses.WIRE, "messages": messages.WIRE}


def request_for(
    prompt: Prompt, model: str, max_tokens: int, wire: str, dialect: Dialect, traits: ServerTraits, *, stream: bool
) -> tuple[Prompt, How]:
    """Return the prompt as it is sent, and its options.

    If the server does not enforce the schema, the prompt states it: for a small model in the system message, for
    others at the end of the first message, because their system message is the same for all roles of a task.
    """
    form = dialect.form if prompt.schema is not None else Form.FREE  # fenced blocks and calls need no enforced form
    if wire == "messages" and form is Form.JSON_OBJECT:
        form = Form.PROMPTED  # this wire has no such form
    if prompt.schema is not None and form in (Form.JSON_OBJECT, Form.PROMPTED):
        prompt = _with_schema(prompt, stated_schema(prompt.schema), first=traits.is_small)
    how = How(
        model=model,
        form=form,
        without=dialect.without,
        variant=prompt.variant,
        max_tokens=max_tokens,
        stop=(_FENCE_END,) if form is Form.FREE and traits.is_small and not prompt.tools else (),
        stream=stream,
        traits=traits,
    )
    return prompt, how


def _with_schema(prompt: Prompt, stated: str, *, first: bool) -> Prompt:
    """Add the text that states a prompt's schema to the system message (`first`) or below the request."""
    asked = prompt.messages[0] if prompt.messages else None
    if first or not isinstance(asked, Said):
        return replace(prompt, system=f"{prompt.system}\n\n{stated}")
    asked = asked.model_copy(update={"text": f"{asked.text}\n\n{stated}"})
    return replace(prompt, messages=(asked, *prompt.messages[1:]))
