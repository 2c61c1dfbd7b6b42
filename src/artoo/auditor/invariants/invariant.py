"""Define an invariant: a name, the kind of message that it checks, and what it reports about one."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import TypeVar, cast

from artoo.auditor.notes import TaskNotes
from artoo.contracts.audit import Nature
from artoo.contracts.base import Contract
from artoo.contracts.envelope import Envelope

P = TypeVar("P", bound=Contract)

Looks = Callable[[TaskNotes, P, Envelope], Iterable[str]]
"""Takes the notes of the task before this message, its payload and its envelope; yields what is wrong."""


@dataclass(frozen=True, slots=True)
class Invariant:
    """An invariant. `kind` None: every message. `whole`: it needs to have seen all earlier messages of the task."""

    name: str
    kind: str | None
    nature: Nature
    whole: bool
    look: Looks[Contract]


def on(payload: type[P], *, nature: Nature = "violation", whole: bool = True) -> Callable[[Looks[P]], Invariant]:
    """Make an invariant of a function, under its name. `payload` Contract: every message."""

    def made(look: Looks[P]) -> Invariant:
        kind = None if payload is Contract else payload.__name__
        name = cast("Callable[..., object]", look).__name__
        return Invariant(name, kind, nature, whole, cast("Looks[Contract]", look))

    return made
