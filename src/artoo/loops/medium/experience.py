"""The solver's reading and writing of shared memory, which no other part of a task writes.

No other part of a task writes to memory.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace

from artoo.contracts.envelope import Envelope
from artoo.contracts.errors import MemoryStoreError
from artoo.contracts.memory import MegramState, MemoryRead, MemoryWritten, Origin, RuleContradicted
from artoo.contracts.request import TaskSpec
from artoo.contracts.tags import Pair, here, label, macro_pair, placed, target_of
from artoo.control.potentials import DEMOTED_DECAY, Stimulus, dissonance
from artoo.loops.lesson import Lesson
from artoo.loops.medium.advice import in_words
from artoo.loops.medium.lessons import opposing
from artoo.ports.bus import Port
from artoo.ports.clock import Clock
from artoo.ports.ids import Ids
from artoo.ports.recall import Recall
from artoo.ports.remember import Remember


@dataclass(frozen=True, slots=True)
class Experience:
    """The solver's access to memory, with the clock, ids, project and port that each record needs."""

    port: Port
    recall: Recall
    remember: Remember
    clock: Clock
    ids: Ids
    project: str = ""

    def teach(self, lessons: Iterable[Lesson], kind: str, cause: Envelope) -> None:
        """Publish each lesson, and queue it as a megram for memory without waiting until it is stored."""
        for lesson in lessons:
            origin = Origin(task_id=self.port.task_id, intent=label(kind))
            where = replace(lesson, pair=placed(lesson.pair, self.project))
            megram = where.megram(self.ids.new(), self.clock.now(), origin)
            self.remember.write(megram)
            self.port.publish(MemoryWritten.of(megram), cause=cause)

    async def alternatives(self, kind: str, cause: Envelope) -> tuple[str, ...]:
        """Describe the (tool, target) pairs that worked for the same kind of request. Return nothing if memory
        cannot be read."""
        try:
            good = [here(each.pair, self.project) for each in await self.recall.alternatives(kind)]
            return tuple(dict.fromkeys(in_words(pair) for pair in good if pair is not None))
        except MemoryStoreError as error:
            self._report(kind, error, cause)
            return ()

    async def retract(self, task_id: str, spec: TaskSpec, cause: Envelope) -> None:
        """Write negative feedback against the good lessons that an earlier task taught, because the user rejected
        its result.

        Lessons about a tool with a target stay, because the right result may need the same call again.
        """
        try:
            taught = await self.recall.taught_by(task_id)
        except MemoryStoreError as error:
            self._report(spec.intent, error, cause)
            return
        for megram in taught:
            if megram.sigma > 0 and target_of(megram.pair) is None:
                against = self.remember.record_negative_feedback(megram.id, f"the person: {spec.raw_input[:200]}")
                worth = Stimulus(megram.f, -megram.sigma, megram.k or DEMOTED_DECAY)
                self.port.publish(opposing(against, MegramState.FEEDBACK, megram.pair, worth), cause=cause)

    def overrule(self, rule: RuleContradicted, cause: Envelope) -> None:
        """Write a dissonance against a rule that new evidence contradicts."""
        against = self.remember.record_negative_feedback(rule.rule_id, rule.reason)
        pair, worth = Pair(rule.space, rule.entity), dissonance(rule.rule_sigma)
        self.port.publish(opposing(against, MegramState.DISSONANCE, pair, worth), cause=cause)

    def _report(self, kind: str, error: MemoryStoreError, cause: Envelope) -> None:
        pair = macro_pair(kind)
        self.port.publish(MemoryRead(space=pair.space, entity=pair.entity, error=str(error)), cause=cause)
