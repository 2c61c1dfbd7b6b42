"""Simulate the world: jobs with hidden right tools, and what happens when a tool is used in a place.

Everything random is drawn by key (`draw`), not in sequence: two controllers that make the same call on the same job
see the same outcome, so that arms are compared on the same luck.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache

PLACES = 4
"""Places (files, pages, hosts) where a part could be done; which are broken is hidden."""
CRITERIA = 2
"""Criteria of a part; each is half of it."""


def draw(*key: object) -> float:
    """Draw a number in [0, 1) that belongs to this key, the same in every run and on every machine."""
    digest = hashlib.blake2b("\x1f".join(map(str, key)).encode(), digest_size=8).digest()
    return int.from_bytes(digest, "big") / 2**64


def pick(options: Sequence[str], *key: object) -> str:
    """Pick one of the options, by key."""
    return options[int(draw(*key) * len(options))]


@dataclass(frozen=True, slots=True)
class World:
    """The parameters of the world: what jobs are like, how good the models are, and how the world misbehaves.

    All shares are in [0, 1].

    tools: how many there are, two of a kind. parts: the most parts of a job. chained: share of jobs whose parts
    follow one another. big: share of parts that are hard to do in one piece. hopeless: share of jobs with a part
    that no tool can do.
    foresight: how often R2's first guess is the right tool. stubborn: how often it makes its first guess again when
    it plans again without any feedback. heed: how often it does what a directive or a note says,
    and, told what failed, splits a part that was half met.
    skill: how often an attempt with the right tool in a sound place succeeds. strain: by what that is multiplied
    for a big part in one piece. fluke: a wrong tool succeeds. mirage: a wrong tool of the right kind meets a
    criterion. wander: a corrected executor tries another place.
    broken: share of places that are broken for good. outage: chance of a passing fault of a call. noise: chance
    that a failure shows as one of the other class.
    think, act: seconds of a model call and of a tool call; jitter: share by which these vary.
    """

    tools: int = 6
    parts: int = 2
    chained: float = 0.3
    big: float = 0.2
    hopeless: float = 0.1
    foresight: float = 0.45
    stubborn: float = 0.6
    heed: float = 0.85
    skill: float = 0.7
    strain: float = 0.25
    fluke: float = 0.02
    mirage: float = 0.5
    wander: float = 0.3
    broken: float = 0.0
    outage: float = 0.0
    noise: float = 0.0
    think: float = 4.0
    act: float = 2.0
    jitter: float = 0.0

    @property
    def names(self) -> tuple[str, ...]:
        """Return the names of the tools, two of each kind one after the other."""
        return _names(self.tools)


@lru_cache
def _names(count: int) -> tuple[str, ...]:
    return tuple(f"tool_{letter}" for letter in "abcdefghijkl"[:count])


CALM = World()
"""Nothing fails but plans and executors."""
FAULTY = World(broken=0.35, outage=0.1, noise=0.15)
"""Places are broken, calls are cut off, and failures are not always what they look like."""


@dataclass(frozen=True, slots=True)
class Part:
    """One thing to be done. `right` is empty when no tool can do it; `guesses` are R2's own, best first."""

    name: str
    right: str
    guesses: tuple[str, ...]
    sound: tuple[bool, ...]
    big: bool
    size: int = CRITERIA

    @property
    def criteria(self) -> tuple[str, ...]:
        """Return what a result must contain."""
        return tuple(f"{self.name}c{number}" for number in range(1, self.size + 1))


@dataclass(frozen=True, slots=True)
class Job:
    """A request and what is hidden behind it. `means`: what requests of its kind have in common, in words."""

    number: int
    name: str
    request: str
    parts: tuple[Part, ...]
    chained: bool
    means: str = ""

    @property
    def solvable(self) -> bool:
        """True if every part has a right tool."""
        return all(part.right for part in self.parts)

    @property
    def criteria(self) -> int:
        """Return the criteria of all parts."""
        return sum(part.size for part in self.parts)

    def place(self, part: Part, number: int) -> str:
        """Return the name of a place."""
        return f"{self.name}/{part.name}/t{number}"


def kind_of(tool: str, names: Sequence[str]) -> int:
    """Return the kind of a tool."""
    return names.index(tool) // 2


def job_of(world: World, seed: int, number: int, *, parts: int | None = None) -> Job:
    """Return the job with this number; `parts` fixes how many it has."""
    name = f"j{number}"
    count = parts or 1 + int(draw(seed, name, "parts") * world.parts)
    bad = int(draw(seed, name, "which") * count) if draw(seed, name, "hopeless") < world.hopeless else -1
    made = tuple(_part(world, (seed, name, index), index, hopeless=index == bad) for index in range(count))
    return Job(number, name, f"collect survey sheets, {name}", made, draw(seed, name, "chained") < world.chained)


def _part(world: World, key: tuple[object, ...], index: int, *, hopeless: bool) -> Part:
    names = world.names
    right = pick(names, *key, "right")
    others = sorted((tool for tool in names if tool != right), key=lambda tool: draw(*key, "order", tool))
    at = 0 if draw(*key, "sees") < world.foresight else 1 + int(draw(*key, "at") * len(others))
    guesses = (*others[:at], right, *others[at:])
    sound = [draw(*key, "sound", number) >= world.broken for number in range(PLACES)]
    if not any(sound):
        sound[int(draw(*key, "one") * PLACES)] = True
    big = draw(*key, "big") < world.big
    return Part(f"p{index + 1}", "" if hopeless else right, guesses, tuple(sound), big)


@dataclass(frozen=True, slots=True)
class Effect:
    """The effect of a call: criteria that its output meets; or that the world did not let it (`fault`)."""

    met: tuple[str, ...] = ()
    fault: str = ""


IO_ERROR = "Input/output error"
CUT_OFF = "Connection timed out"


def effect(
    world: World, job: Job, part: Part, wanted: Sequence[str], use: tuple[str, int, int], seed: int
) -> Effect:
    """Return what using a tool in a place brings of the `wanted` criteria."""
    tool, place, times = use
    key = (seed, job.name, part.name, tool, place, times, len(wanted))
    if draw(*key, "outage") < world.outage:
        return Effect(fault=CUT_OFF)
    disguised = draw(*key, "noise") < world.noise
    if not part.sound[place]:
        return Effect() if disguised else Effect(fault=IO_ERROR)
    if tool != part.right:
        if part.right and draw(*key, "fluke") < world.fluke:
            return Effect(tuple(wanted))
        if disguised:
            return Effect(fault=IO_ERROR)
        near = bool(part.right) and kind_of(tool, world.names) == kind_of(part.right, world.names)
        return Effect(tuple(wanted[:1]) if near and len(wanted) > 1 and draw(*key, "near") < world.mirage else ())
    strained = part.big and len(wanted) > 1
    if draw(*key, "skill") < world.skill * (world.strain if strained else 1.0):
        return Effect(tuple(wanted))
    return Effect(tuple(wanted[:1]) if len(wanted) > 1 and draw(*key, "slip") < 0.5 else ())
