"""Agreement: a second way, written without sight of the first, run in a copy of the files as they were before.

    intent + listing ──► whole program, in another language ──► trial ──► tokens, or hashes of files, compared

For models that are known to be small, whose judgement of their own figure is no better than the figure; for others
with `--verify`. What nothing confirms stands open.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from functools import cache
from typing import ClassVar, Literal

from pydantic import BaseModel, ConfigDict, Field, JsonValue

from artoo.contracts.envelope import Envelope
from artoo.contracts.errors import ModelAnswerInvalid
from artoo.contracts.execution import CallStatus, ExecutionResult, ToolCall
from artoo.contracts.plan import SubTask
from artoo.loops.asking import Asker
from artoo.loops.tool_text import program_in
from artoo.ports.evidence import TRIAL_TEXTS, EvidenceSource, Language
from artoo.ports.tools import ToolSpec
from artoo.prompts.library import procedural
from artoo.prompts.segments import Segment
from artoo.verdicts.likeness import same_answer, same_figures

_TOKENS = 700


class SecondLook(StrEnum):
    """When a result needs a second way: for small models, always (`--verify`), or never."""

    AUTO = "auto"
    ALWAYS = "always"
    NEVER = "never"

    def wanted(self, *, small_model: bool) -> bool:
        """Whether the result of such a model is looked at twice."""
        return self is SecondLook.ALWAYS or (self is SecondLook.AUTO and small_model)


class _Program(BaseModel):
    """A step of the text dialect that is one program; its line of JSON may be left out, and says nothing here."""

    model_config = ConfigDict(extra="ignore", frozen=True)
    specs: ClassVar[Mapping[str, ToolSpec]] = {}

    tool: str = ""
    input: JsonValue = ""
    more: dict[str, JsonValue] = Field(default_factory=dict[str, JsonValue])
    body: str = ""

    @classmethod
    def from_bare_body(cls, info: str, body: str) -> _Program:
        """Any block is the program: its language is the one that was asked for."""
        return cls(body=body)


@cache
def _executors_role() -> str:
    """The executor's own words: the prompt then begins as that of the first way, which a server has cached."""
    return procedural("executor", "ExecutorStep", "simple")[Segment.ROLE]


@dataclass(frozen=True, slots=True)
class SecondAuthor:
    """Who writes another way: the same model, shown the request and the listing and nothing of the first way."""

    asker: Asker
    subtask: SubTask
    cause: Envelope

    async def program(self, language: Language) -> str:
        """A whole program in this language; empty when the model gives none."""
        segments = {
            Segment.ROLE: _executors_role(),
            Segment.PROJECT_GUIDE: self.subtask.guide,
            Segment.SURROUNDINGS: self.subtask.surroundings,
            Segment.CONTEXT: self.subtask.given,
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
                body_field="body",
                form="simple",
                images=self.subtask.images,
            )
        except ModelAnswerInvalid:
            return ""
        return step.body


@dataclass(frozen=True, slots=True)
class Agreement:
    """What the ways gave. `figures`: the first's words have the figures of the second; `open`: there was none."""

    verdict: Literal["agreed", "figures", "differ", "open"]
    evidence: str


async def second_way(
    result: ExecutionResult, request: str, author: SecondAuthor, source: EvidenceSource
) -> Agreement:
    """Try another way. A program that a call has run is no other way."""
    language = _other_language(result.tool_calls)
    program = await author.program(language)
    known = {"", *(call.input.strip() for call in result.tool_calls)}
    way = await _way(language, program, source) if program.strip() not in known else None
    if way is None:
        return Agreement("open", "no second way gave a result")
    first = _Made(result.output, await _files_of(result, source))
    if first.agrees(way, request):
        return Agreement("agreed", f"two ways give {first}")
    words = not (result.verbatim or result.small_model or first.files or way.files)
    if words and same_figures(first.answer, way.answer, request, [call.output for call in result.tool_calls]):
        return Agreement("figures", f"two ways give {way}")
    return Agreement("differ", str(way))


@dataclass(frozen=True, slots=True)
class _Left:
    """A file as a way left it: the digest of its content and, where it was read, its words line by line."""

    digest: str
    text: str | None

    @classmethod
    def of(cls, digest: str, text: str | None) -> _Left:
        lines = (text or "").strip().splitlines()
        return cls(digest, None if text is None else "\n".join(" ".join(line.split()) for line in lines))

    def is_like(self, other: _Left) -> bool:
        """The same content, or the same text: a line end more is no difference."""
        return self.digest == other.digest or (self.text is not None and self.text == other.text)


@dataclass(frozen=True, slots=True)
class _Made:
    """What a way gave: its answer, and the files that it made."""

    answer: str
    files: Mapping[str, _Left]

    def agrees(self, other: _Made, request: str) -> bool:
        """Files decide where files were made, else the answers do. Nothing but zeros confirms nothing."""
        if not (self.files or other.files):
            return same_answer(self.answer, other.answer, request)
        alike = self.files.keys() == other.files.keys()
        telling = any(left.text is None or same_answer(left.text, left.text) for left in self.files.values())
        return alike and telling and all(left.is_like(other.files[path]) for path, left in self.files.items())

    def __str__(self) -> str:
        return ", ".join(self.files) if self.files else " ".join(self.answer.split())[:80]


async def _files_of(result: ExecutionResult, source: EvidenceSource) -> dict[str, _Left]:
    """The files that the calls left changed, as they are now."""
    paths = dict.fromkeys(path for call in result.tool_calls for path in call.changes)
    views = [(path, await source.file(path)) for path in list(paths)[:TRIAL_TEXTS]]
    return {path: _Left.of(view.sha256, view.text) for path, view in views if not view.is_directory}


async def _way(language: Language, program: str, source: EvidenceSource) -> _Made | None:
    """One more way, run; None when it fails, or gives nothing."""
    trial = await source.trial(language, program)
    if trial.view.exit_code != 0:
        return None
    files = {path: _Left.of(digest, trial.texts.get(path)) for path, digest in trial.files.items()}
    made = _Made(trial.view.output.strip(), files)
    return made if made.answer or made.files else None


def _other_language(calls: Sequence[ToolCall]) -> Language:
    last = next((call for call in reversed(calls) if call.status is CallStatus.OK), None)
    return "bash" if last is not None and last.tool == "python" else "python"
