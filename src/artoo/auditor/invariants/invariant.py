"""The type of an invariant (name, message kind, check), and the decorator `on` that registers a check."""

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
"""Takes the notes on the task before this message, the payload, and the envelope. Yields descriptions of
violations."""


@dataclass(frozen=True, slots=True)
class Invariant:
    """An invariant. If `kind` is None, it checks every message. `whole`: true if it needs all earlier messages of
    the task."""

    name: str
    kind: str | None
    nature: Nature
    whole: bool
    look: Looks[Contract]


def on(payload: type[P], *, nature: Nature = "violation", whole: bool = True) -> Callable[[Looks[P]], Invariant]:
    """Make a function an invariant with the name of the function. If `payload` is Contract, it checks every
    message."""

    def made(look: Looks[P]) -> Invariant:
        kind = None if payload is Contract else payload.__name__
        name = cast("Callable[..., object]", look).__name__
        return Invariant(name, kind, nature, whole, cast("Looks[Contract]", look))

    return made
