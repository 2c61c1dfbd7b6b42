"""Confirm a result by a second program, written independently in another language, for small models or `--verify`.

The second program is run in a copy of the original files.

    intent + listing ──► whole program, in another language ──► trial ──► tokens or file hashes are compared

It is used for models that are known to be small, because their judgement of their own result is no better than the
result, and for other models with `--verify`. A result that the second program does not confirm leaves its criteria
open.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from functools import cache
from typing import Literal

from pydantic import BaseModel, ConfigDict

from artoo.contracts.envelope import Envelope
from artoo.contracts.errors import ModelAnswerInvalid
from artoo.contracts.execution import CallStatus, ExecutionResult, ToolCall
from artoo.contracts.plan import SubTask
from artoo.loops.asking import Asker
from artoo.loops.tool_text import program_in
from artoo.ports.evidence import TRIAL_TEXTS, EvidenceSource, Language
from artoo.prompts.library import procedural
from artoo.prompts.segments import Segment
from artoo.verdicts.likeness import same_answer

_TOKENS = 700


class SecondLook(StrEnum):
    """Selects whose results need a second way: those of small models, of all models (`--verify`), or none."""

    AUTO = "auto"
    ALWAYS = "always"
    NEVER = "never"

    def wanted(self, *, small_model: bool) -> bool:
        """Return whether a result needs a second way. `small_model`: whether a small model wrote the result."""
        return self is SecondLook.ALWAYS or (self is SecondLook.AUTO and small_model)


class _Program(BaseModel):
    """A step of the text dialect, of which only the program in `body` is read. The line of JSON before it may be
    missing. Its line of JSON may be missing and is not read."""

    model_config = ConfigDict(extra="ignore", frozen=True)

    body: str = ""


@cache
def _executors_role() -> str:
    """Return the text of the executor's role. The second prompt thus begins like the first one, which the server
    has cached."""
    return procedural("executor", "ExecutorStep", "simple")[Segment.ROLE]


@dataclass(frozen=True, slots=True)
class SecondAuthor:
    """The author of the second program: the same model. It is shown the request and the listing of files, but not
    the first program."""

    asker: Asker
    subtask: SubTask
    cause: Envelope

    async def program(self, language: Language) -> str:
        """Ask for a whole program in this language; return "" if the model gives none."""
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
    """The comparison of two ways. The verdict is `open` if no second way gave a result."""

    verdict: Literal["agreed", "differ", "open"]
    evidence: str


async def second_way(
    result: ExecutionResult, request: str, author: SecondAuthor, source: EvidenceSource
) -> Agreement:
    """Compare a result with that of a second program. If the second program is one that a call has already run, the
    verdict is `open`."""
    language = _other_language(result.tool_calls)
    program = await author.program(language)
    known = {"", *(call.input.strip() for call in result.tool_calls)}
    way = await _way(language, program, source) if program.strip() not in known else None
    if way is None:
        return Agreement("open", "no second way gave a result")
    first = _Made(result.output, await _files_of(result, source))
    if first.agrees(way, request):
        return Agreement("agreed", f"two ways give {first}")
    return Agreement("differ", str(way))


@dataclass(frozen=True, slots=True)
class _Made:
    """The result of one way: its answer, and the contents of the files that it made, by path.

    Text files are compared by the words of each line, so that different whitespace does not count. Other files are
    compared by their digest.
    """

    answer: str
    files: Mapping[str, str]

    def agrees(self, other: _Made, request: str) -> bool:
        """Return whether both ways made the same files, or gave the same answer if they made none. Two results that
        consist only of zeros confirm nothing."""
        if not (self.files or other.files):
            return same_answer(self.answer, other.answer, request)
        telling = any(same_answer(text, text) for text in self.files.values())
        return self.files == other.files and telling

    def __str__(self) -> str:
        return ", ".join(self.files) if self.files else " ".join(self.answer.split())[:80]


def _content(digest: str, text: str | None) -> str:
    if text is None:
        return digest
    return "\n".join(" ".join(line.split()) for line in text.strip().splitlines())


async def _files_of(result: ExecutionResult, source: EvidenceSource) -> dict[str, str]:
    """Return the current content of the files that the calls changed."""
    paths = dict.fromkeys(path for call in result.tool_calls for path in call.changes)
    views = [(path, await source.file(path)) for path in list(paths)[:TRIAL_TEXTS]]
    return {path: _content(view.sha256, view.text) for path, view in views if not view.is_directory}


async def _way(language: Language, program: str, source: EvidenceSource) -> _Made | None:
    """Run the program of the second way; return None if the program fails or has no result."""
    trial = await source.trial(language, program)
    if trial.view.exit_code != 0:
        return None
    files = {path: _content(digest, trial.texts.get(path)) for path, digest in trial.files.items()}
    made = _Made(trial.view.output.strip(), files)
    return made if made.answer or made.files else None


def _other_language(calls: Sequence[ToolCall]) -> Language:
    last = next((call for call in reversed(calls) if call.status is CallStatus.OK), None)
    return "bash" if last is not None and last.tool == "python" else "python"
