"""What a rule is: a name, the kind of message at which it looks, and what it has to say about one."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Literal, TypeVar, cast

from artoo.auditor.notes import TaskNotes
from artoo.contracts.base import Contract
from artoo.contracts.envelope import Envelope

P = TypeVar("P", bound=Contract)

Nature = Literal["violation", "anomaly", "drift", "loss"]
Looks = Callable[[TaskNotes, P, Envelope], Iterable[str]]
"""Gets what was seen of the task before this message, the payload and its envelope; says what is wrong."""


@dataclass(frozen=True, slots=True)
class Rule:
    """`kind` None: every message. `whole`: it can only be judged when everything before has been seen."""

    name: str
    kind: str | None
    nature: Nature
    whole: bool
    says: str
    look: Looks[Contract]


def on(payload: type[P], *, nature: Nature = "violation", whole: bool = True) -> Callable[[Looks[P]], Rule]:
    """Makes a rule of a function: its name is the rule's, its docstring says what it forbids.

    `payload` Contract: every message.
    """

    def made(look: Looks[P]) -> Rule:
        kind = None if payload is Contract else payload.__name__
        function = cast("Callable[..., object]", look)
        says = " ".join((function.__doc__ or "").split())
        return Rule(function.__name__, kind, nature, whole, says, cast("Looks[Contract]", look))

    return made
