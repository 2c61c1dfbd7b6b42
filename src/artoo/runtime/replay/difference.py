"""Compare two messages without volatile fields, and describe the first difference of a replay."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import cast

from artoo.contracts.base import Contract
from artoo.contracts.envelope import Envelope
from artoo.contracts.errors import ArtooError
from artoo.contracts.plan import Plan
from artoo.contracts.roles import ROLE_IDS, Role
from artoo.contracts.solution import PlanDirective
from artoo.redaction import MARK

_MOST = 3
_SHOWN = 200


class Difference(ArtooError):
    """Raised if a role did not publish a message of the log again. `number` is the number of the message, counted
    from 1."""

    def __init__(self, message: str, *, number: int, round_: int, role: Role, kind: str) -> None:
        super().__init__(message)
        self.number = number
        self.round = round_
        self.role = role
        self.kind = kind


def difference_at(stream: Sequence[Envelope], index: int, instead: tuple[list[Envelope], list[str]]) -> Difference:
    """Describe the missing message at `index`. `instead`: the other messages that the role published, and what it
    is waiting for."""
    expected = stream[index]
    round_ = _round_at(stream[: index + 1])
    speaker = ROLE_IDS.get(expected.sender, expected.sender.value)
    where = f"round {round_}, {speaker}, message {index + 1} of {len(stream)}"
    return Difference(
        f"{where}: {_what(expected, *instead)}",
        number=index + 1,
        round_=round_,
        role=expected.sender,
        kind=expected.kind,
    )


def surplus(stream: Sequence[Envelope], said: Envelope) -> Difference:
    """Describe a message that a role published and that is not in the log."""
    cause = next((index for index, each in enumerate(stream) if each.id == said.cause_id), len(stream) - 1)
    round_ = _round_at(stream[: cause + 1])
    speaker = ROLE_IDS.get(said.sender, said.sender.value)
    return Difference(
        f"round {round_}, {speaker}, after message {cause + 1} of {len(stream)}: replay says {_brief(said)}, "
        "which the log does not have",
        number=cause + 1,
        round_=round_,
        role=said.sender,
        kind=said.kind,
    )


def _what(expected: Envelope, said: list[Envelope], waits: list[str]) -> str:
    same_kind = next((each for each in said if each.kind == expected.kind), None)
    if same_kind is not None:
        found = list(differences(expected.payload, same_kind.payload))
        more = f"; and {len(found) - _MOST} more" if len(found) > _MOST else ""
        return f"{expected.kind}: {'; '.join(found[:_MOST])}{more}"
    if said:
        return f"the log says {_brief(expected)}, replay says {_brief(said[0])}"
    if waits:
        return f"the log says {_brief(expected)}, replay waits for {waits[0]}, which the log does not have"
    return f"the log says {_brief(expected)}, replay says nothing"


def _brief(envelope: Envelope) -> str:
    text = " ".join(repr(envelope.payload).split())
    return text if len(text) <= _SHOWN else text[: _SHOWN - 1] + "…"


def _round_at(stream: Sequence[Envelope]) -> int:
    """Return the round of the last plan or plan directive; 1 if there is neither."""
    rounds = (e.payload.round for e in reversed(stream) if isinstance(e.payload, (Plan, PlanDirective)))
    return next(rounds, 1)


_VOLATILE: Mapping[str, frozenset[str]] = {
    "ReplanRequest": frozenset({"elapsed_ms"}),
    "FinalResult": frozenset({"cost", "loss"}),
    "RoleFailure": frozenset({"reason", "detail"}),
    "PlanDirective": frozenset({"urgency"}),  # computed from grad_l, and missing in older logs
    "Ending": frozenset({"may_go_on"}),  # computed from the result, and missing in older logs
}
_COMPARED: Mapping[str, frozenset[str]] = {
    "ModelCalled": frozenset({"role", "contract", "tier", "answer", "failure"})
}
"""The fields of a model call that are compared. The question is not compared, because versions may word it
differently."""

_SHOWN_VALUE = 160


def alike(logged: Contract, said: Contract) -> bool:
    """Return whether two messages are equal in all fields that are compared."""
    return logged == said or next(differences(logged, said), None) is None


def differences(logged: Contract, said: Contract) -> Iterator[str]:
    """Yield each field that differs, as `place: the log says …, replay says …`."""
    if type(logged) is not type(said):
        yield f"the log says {type(logged).__name__}, replay says {type(said).__name__}"
        return
    one, other = _relevant(logged), _relevant(said)
    yield from _between(one, other, "")


def _relevant(payload: Contract) -> dict[str, object]:
    name = type(payload).__name__
    fields = payload.model_dump(mode="json")
    only = _COMPARED.get(name)
    if only is not None:
        return {key: value for key, value in fields.items() if key in only}
    return {key: value for key, value in fields.items() if key not in _VOLATILE.get(name, frozenset())}


def _between(logged: object, said: object, place: str) -> Iterator[str]:
    one, other = _parts(logged), _parts(said)
    if one is not None and other is not None and (isinstance(logged, dict) or len(one) == len(other)):
        for key in dict.fromkeys((*one, *other)):
            yield from _between(one.get(key), other.get(key), f"{place}.{key}" if place else key)
    elif logged != said and not _redacted(logged, said):
        yield f"{place}: the log says {_shown(logged)}, replay says {_shown(said)}"


def _parts(value: object) -> dict[str, object] | None:
    """Return the parts of an object by name, or those of a list by number from 1. Return None for a value without
    parts."""
    if isinstance(value, dict):
        return cast("dict[str, object]", value)
    if isinstance(value, list):
        return {str(number): item for number, item in enumerate(cast("list[object]", value), 1)}
    return None


def _redacted(logged: object, said: object) -> bool:
    """Return whether two texts differ only in secrets, which the log contains as MARK."""
    if not (isinstance(logged, str) and isinstance(said, str) and MARK in logged):
        return False
    first, *middle, last = logged.split(MARK)
    at = len(first)
    for part in middle:
        found = said.find(part, at)
        if found < 0:
            return False
        at = found + len(part)
    return said.startswith(first) and said.endswith(last) and at <= len(said) - len(last)


def _shown(value: object) -> str:
    text = repr(value)
    return text if len(text) <= _SHOWN_VALUE else text[: _SHOWN_VALUE - 1] + "…"
