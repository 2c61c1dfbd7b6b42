"""Build one request from a prompt for a wire and dialect, with the table of wires.

The functions are pure.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from artoo.contracts.conversation import Said
from artoo.llm.dialect import Dialect
from artoo.llm.prompt import Prompt, stated_schema
from artoo.llm.wires import chat, messages, responses
from artoo.llm.wires.how import Form, How, ServerTraits, Wire

# The text at which a small model's program ends. It is the stop sequence, so that no time is spent on text after
# the program.
_FENCE_END = "\n```\n"
WIRES: Mapping[str, Wire] = {"chat": chat.WIRE, "responses": responses.WIRE, "messages": messages.WIRE}


def request_for(
    prompt: Prompt, model: str, max_tokens: int, wire: str, dialect: Dialect, traits: ServerTraits, *, stream: bool
) -> tuple[Prompt, How]:
    """Return the prompt in the form in which it is sent, and its options.

    If the server does not enforce the schema, the prompt contains it. For a small model it is in the system
    message. For other models it is at the end of the first message, because their system message is the same for
    all roles of a task.
    """
    # fenced blocks and calls are parsed without an enforced form
    form = dialect.form if prompt.schema is not None else Form.FREE
    if wire == "messages" and form is Form.JSON_OBJECT:
        form = Form.PROMPTED  # this wire has no parameter for such a form
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
    """Add the text with the schema of a prompt to the system message (`first`), or else below the request."""
    asked = prompt.messages[0] if prompt.messages else None
    if first or not isinstance(asked, Said):
        return replace(prompt, system=f"{prompt.system}\n\n{stated}")
    asked = asked.model_copy(update={"text": f"{asked.text}\n\n{stated}"})
    return replace(prompt, messages=(asked, *prompt.messages[1:]))
