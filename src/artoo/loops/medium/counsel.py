"""R2's questions to memory: before planning, and about what a drafted plan names. No model is asked."""

from __future__ import annotations

import posixpath
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from artoo.contracts.envelope import Envelope
from artoo.contracts.errors import MemoryStoreError
from artoo.contracts.memory import Calibration, CalibrationEntry, MemoryAction, MemoryRead, Potentials
from artoo.contracts.plan import Caution, PlannedSubTask
from artoo.contracts.tags import Pair, macro_pair, micro_pair, placed, target_of, thing_pair
from artoo.loops.medium.advice import Advice, advice_from, caution_of, in_words, mentions, pairs_of
from artoo.loops.medium.kinds import Kinds, kinds_of
from artoo.ports.bus import Port
from artoo.ports.recall import Recall
from artoo.ports.tools import ToolSpec

_MOST_MISSING = 8


@dataclass(slots=True)
class Counsel:
    """Memory's part in planning one task. A store that fails is reported once, and not asked again.

    `recall` None: memory is off, and nothing is read or reported. What is asked of targets is asked of those in
    `project`.
    """

    port: Port
    recall: Recall | None
    project: str = ""

    async def kinds(self, text: str, cause: Envelope) -> Kinds:
        """Return what is known of the kind of a request."""
        try:
            return kinds_of(text, () if self.recall is None else await self.recall.requests())
        except MemoryStoreError as error:
            self._give_up(macro_pair(text), error, cause)
            return kinds_of(text, ())

    async def before(
        self, kind: str, text: str, specs: Sequence[ToolSpec], missing: Sequence[str], cause: Envelope
    ) -> Advice:
        """The advice for planning a request of `kind`. Publishes MemoryRead, and RuleContradicted for overruled
        rules.
        """
        if self.recall is None:
            return Advice()
        macro = macro_pair(kind)
        try:
            good = [entry.pair for entry in await self.recall.alternatives(kind)]
            worked = [pair for pair in good if target_of(pair) is None]  # files of other requests are no advice
            names = [posixpath.basename(name) for name in missing[:_MOST_MISSING]]
            things = [thing_pair(name, place) for name in names for place in (self.project, "")]
            pairs = pairs_of(specs, await self.recall.tool_pairs(), worked, kind, text, things)
            named = {placed(pair, self.project): pair for pair in pairs}
            found = await self.recall.calibrate(kind, tuple(named))
        except MemoryStoreError as error:
            self._give_up(macro, error, cause)
            return Advice()
        self.port.publish(_read(macro, len(pairs) + 1, found), cause=cause)
        for overruled in found.contradicted:
            self.port.publish(overruled, cause=cause)
        return advice_from(_named(found, named), specs, worked)

    async def on_draft(
        self, subtasks: Sequence[PlannedSubTask], forbidden: Sequence[tuple[str, str]], cause: Envelope
    ) -> tuple[list[str], tuple[Caution, ...]]:
        """What speaks against the (tool, target) pairs that a draft names: objections, and what to ask about.

        What is `forbidden` anyhow needs no second objection.
        """
        refused_anyhow = {(identity.partition(":")[0], target) for identity, target in forbidden}
        named = [
            (number, micro_pair(each.tool, target))
            for number, each in enumerate(subtasks, 1)
            if each.tool is not None
            for target in mentions(each.intent)
            if (each.tool, target) not in refused_anyhow
        ]
        if self.recall is None or not named:
            return [], ()
        first = named[0][1]
        try:
            live = await self.recall.potentials_of([placed(pair, self.project) for _, pair in named])
        except MemoryStoreError as error:
            self._give_up(first, error, cause)
            return [], ()
        known = [(number, pair, entry) for (number, pair), entry in zip(named, live, strict=True)]
        telling = tuple(entry for entry in live if entry.action is not MemoryAction.IGNORE)
        self.port.publish(
            MemoryRead(space=first.space, entity=first.entity, pairs=len(named), potentials=telling), cause=cause
        )
        refused = [
            f"subtask {number} uses {in_words(pair)}, which failed on it before (balance {entry.decision:+.2f})"
            for number, pair, entry in known
            if entry.action is MemoryAction.AVOID
        ]
        asked = (caution_of(pair) for _, pair, entry in known if entry.action is MemoryAction.CAUTION)
        return refused, tuple(dict.fromkeys(caution for caution in asked if caution is not None))

    def _give_up(self, pair: Pair, error: MemoryStoreError, cause: Envelope) -> None:
        self.recall = None
        self.port.publish(MemoryRead(space=pair.space, entity=pair.entity, error=str(error)), cause=cause)


def _named(found: Calibration, named: Mapping[Pair, Pair]) -> Calibration:
    """The advice about pairs as the request names them."""

    def of(entries: Sequence[CalibrationEntry]) -> tuple[CalibrationEntry, ...]:
        return tuple(one.model_copy(update=named.get(one.pair, one.pair)._asdict()) for one in entries)

    lists = {"should_prefer": found.should_prefer, "must_not": found.must_not, "caution": found.caution}
    return found.model_copy(update={name: of(entries) for name, entries in lists.items()})


def _read(macro: Pair, pairs: int, found: Calibration) -> MemoryRead:
    groups = (
        (MemoryAction.EXPLOIT, found.should_prefer),
        (MemoryAction.AVOID, found.must_not),
        (MemoryAction.CAUTION, found.caution),
    )
    entries = [(entry, action) for action, group in groups for entry in group]
    live = tuple(
        Potentials(
            space=entry.space,
            entity=entry.entity,
            attention=entry.attention,
            decision=entry.decision,
            action=action,
        )
        for entry, action in entries
        if entry.rule_id is None
    )
    sops = len(entries) - len(live) + len(found.contradicted)
    return MemoryRead(space=macro.space, entity=macro.entity, pairs=pairs, sops=sops, potentials=live)
