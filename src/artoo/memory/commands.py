"""The write commands of memory (append, touch, oppose), and their application as a batch."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Literal

from artoo.contracts.memory import Level, Megram, MegramState, Origin
from artoo.control.potentials import DEMOTED_DECAY, dissonance
from artoo.memory import reading, tables
from artoo.memory.signal import microseconds
from artoo.store.query import Query


@dataclass(frozen=True, slots=True)
class Append:
    """The command to store a megram. If its id is already stored, the command has no effect but counts as done."""

    megram: Megram
    what: Literal["append"] = "append"


@dataclass(frozen=True, slots=True)
class Touch:
    """The command to set the time of the last recall of rules. Rules that are not stored, or were recalled later,
    are not changed."""

    megram_ids: tuple[str, ...]
    at: datetime
    what: Literal["touch"] = "touch"


@dataclass(frozen=True, slots=True)
class Oppose:
    """The command to store a megram of the opposite σ against a stored one. The stored megram must exist, and is
    not changed."""

    against: str
    content: str
    megram_id: str
    at: datetime
    what: Literal["oppose"] = "oppose"


Command = Append | Touch | Oppose


def apply(query: Query, commands: Sequence[Command]) -> int:
    """Apply a batch of commands in order. Return how many had an effect. Locks are acquired in a fixed order:
    megrams, rules, sums."""
    # This is read before anything is written, because locks must be acquired in a fixed order.
    wanted = [each.against for each in commands if isinstance(each, Oppose)]
    known = reading.get(query, wanted) if wanted else {}
    added: dict[str, Megram] = {}
    touched: dict[str, datetime] = {}
    done = 0
    for command in commands:
        done += 1
        match command:
            case Append(megram):
                added.setdefault(megram.id, megram)
            case Touch(megram_ids, at):
                touched |= {each: max(at, touched.get(each, at)) for each in megram_ids}
            case Oppose():
                target = known.get(command.against) or added.get(command.against)
                if target is None:
                    done -= 1
                else:
                    against = opposing(target, command.content, command.megram_id, command.at)
                    added.setdefault(against.id, against)
    if added:
        tables.add(query, added.values())
    tables.touch(query, [(microseconds(touched[each]), each) for each in sorted(touched)])
    return done


def opposing(target: Megram, content: str, megram_id: str, at: datetime) -> Megram:
    """Return a megram against `target`. Against a rule it is a dissonance, against evidence the same evidence with
    the opposite sign."""
    if target.is_rule:
        against = dissonance(target.sigma)
        state, f, sigma, k = MegramState.DISSONANCE, against.f, against.sigma, against.k
    else:
        state, f, k = MegramState.FEEDBACK, target.f, target.k or DEMOTED_DECAY
        sigma = -target.sigma if target.sigma else -1.0
    return Megram(
        id=megram_id,
        level=Level.MEGRAM,
        created_at=at,
        space=target.space,
        entity=target.entity,
        content=content[:8_000],
        state=state,
        f=f,
        sigma=sigma,
        k=k,
        origin=Origin(intent=target.origin.intent),
    )
