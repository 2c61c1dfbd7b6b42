"""Split a model's thoughts from its words by marks such as `<think>`.

This is done before the text is parsed. The functions are pure.

Each format is one line of data. It has the mark that opens a thought and the mark that closes it. A thought is at
the beginning of an answer, or follows another thought. Tags with the name `think` may also begin any later line
outside of a block.
"""

from __future__ import annotations

import re
from typing import NamedTuple

from artoo.llm.text.fences import fences_in

_NAME = (
    r"(?P<name>(?:\w+[:_-])?(?:think\w*|thoughts?(?:_\w+)?|reason(?:ing)?(?:_\w+)?|reflection|scratchpad|analysis"
    r"|deliberation|monologue|cot))"
)
_OPENERS = (
    (rf"<{_NAME}(?:\s[^<>\n]*)?>", r"</{name}\s*>"),  # most models
    # Mistral; the same mark in small letters may be a link
    (rf"(?-i:(?=\[[A-Z_]+\](?!\()))\[{_NAME}\]", r"\[/{name}\]"),
    (rf"◁{_NAME}▷", r"◁/{name}▷"),  # Kimi
    (rf"<\|start_{_NAME}\|>", r"<\|end_{name}\|>"),  # Cohere
    (rf"<\|begin_of_{_NAME}\|>", r"<\|end_of_{name}\|>"),  # OpenThinker
    (rf"<\|{_NAME}\|>", r"<\|(?:/|end_?){name}\|>"),
    (r"<(?:\|channel|unused94)>thought\n", r"<(?:channel\||unused95)>"),  # Gemma, MedGemma
    (r"<\|inner_prefix\|>", r"<\|inner_suffix\|>"),  # Apertus
    # Harmony, in which every message names its channel, and only `final` is for users. `call_forms` reads the
    # calls.
    (
        r"(?:<\|start\|>assistant)?<\|channel\|>(?:analysis|commentary(?![^<]*to=))[^<]*<\|message\|>",
        r"<\|end\|>|(?=<\|start\|>)",
    ),
    (r"analysis(?=[\s\S]*assistantfinal)", r"assistantfinal"),  # Harmony, after its marks were removed
)
_OPENING = [(re.compile(r"\s*" + opening, re.IGNORECASE), closing) for opening, closing in _OPENERS]
_LATER = re.compile(r"^[ \t]*<(?P<name>(?:[\w-]+[:_])?think\w*)(?:\s[^<>\n]*)?>", re.IGNORECASE | re.MULTILINE)
_END_NAME = r"(?:\w+[:_-])?(?:think\w*|thoughts?|reasoning)"
_ENDS = [re.compile(closing.replace("{name}", _END_NAME), re.IGNORECASE) for _, closing in _OPENERS[:6]]
_ENDS.append(re.compile(r"\[BEGIN FINAL RESPONSE\]"))  # Apriel
_WRAPPERS = [
    re.compile(opening + r"(?P<words>[\s\S]*?)" + closing, re.IGNORECASE)
    for opening, closing in (
        (r"\A\s*(?:<\|start\|>assistant)?<\|channel\|>final[^<]*<\|message\|>", r"(?:<\|(?:return|end)\|>\s*)?\Z"),
        (r"\A\s*<\|START_RESPONSE\|>", r"(?:<\|END_RESPONSE\|>\s*)?\Z"),
        (r"\A\s*<\|begin_of_solution\|>", r"(?:<\|end_of_solution\|>\s*)?\Z"),
        (r"\A\s*<(?:answer|response)>", r"</(?:answer|response)>\s*\Z"),
        (r"\A(?=[\s\S]*\[END FINAL RESPONSE\]\s*\Z)", r"\[END FINAL RESPONSE\]\s*\Z"),
    )
]
# The first characters of all marks.
_FIRST = "<[◁a"


class Spoken(NamedTuple):
    """The words of a text, and a thought at its end that was not closed. `thought`: true if the text contained any
    thoughts."""

    words: str
    unclosed: str = ""
    thought: bool = False


def split_thoughts(text: str) -> Spoken:
    """Return the words of a text, without its thoughts. A thought that was not closed is returned separately. If a
    closing mark has no opening mark, all text before it is a thought, because the opening mark was in the template
    of the prompt.
    """
    text, thought = _after_unopened(text)
    said: list[str] = []
    while True:
        closed = _closing(text)
        if closed is None:
            break
        before, rest = closed
        said.append(before)
        thought = True
        if rest is None:
            return Spoken("".join(said), text[len(before) :], thought)
        text = rest
    said.append(text)
    words = "".join(said)
    for wrapper in _WRAPPERS:
        if (found := wrapper.match(words)) is not None:
            return Spoken(found.group("words"), "", thought)
    return Spoken(words, "", thought)


def may_be_thinking(text: str) -> bool:
    """Return whether an incomplete text is a thought, or may become one when more characters arrive."""
    begun = text.lstrip()
    if not begun:
        return True
    if begun[0] not in _FIRST:
        return False
    if begun[0] == "a":
        return "analysis".startswith(begun[:8])
    spoken = split_thoughts(text)
    return not spoken.words.strip() or (not spoken.thought and len(begun) < 32 and "\n" not in begun)


def _after_unopened(text: str) -> tuple[str, bool]:
    """Return the text after a closing mark that has no opening mark. Return also whether there was one."""
    for end in _ENDS:
        found = end.search(text)
        if found is not None and not _opens_before(text, found.start()) and not _in_block(text, found.start()):
            return text[found.end() :], True
    return text, False


def _opens_before(text: str, place: int) -> bool:
    return any(opening.match(text) for opening, _ in _OPENING) or _LATER.search(text, 0, place) is not None


def _closing(text: str) -> tuple[str, str | None] | None:
    """Return the text before the next thought, and the text after it (None if the thought is not closed). Return
    None if there is no thought."""
    for opening, closing in _OPENING:
        found = opening.match(text)
        if found is not None:
            return "", _behind(text, found, closing)
    for found in _LATER.finditer(text):
        if not _in_block(text, found.start()):
            return text[: found.start()], _behind(text, found, r"</{name}\s*>")
    return None


def _behind(text: str, opening: re.Match[str], closing: str) -> str | None:
    name = opening.groupdict().get("name") or ""
    end = re.compile(closing.replace("{name}", re.escape(name)), re.IGNORECASE).search(text, opening.end())
    return text[end.end() :] if end is not None else None


def _in_block(text: str, place: int) -> bool:
    return ("```" in text or "~~~" in text) and any(
        fence.closed and fence.start <= place < fence.end for fence in fences_in(text)
    )
