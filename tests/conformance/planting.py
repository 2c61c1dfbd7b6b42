"""What a fault is, how it is planted, and who has to see it.

`faults.FAULTS` holds them by name.

- `StreamFault`: the stream of a good run is forged; the live invariants have to see it, or the proof by replay.
- `LiveFault`: a whole task with a model that lies; the validators have to refuse it, or the invariants see it.
- `FileFault`: files of a finished run are edited; `artoo audit verify` has to find it.
"""

from __future__ import annotations

import asyncio
import tempfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from typing import Any, Literal, TypeVar

from bases import CLEAN, Base, Ended, play, world_in
from pydantic import BaseModel
from tapes import Tape

from artoo.auditor.layout import audit_directory
from artoo.auditor.verify import verify
from artoo.auditor.watch import Watch
from artoo.contracts.audit import Finding
from artoo.contracts.base import Contract
from artoo.contracts.envelope import Envelope
from artoo.contracts.execution import CriterionJudged, DecidedBy
from artoo.contracts.findings import Found
from artoo.contracts.roles import Role
from artoo.tasklog.layout import tasks_directory

M = TypeVar("M", bound=BaseModel)


@dataclass(slots=True)
class Stream:
    """The messages of a good run, to be forged. Positions are counted within a kind; -1 is its last message."""

    envelopes: list[Envelope]
    _forged: int = 0

    def places(self, kind: str) -> list[int]:
        """Where the messages of a kind are."""
        return [place for place, one in enumerate(self.envelopes) if one.kind == kind]

    def place(self, kind: str, number: int = 0) -> int:
        """Where the numbered message of a kind is."""
        return self.places(kind)[number]

    def get(self, kind: str, number: int = 0) -> Envelope:
        """The numbered message of a kind."""
        return self.envelopes[self.place(kind, number)]

    def payload(self, kind: str, number: int = 0) -> Any:
        """What the numbered message of a kind says."""
        return self.get(kind, number).payload

    def change(self, kind: str, number: int = 0, **fields: object) -> None:
        """Puts other values into a message's payload."""
        self.put(kind, number, payload=changed(self.payload(kind, number), **fields))

    def put(self, kind: str, number: int = 0, **parts: object) -> None:
        """Changes parts of the envelope itself."""
        place = self.place(kind, number)
        self.envelopes[place] = self.envelopes[place]._replace(**parts)  # pyright: ignore[reportArgumentType]

    def remove(self, kind: str, number: int | None = None) -> None:
        """Takes out one message of a kind, or all of them."""
        for place in sorted(self.places(kind) if number is None else [self.place(kind, number)], reverse=True):
            del self.envelopes[place]

    def say(
        self,
        payload: Contract,
        *,
        sender: Role,
        cause: Envelope | None = None,
        subtask: str | None = None,
        after: Envelope | None = None,
    ) -> Envelope:
        """Inserts a message right after another one (default: its cause, else at the end)."""
        self._forged += 1
        neighbour = after or cause or self.envelopes[-1]
        place = self.envelopes.index(neighbour)
        forged = replace_id(neighbour, f"forged-{self._forged}")._replace(
            sender=sender, payload=payload, subtask_id=subtask, cause_id=cause.id if cause else None
        )
        self.envelopes.insert(place + 1, forged)
        return forged

    def repeat(self, kind: str, number: int = 0, times: int = 1) -> None:
        """Says a message again, right after itself, under ids of its own."""
        for _ in range(times):
            self._forged += 1
            place = self.place(kind, number)
            again = replace_id(self.envelopes[place], f"forged-{self._forged}")
            self.envelopes.insert(place + 1, again)


def replace_id(envelope: Envelope, identifier: str) -> Envelope:
    """The same message under another id."""
    return envelope._replace(id=identifier)


def changed(model: M, **fields: object) -> M:
    """A copy with other values, `a__b=1` reaching into a nested model."""
    flat = {name: value for name, value in fields.items() if "__" not in name}
    for name, value in fields.items():
        first, _, rest = name.partition("__")
        if rest:
            flat[first] = changed(getattr(model, first), **{rest: value})
    return type(model).model_validate(model.model_copy(update=flat).model_dump(warnings=False, by_alias=True))


@dataclass(frozen=True, slots=True)
class StreamFault:
    """`plant` forges the stream of the clean run called `base`.

    `by` has to see it: an invariant while the task runs, or the proof by replay.
    """

    base: str
    plant: Callable[[Stream], object]
    by: Literal["live", "proof"]


@dataclass(frozen=True, slots=True)
class LiveFault:
    """A task whose model does what it must not."""

    base: Base


@dataclass(frozen=True, slots=True)
class FileFault:
    """`plant` edits what a finished run has left in a home."""

    plant: Callable[[Path], object]
    base: str = "two at once"


Fault = StreamFault | LiveFault | FileFault


@dataclass(frozen=True, slots=True)
class Seen:
    """Which part saw a fault, and by what; none when `by` is empty."""

    by: str = ""
    rules: tuple[str, ...] = ()

    def __bool__(self) -> bool:
        return bool(self.by)


@cache
def good_run(name: str) -> Ended:
    """The clean run of that name, played once."""
    with tempfile.TemporaryDirectory() as directory:
        return asyncio.run(play(CLEAN[name](), world_in(Path(directory))))


def watched(envelopes: Sequence[Envelope]) -> tuple[Finding, ...]:
    """What the live invariants report of a stream."""
    watch = Watch()
    return tuple(finding for envelope in envelopes for finding in watch.observe(envelope))


def seen(fault: Fault) -> Seen:
    """Plants a fault and asks those who have to see it."""
    match fault:
        case StreamFault():
            stream = Stream(list(good_run(fault.base).envelopes))
            fault.plant(stream)
            return _by_invariants(watched(stream.envelopes)) or _by_proof(stream.envelopes)
        case LiveFault():
            return _live(fault)
        case FileFault():
            return _in_files(fault)


def _by_invariants(findings: tuple[Finding, ...]) -> Seen:
    rules = tuple(dict.fromkeys(finding.rule for finding in findings))
    return Seen("live" if rules else "", rules)


def _by_proof(envelopes: Sequence[Envelope]) -> Seen:
    difference = asyncio.run(Tape(tuple(envelopes)).difference(0.5, 0.1))
    return Seen() if difference is None else Seen("proof", (difference,))


def _live(fault: LiveFault) -> Seen:
    with tempfile.TemporaryDirectory() as directory:
        ended = asyncio.run(play(fault.base, world_in(Path(directory))))
    refused = [judged.verdict for judged in ended.all(CriterionJudged) if judged.verdict.verdict == "fail"]
    if ended.directive == "abandon" and refused:
        return Seen("validator", tuple(dict.fromkeys(str(verdict.decided_by) for verdict in refused)))
    left_open = [judged.verdict for judged in ended.all(CriterionJudged) if judged.verdict.verdict == "open"]
    reasons = (verdict.reason for verdict in left_open)
    if any(reason is not None and reason.found is Found.WAYS_DIFFER for reason in reasons):
        return Seen("validator", (str(DecidedBy.AGREEMENT),))
    if ended.asked("ValidationReport") and left_open:
        return Seen("validator", ("left open",))
    return _by_invariants(watched(ended.envelopes))


def _in_files(fault: FileFault) -> Seen:
    with tempfile.TemporaryDirectory() as directory:
        world = world_in(Path(directory))
        asyncio.run(play(CLEAN[fault.base](), world))
        before = verify(audit_directory(world.home), tasks_directory(world.home))
        assert before.sound, before
        fault.plant(world.home)
        after = verify(audit_directory(world.home), tasks_directory(world.home))
    problems = tuple(dict.fromkeys(problem.what for problem in after.problems))
    return Seen("" if after.sound else "verify", problems)


def with_budget(base: Base, calls: int) -> Base:
    """The same task, ended after so many model calls: a model that lies would go on lying."""
    from artoo import Budgets

    return replace(base, options={**base.options, "budgets": Budgets(calls=calls)})
