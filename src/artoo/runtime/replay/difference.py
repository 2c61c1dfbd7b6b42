"""Where a replay parts from its log, in words for a person."""

from __future__ import annotations

from collections.abc import Sequence

from artoo.contracts.envelope import Envelope
from artoo.contracts.errors import ArtooError
from artoo.contracts.plan import Plan
from artoo.contracts.roles import ROLE_IDS, Role
from artoo.contracts.solution import PlanDirective
from artoo.runtime.replay.likeness import differences

_MOST = 3
_SHOWN = 200


class Difference(ArtooError):
    """A role did not say again what the log says that it said. `number` counts the messages from 1."""

    def __init__(self, message: str, *, number: int, round_: int, role: Role, kind: str) -> None:
        super().__init__(message)
        self.number = number
        self.round = round_
        self.role = role
        self.kind = kind


def leaves(group: BaseExceptionGroup[Difference]) -> list[Difference]:
    """The differences in a group of groups."""
    found: list[Difference] = []
    for error in group.exceptions:
        found += leaves(error) if isinstance(error, BaseExceptionGroup) else [error]
    return found


def difference_at(stream: Sequence[Envelope], index: int, instead: tuple[list[Envelope], list[str]]) -> Difference:
    """The message at `index` was not said; `instead` is what its speaker said, and what it waits for."""
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
    """A role said what the log does not have."""
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
    """Rounds begin with the plan; before a plan is there, with the directive that asks for it."""
    rounds = (e.payload.round for e in reversed(stream) if isinstance(e.payload, (Plan, PlanDirective)))
    return next(rounds, 1)
