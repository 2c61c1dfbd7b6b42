"""The prompt of a question or a conversation's turn before a wire renders it, with the tokens of an image."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache
from typing import TypeVar

import orjson
from pydantic import BaseModel

from artoo.contracts.conversation import Message, ModelTurn, Returned, Said, Took
from artoo.contracts.request import AttachedImage
from artoo.contracts.text import well_formed
from artoo.llm.schema import schema_of
from artoo.ports.model import Conversation, Question
from artoo.ports.tools import ToolSpec

T = TypeVar("T", bound=BaseModel)

# Estimated number of tokens of one image, until the server has counted them. Published formulas give this number
# for one megapixel.
PICTURE_TOKENS = 1_600

_REPAIR_KEEPS = 2_000
_FRAME = 16


@dataclass(frozen=True, slots=True)
class Prompt:
    """One request to a model, before a wire renders it.

    `schema`: the type of the answer (None: free text). `tools` are offered for function calling. `pictures` maps
    the SHA-256 of an image to its data URL. `key` identifies the conversation for the prompt caches of servers.
    """

    contract: str
    system: str
    messages: tuple[Message, ...]
    variant: int = 0
    schema: type[BaseModel] | None = None
    tools: tuple[ToolSpec, ...] = ()
    key: str = ""
    pictures: Mapping[str, str] = field(default_factory=dict[str, str])

    @property
    def images(self) -> int:
        """Count the images that are shown."""
        return sum(len(each.images) for each in self.messages if isinstance(each, Said | Returned))

    def extended(self, *messages: Message) -> Prompt:
        """Return the prompt with further messages appended."""
        return replace(self, messages=(*self.messages, *messages))


@dataclass(frozen=True, slots=True)
class Exchange:
    """Consecutive messages in the user's role, which a wire may send as one. The results of tool calls come before
    the texts."""

    returned: tuple[Returned, ...] = ()
    said: tuple[Said, ...] = ()

    @property
    def text(self) -> str:
        """Return the texts, with empty lines between them."""
        return "\n\n".join(each.text for each in self.said)

    @property
    def images(self) -> tuple[AttachedImage, ...]:
        """Return the images of the texts."""
        return tuple(image for each in self.said for image in each.images)


def exchanges(messages: Sequence[Message]) -> list[Exchange | ModelTurn]:
    """Join consecutive messages in the user's role, because several servers refuse two user messages in a row."""
    joined: list[Exchange | ModelTurn] = []
    for message in messages:
        last = joined[-1] if joined else None
        if isinstance(message, Took):
            joined.append(message.turn)
            continue
        if not isinstance(last, Exchange) or (isinstance(message, Returned) and last.said):
            last = Exchange()
            joined.append(last)
        if isinstance(message, Returned):
            joined[-1] = Exchange((*last.returned, message), last.said)
        else:
            joined[-1] = Exchange(last.returned, (*last.said, message))
    return joined


def prompt_of(question: Question[T]) -> Prompt:
    """Return the prompt for a question. If the answer may contain a fenced block, the text of the prompt describes
    the form."""
    return Prompt(
        contract=question.contract,
        system=question.system,
        # Names and history may come from any source, so characters that UTF-8 cannot encode are replaced.
        messages=(Said(text=well_formed(question.user), source="request", images=question.images),),
        variant=question.variant,
        schema=question.schema if question.body_field is None else None,
        pictures={image.sha256: url for image, url in zip(question.images, question.pictures, strict=False)},
    )


def native_prompt(conversation: Conversation) -> Prompt:
    """Return the prompt for the next turn of a conversation with function calling."""
    return Prompt(
        contract=conversation.contract,
        system=conversation.system,
        messages=tuple(map(carried, conversation.messages)),
        variant=conversation.variant,
        tools=conversation.tools,
        key=conversation.key,
        pictures=conversation.pictures,
    )


def carried(message: Message) -> Message:
    """Return a message that UTF-8 can encode. Texts from users, files or processes may contain other characters."""
    if isinstance(message, Took) or (text := well_formed(message.text)) == message.text:
        return message
    return message.model_copy(update={"text": text})


def halved(prompt: Prompt) -> Prompt:
    """Return the prompt with half of the text of each message, by which it is tested whether the prompt was too
    long."""
    messages: list[Message] = []
    for message in prompt.messages:
        if isinstance(message, Took):
            turn = message.turn
            messages.append(Took(turn=turn.model_copy(update={"text": turn.text[: len(turn.text) // 2]})))
        else:
            messages.append(message.model_copy(update={"text": message.text[: len(message.text) // 2]}))
    return replace(prompt, messages=tuple(messages))


def repaired(prompt: Prompt, answer: str, problem: str, *, stated: bool = False) -> Prompt:
    """Return the prompt with the bad answer and its problem appended. `stated`: true to show the schema once
    more."""
    shown = answer if len(answer) <= _REPAIR_KEEPS else answer[:_REPAIR_KEEPS] + " …"
    form = "one of the forms above, complete" if prompt.schema is None else "only the complete JSON object"
    request = f"That answer is no valid {prompt.contract}: {problem}. Answer again with {form}."
    if stated and prompt.schema is not None:
        request = f"{request}\n{stated_schema(prompt.schema)}"
    return prompt.extended(Took(turn=ModelTurn(text=well_formed(shown) or "(empty)")), Said(text=request))


@lru_cache(maxsize=256)
def stated_schema(schema: type[BaseModel]) -> str:
    """Return the text that asks for one JSON object of this schema."""
    described = orjson.dumps(schema_of(schema)).decode()
    return f"Answer with one JSON object and nothing else. It fits this JSON schema: {described}"


def estimated_tokens(*texts: str) -> int:
    """Estimate the tokens of these texts. Four UTF-8 bytes per token fit both English and Chinese."""
    return sum(map(_bytes, texts)) // 4


def texts_of(prompt: Prompt) -> list[str]:
    """Return all texts of a prompt, to count their tokens."""
    texts = [prompt.system]
    for message in prompt.messages:
        if isinstance(message, Took):
            calls = (call.name + orjson.dumps(call.arguments).decode() for call in message.turn.calls)
            texts += [message.turn.text, *calls]
        else:
            texts.append(message.text)
    return texts


def most_tokens(prompt: Prompt, form: object = None) -> int:
    """Return an upper bound for the tokens of a prompt. It is one token per byte, which no tokenizer exceeds, and
    some for the frame of each message.

    `form` describes the answer or the tools. It is counted because servers write it into the prompt. The tokens of
    images are only an estimate.
    """
    described = len(orjson.dumps(form)) if form else 0
    texts = texts_of(prompt)
    return described + sum(map(_bytes, texts)) + len(texts) * _FRAME + prompt.images * PICTURE_TOKENS


def _bytes(text: str) -> int:
    """Return the length of a text in UTF-8. For ASCII text, no encoded copy is made."""
    return len(text) if text.isascii() else len(text.encode(errors="replace"))
