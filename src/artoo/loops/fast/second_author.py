"""Who writes a second way: the same model, asked for one whole program with only the request and the listing."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache

from artoo.contracts.envelope import Envelope
from artoo.contracts.errors import ModelAnswerInvalid
from artoo.contracts.plan import SubTask
from artoo.loops.asking import Asker
from artoo.loops.fast.step import ExecutorStep
from artoo.loops.tool_text import program_in
from artoo.ports.evidence import Language
from artoo.prompts.library import procedural
from artoo.prompts.segments import Segment

_TOKENS = 700


class _Program(ExecutorStep):
    """A step that is one program; its line of JSON may be left out."""

    tool: str = ""
    is_final: bool = True

    @classmethod
    def from_bare_body(cls, info: str, body: str) -> ExecutorStep | None:
        """Any block is the program: its language is the one that was asked for."""
        return cls(body=body)

    @classmethod
    def from_words(cls, text: str) -> ExecutorStep | None:
        """Words are no program."""
        return None


@dataclass(frozen=True, slots=True)
class SecondAuthor:
    """Writes programs for one subtask; what the first way did is not shown to it."""

    asker: Asker
    subtask: SubTask
    listing: str
    cause: Envelope

    async def program(self, language: Language, variant: int) -> str | None:
        """A whole program in this language; None when the model gives none."""
        segments = {
            Segment.ROLE: _executors_role(),
            Segment.PROJECT_GUIDE: self.subtask.guide,
            Segment.SURROUNDINGS: self.listing,
            Segment.CONTEXT: self.subtask.context,
            Segment.SUBTASK: self.subtask.intent,
            Segment.CLOSING: program_in(language),
        }
        try:
            step = await self.asker.ask(
                "ExecutorStep",
                _Program,
                segments,
                cause=self.cause,
                max_tokens=_TOKENS,
                variant=variant,
                body_field="body",
                simple=True,
                images=self.subtask.images,
            )
        except ModelAnswerInvalid:
            return None
        return step.body if step.body.strip() else None


@cache
def _executors_role() -> str:
    """The executor's own words: the prompt then begins as that of the first way, which a server has cached."""
    return procedural("executor", "ExecutorStep", simple=True)[Segment.ROLE]
