"""Agreement: a second way, written without sight of the first, run in a fork of the files as they were before.

    intent + listing ──► whole program, in another language ──► trial ──► tokens, or hashes of files, compared
                                                                  └ differs: a third way decides between the two

For models that are known to be small, whose judgement of their own figure is no better than the figure; for others
with `--verify`. What nothing confirms stands open.
"""

from __future__ import annotations

import shlex
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from functools import cache
from typing import Literal

from artoo.contracts.envelope import Envelope
from artoo.contracts.errors import ModelAnswerInvalid
from artoo.contracts.execution import CallStatus, ExecutionResult, ToolCall
from artoo.contracts.plan import SubTask
from artoo.loops.asking import Asker
from artoo.loops.fast.numerals import Number, Shown, numbers_in
from artoo.loops.fast.step import ExecutorStep
from artoo.loops.fast.tokens import words_of
from artoo.loops.tool_text import program_in
from artoo.ports.evidence import EvidenceSource, Language, Trial
from artoo.prompts.library import procedural
from artoo.prompts.segments import Segment

_LONGEST_MARK = 3
"""How many times more tokens one answer may have than the other; two more are always allowed."""
_OTHER_WAYS = 2
"""How many other ways are tried at most, until two agree."""
_MOST_FILES = 20
_TOKENS = 700
_SHOW = {
    "bash": "\nfor made in {paths}; do printf '\\n\\036'; cat -- \"$made\"; done\n",
    "python": "\nfor made in [{paths}]:\n    print('\\n\\x1e', end='')\n    print(open(made).read(), end='')\n",
}
"""Prints each file that was made, each after a record separator."""


class SecondLook(StrEnum):
    """When a result needs a second way: for small models, always (`--verify`), or never."""

    AUTO = "auto"
    ALWAYS = "always"
    NEVER = "never"

    def wanted(self, *, small_model: bool) -> bool:
        """Whether the result of such a model is looked at twice."""
        return self is SecondLook.ALWAYS or (self is SecondLook.AUTO and small_model)


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


@cache
def _executors_role() -> str:
    """The executor's own words: the prompt then begins as that of the first way, which a server has cached."""
    return procedural("executor", "ExecutorStep", simple=True)[Segment.ROLE]


@dataclass(frozen=True, slots=True)
class SecondAuthor:
    """Who writes another way: the same model, shown the request and the listing and nothing of the first way."""

    asker: Asker
    subtask: SubTask
    cause: Envelope

    async def program(self, language: Language, variant: int) -> str:
        """A whole program in this language; empty when the model gives none."""
        segments = {
            Segment.ROLE: _executors_role(),
            Segment.PROJECT_GUIDE: self.subtask.guide,
            Segment.SURROUNDINGS: self.subtask.surroundings,
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
            return ""
        return step.body


@dataclass(frozen=True, slots=True)
class Agreement:
    """What two ways gave. `kept` is what they agree on when it is not the first way's answer."""

    verdict: Literal["agreed", "other", "open"]
    evidence: str
    kept: str = ""


async def second_way(
    result: ExecutionResult, request: str, author: SecondAuthor, source: EvidenceSource
) -> Agreement:
    """Tries another way, and a third when the two differ. A program that a call has run is no other way."""
    first = _Made(result.output, await _files_of(result, source))
    ways, language = [first], _other_language(result.tool_calls)
    known = {"", *(call.input.strip() for call in result.tool_calls)}
    for variant in range(_OTHER_WAYS):
        program = await author.program(language, variant)
        way = await _way(language, program, first, source) if program.strip() not in known else None
        if way is None:
            break
        same = next((each for each in ways if _agree(each, way, request)), None)
        if same is first:
            return Agreement("agreed", f"two ways give {_shown(first)}")
        if same is not None:
            return Agreement("other", _shown(same), same.answer)
        ways.append(way)
        language = "python" if language == "bash" else "bash"
    if len(ways) == 1:
        return Agreement("open", "no second way could be carried out")
    return Agreement("open", f"{len(ways)} ways differ: {' / '.join(map(_shown, ways))}")


@dataclass(frozen=True, slots=True)
class _Made:
    """What a way gave: its answer, and the files that it made with their text, folded."""

    answer: str
    files: Mapping[str, str]


async def _files_of(result: ExecutionResult, source: EvidenceSource) -> dict[str, str]:
    """The files that the calls left changed, as they are now."""
    paths = dict.fromkeys(path for call in result.tool_calls for path in call.changes)
    found: dict[str, str] = {}
    for path in list(paths)[:_MOST_FILES]:
        view = await source.file(path)
        if not view.is_directory:
            found[path] = _folded(view.text) if view.text is not None else view.sha256
    return found


async def _way(language: Language, program: str, first: _Made, source: EvidenceSource) -> _Made | None:
    """One more way, run; None when it fails, or gives nothing."""
    trial = await source.trial(language, program)
    if trial.view.exit_code != 0:
        return None
    files: dict[str, str] = dict(trial.files)
    if first.files and files.keys() == first.files.keys():
        files = await _texts(language, program, trial, source)
    made = _Made(trial.view.output.strip(), files)
    return made if made.answer or made.files else None


async def _texts(language: Language, program: str, trial: Trial, source: EvidenceSource) -> dict[str, str]:
    """The text of the files that a way makes: hashes alone would differ by a line end."""
    paths = list(trial.files)[:_MOST_FILES]
    quoted = [repr(path) for path in paths] if language == "python" else list(map(shlex.quote, paths))
    show = _SHOW[language].format(paths=(", " if language == "python" else " ").join(quoted))
    shown = await source.trial(language, program + show)
    _, *texts = shown.view.output.split("\x1e")
    return {path: _folded(text) for path, text in zip(paths, texts, strict=False)} or dict(trial.files)


def _folded(text: str) -> str:
    return "\n".join(" ".join(line.split()) for line in text.strip().splitlines())


def _agree(one: _Made, other: _Made, request: str) -> bool:
    """Files decide where files were made, else the answers do."""
    if one.files or other.files:
        return dict(one.files) == dict(other.files)
    return same_answer(one.answer, other.answer, request)


def same_answer(one: str, other: str, request: str = "") -> bool:
    """Whether two answers give the same numbers and names; one may say a little more around them.

    Words of the request are labels. Two zeros, and two answers without anything in them, confirm nothing: so do two
    ways that both went wrong.
    """
    numbers = [_numbers(text) for text in (one, other)]
    names = [
        set(words_of(text)) - set(words_of(request)) - {word for number in found for word in words_of(number.text)}
        for text, found in zip((one, other), numbers, strict=True)
    ]
    nested = names[0] <= names[1] or names[1] <= names[0]
    if all(numbers):
        zero = all(each.is_zero for found in numbers for each in found)
        return _covers(*numbers) and not zero and (nested or not all(names))
    return all(names) and _near(*map(len, names)) and nested


def _numbers(text: str) -> list[Number]:
    found: list[Number] = []
    for number in numbers_in(text):
        if not any(number.values == known.values for known in found):
            found.append(number)
    return found


def _covers(one: Sequence[Number], other: Sequence[Number]) -> bool:
    """Whether every number of the shorter answer is in the longer one, which says not much more."""
    shorter, longer = sorted((one, other), key=len)
    return _near(len(one), len(other)) and all(any(_same(a, b) for b in longer) for a in shorter)


def _same(one: Number, other: Number) -> bool:
    return Shown((one,)).has(other) or Shown((other,)).has(one)


def _near(one: int, other: int) -> bool:
    return max(one, other) <= _LONGEST_MARK * min(one, other) + 2


def _other_language(calls: Sequence[ToolCall]) -> Language:
    last = next((call for call in reversed(calls) if call.status is CallStatus.OK), None)
    return "bash" if last is not None and last.tool == "python" else "python"


def _shown(made: _Made) -> str:
    return ", ".join(made.files) if made.files else " ".join(made.answer.split())[:80]
