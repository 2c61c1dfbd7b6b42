"""Whether a role says again what the log says that it said (pure). What only measures time or money may differ."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import cast

from artoo.contracts.base import Contract
from artoo.redaction import MARK

_VOLATILE: Mapping[str, frozenset[str]] = {
    "ReplanRequest": frozenset({"elapsed_ms"}),
    "FinalResult": frozenset({"cost", "loss"}),
    "RoleFailure": frozenset({"reason", "detail"}),
    "PlanDirective": frozenset({"urgency"}),  # follows from grad_l; older logs have not got it
    "Ending": frozenset({"may_go_on"}),  # follows from the result; older logs have not got it
}
_COMPARED: Mapping[str, frozenset[str]] = {
    "ModelCalled": frozenset({"role", "contract", "tier", "answer", "failure"})
}
"""Of a model call, what the role did with it: how it was asked may read differently in another version."""

_SHOWN = 160


def alike(logged: Contract, said: Contract) -> bool:
    """True when nothing differs that matters."""
    return logged == said or next(differences(logged, said), None) is None


def differences(logged: Contract, said: Contract) -> Iterator[str]:
    """Each field that differs, as `place: the log says …, replay says …`."""
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
    """The parts of an object by name, those of a list by number from 1; None for what has no parts."""
    if isinstance(value, dict):
        return cast("dict[str, object]", value)
    if isinstance(value, list):
        return {str(number): item for number, item in enumerate(cast("list[object]", value), 1)}
    return None


def _redacted(logged: object, said: object) -> bool:
    """A text of which the log kept all but its secrets: the same parts, one behind the other."""
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
    return text if len(text) <= _SHOWN else text[: _SHOWN - 1] + "…"
