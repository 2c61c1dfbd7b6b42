"""Define cells of jobs in a row: memory stays, the Dreamer dreams, and at half time the world drifts."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Callable, Collection, Generator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from artoo.bus.inprocess import InProcessBus
from artoo.contracts.memory import DreamReport, Megram, MemoryChange, SOPDraft
from artoo.contracts.roles import Role
from artoo.contracts.tags import Pair, is_wide, kind_pair, tool_of
from artoo.control import potentials
from artoo.control.potentials import Advice, Sums
from artoo.loops.slow.dreamer import Dreamer
from artoo.memory import reading
from artoo.memory.service import SharedMemory
from artoo.ports.dream import Cluster
from artoo.ports.ids import Ids
from artoo.runtime.task.role_context import TaskMemory
from artoo.testing.ids import SequentialIds
from lab.laws import Arm, Law, Oracle
from lab.running import Trace, run_job
from lab.time import LabClock
from lab.world import PLACES, Job, Part, World, draw, pick

LENGTH = 100
"""Jobs of one life; from the half on, half of the intents need another tool than before."""
BETWEEN = 6 * 3600.0
"""Seconds from the end of a job to the next: a life is 25 days."""
DREAMS_EVERY = 5
FORESIGHT = 0.25
INTENTS = (
    *("sort ledger pages", "fetch river levels", "merge parish lists"),
    *("scan harbour logs", "trim radio notes", "index plant sheets"),
)
AS_BEFORE, TWO_ALIKE, WHAT_IS_THE, NONE_ALIKE = "as before", "two alike", "what is the", "none alike"
WORDINGS: Mapping[str, tuple[str, ...]] = {
    AS_BEFORE: INTENTS,
    TWO_ALIKE: ("sort ledger pages by date", "sort ledger pages by name", *INTENTS[2:]),
    WHAT_IS_THE: (
        *("what is the total of the ledger", "what is the level of the river"),
        *("what is the name in the parish list", "what is the date of the harbour log"),
        *("what is the length of the radio note", "what is the place of the plant sheet"),
    ),
    NONE_ALIKE: (),
}
"""How requests of the six kinds are worded. None alike: five words that occur in no other request."""
LIFE = World(parts=1, chained=0.0, big=0.0, hopeless=0.0, broken=0.2, outage=0.05, noise=0.05)

Classify = Callable[[Sums], Advice]


@dataclass(frozen=True, slots=True)
class Memory:
    """The memory of an arm. `classify` replaces the product's; `decays` False: nothing fades."""

    dreams: bool = True
    decays: bool = True
    classify: Classify | None = None


@dataclass(frozen=True, slots=True)
class Lived:
    """One job of a life. `right`: R2's first choice was the right tool; `outdated`: it was the one that was right
    before the drift. `promoted`: rules made after it, `false` of them against the truth of now.
    """

    life: int
    at: int
    intent: int
    drifted: bool
    right: bool
    outdated: bool
    calls: int
    solved: bool
    promoted: int = 0
    false: int = 0


@dataclass(frozen=True, slots=True)
class Truth:
    """The right tool for each intent, before and after the drift, in one life."""

    seed: int
    life: int
    names: tuple[str, ...]

    def right(self, intent: int, at: int) -> str:
        """Return the tool that does it now."""
        before = pick(self.names, self.seed, self.life, intent, "right")
        if not self.drifts(intent) or at < LENGTH // 2:
            return before
        others = tuple(name for name in self.names if name != before)
        return pick(others, self.seed, self.life, intent, "drifted")

    def drifts(self, intent: int) -> bool:
        """True if the intent drifts: half of them do."""
        return (intent + self.life) % 2 == 0

    def false(self, change: MemoryChange, at: int, labels: Mapping[str, Collection[int]]) -> bool:
        """Whether a new rule about a tool says what is not so, where it is told (one kind of request, or all):
        forbids one that is right for something, or recommends one that is right for nothing. `labels`: the intents
        whose requests had each label.
        """
        pair = Pair(change.space, change.entity)
        tool = tool_of(pair) or ""
        of_kind = {each for label, of in labels.items() if pair == kind_pair(tool, label) for each in of}
        told = range(len(INTENTS)) if is_wide(pair) else of_kind
        if not told:
            return False
        useful = tool in {self.right(each, at) for each in told}
        return useful if change.reason.startswith("constraint") else not useful


@dataclass(frozen=True, slots=True)
class Lives:
    """The implementation of `experiment.Cell` in which each number is a life of a hundred jobs.

    `memory` None: nothing is kept.
    """

    memory: Memory | None
    knows: bool = False
    wording: str = AS_BEFORE

    async def run(self, seed: int, numbers: range) -> list[object]:
        """Return a Lived for each job of each life."""
        found: list[object] = []
        for life in numbers:
            with scratch() as place, _classified(self.memory):
                found += await self._live(seed, life, place)
        return found

    async def _live(self, seed: int, life: int, place: Path) -> list[Lived]:
        clock, ids = LabClock(), SequentialIds()
        truth = Truth(seed, life, LIFE.names)
        store = SharedMemory.open(place, clock, ids) if self.memory is not None else None
        arm = Arm("oracle", Oracle) if self.knows else Arm("the law", Law)
        lived: list[Lived] = []
        labels: dict[str, set[int]] = {}
        try:
            for at in range(LENGTH):
                intent = int(draw(seed, life, at, "intent") * len(INTENTS))
                job = _job(truth, intent, at, WORDINGS[self.wording])
                trace = await run_job(LIFE, job, arm, seed, ids=ids, memory=self._sides(store))
                labels.setdefault(trace.label, set()).add(intent)
                dreamt = await self._after(store, clock, ids, at)
                lived.append(_lived(truth, job, trace, intent, at, dreamt, labels))
                await clock.sleep(BETWEEN)
        finally:
            if store is not None:
                await store.close()
        return lived

    def _sides(self, store: SharedMemory | None) -> TaskMemory | None:
        if store is None or self.memory is None:
            return None
        return TaskMemory(store, store if self.memory.decays else _Lasting(store))

    async def _after(self, store: SharedMemory | None, clock: LabClock, ids: Ids, at: int) -> DreamReport | None:
        if store is None or self.memory is None:
            return None
        await store.flush()
        if not self.memory.dreams or at % DREAMS_EVERY:
            return None
        port = InProcessBus(clock, ids).port(Role.DREAMER, "")
        dreamer = Dreamer(store.dreams(), clock, ids, publish=port.publish, busy=_idle, draft=_worded)
        return await dreamer.dream()


@dataclass(frozen=True, slots=True)
class _Lasting:
    """The write side of a memory with entries that do not fade."""

    inner: SharedMemory

    def write(self, megram: Megram) -> None:
        """See `ports.remember`."""
        self.inner.write(megram.model_copy(update={"k": 0.0}))

    def record_negative_feedback(self, rule_id: str, content: str) -> str:
        """See `ports.remember`."""
        return self.inner.record_negative_feedback(rule_id, content)

    async def flush(self) -> None:
        """See `ports.remember`."""
        await self.inner.flush()

    async def close(self) -> None:
        """See `ports.remember`."""
        await self.inner.close()


def fixed_band(sums: Sums) -> Advice:
    """Classify as the paper does: Caution is |decision| ≤ .2, however much was seen."""
    if sums.judged < potentials.IGNORE_BELOW:
        return "ignore"
    if abs(sums.decision) <= potentials.DECISION_BAND:
        return "caution"
    return "exploit" if sums.decision > 0 else "avoid"


def no_band(sums: Sums) -> Advice:
    """Classify without Caution: the sign alone."""
    if sums.judged < potentials.IGNORE_BELOW:
        return "ignore"
    return "exploit" if sums.decision > 0 else "avoid"


def decision_alone(sums: Sums) -> Advice:
    """Classify without the attention channel: one score, which knows no difference between mixed and unknown."""
    if abs(sums.decision) <= potentials.DECISION_BAND:
        return "ignore"
    return "exploit" if sums.decision > 0 else "avoid"


def attention_alone(sums: Sums) -> Advice:
    """Classify without the decision channel: what was met often is taken again."""
    return "exploit" if sums.attention >= potentials.IGNORE_BELOW else "ignore"


@contextmanager
def scratch() -> Generator[Path]:
    """Yield a folder for stores that live no longer than their cell: in memory, where the system has that.

    A store waits for its disk at every transaction: real time in which no virtual time passes.
    """
    within = "/dev/shm" if os.access("/dev/shm", os.W_OK) else None
    with tempfile.TemporaryDirectory(prefix="artoo-lab-", dir=within) as place:
        yield Path(place)


@contextmanager
def _classified(memory: Memory | None) -> Generator[None]:
    """Replace the product's pure rules, where an arm has its own. Cells of a process run one after the other."""
    own = memory.classify if memory is not None and memory.classify is not None else potentials.classify
    before = reading.classify
    try:
        setattr(reading, "classify", own)  # noqa: B010 - the product has no seam for it, and modules no such field
        yield
    finally:
        setattr(reading, "classify", before)  # noqa: B010


def _job(truth: Truth, intent: int, at: int, wording: tuple[str, ...]) -> Job:
    """Run a job of one part. R2's own guesses about an intent are the same every time: it is the same model."""
    key, right, first = (truth.seed, truth.life, intent), truth.right(intent, at), truth.right(intent, 0)
    others = sorted((name for name in truth.names if name != first), key=lambda name: draw(*key, "order", name))
    rank = 0 if draw(*key, "sees") < FORESIGHT else 1 + int(draw(*key, "rank") * len(others))
    sound = [draw(*key, at, "sound", number) >= LIFE.broken for number in range(PLACES)]
    if not any(sound):
        sound[0] = True
    part = Part("p1", right, (*others[:rank], first, *others[rank:]), tuple(sound), big=False)
    name = f"l{truth.life}n{at}"
    means = wording[intent] if wording else ""
    return Job(at, name, f"{means or _unlike(truth, at)}, {name}", (part,), chained=False, means=means)


def _unlike(truth: Truth, at: int) -> str:
    """Return five words that occur in no other request."""
    key = (truth.seed, truth.life, at, "word")
    return " ".join(f"{int(draw(*key, number) * 2**40):x}".translate(_LETTERS) for number in range(5))


_LETTERS = str.maketrans("0123456789", "ghijklmnop")


def _lived(
    truth: Truth,
    job: Job,
    trace: Trace,
    intent: int,
    at: int,
    dreamt: DreamReport | None,
    labels: Mapping[str, Collection[int]],
) -> Lived:
    first = trace.first_tools[0] if trace.first_tools else ""
    promoted = dreamt.promoted if dreamt is not None else ()
    drifted = truth.drifts(intent) and at >= LENGTH // 2
    return Lived(
        life=truth.life,
        at=at,
        intent=intent,
        drifted=drifted,
        right=first == job.parts[0].right,
        outdated=drifted and first == truth.right(intent, 0),
        calls=trace.calls,
        solved=trace.solved,
        promoted=len(promoted),
        false=sum(truth.false(change, at, labels) for change in promoted),
    )


def _idle() -> bool:
    return False


async def _worded(cluster: Cluster) -> SOPDraft:
    """Return what a model would say of a cluster."""
    tool = tool_of(cluster.pair) or cluster.pair.space
    return SOPDraft(rule=f"{tool}: {'prefer it' if cluster.decision > 0 else 'do not use it'}")
