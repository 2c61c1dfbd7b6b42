"""Megrams (memory entries) with length limits, levels, potentials, rules, and records of shared memory.

Levels (paper, section 6.1): M megram, K knowledge, C common sense, T thinking. T is never stored here, because it
consists of files that only the operator changes.
"""

from __future__ import annotations

from datetime import UTC
from enum import StrEnum
from typing import Annotated, Literal

from pydantic import AfterValidator, AwareDatetime, Field

from artoo.contracts.base import Contract
from artoo.contracts.tags import TAG_LENGTH, Pair

Tag = Annotated[str, Field(min_length=1, max_length=TAG_LENGTH)]
Identifier = Annotated[str, Field(pattern=r"^[0-9A-Za-z_-]{1,64}$")]
Utc = Annotated[AwareDatetime, AfterValidator(lambda moment: moment.astimezone(UTC))]


class Level(StrEnum):
    """The pyramid's levels, bottom up."""

    MEGRAM = "M"
    KNOWLEDGE = "K"
    COMMON_SENSE = "C"
    THINKING = "T"


StoredLevel = Literal[Level.MEGRAM, Level.KNOWLEDGE, Level.COMMON_SENSE]


class MemoryAction(StrEnum):
    """The advice of memory about a pair (paper, section 6.4)."""

    EXPLOIT = "exploit"
    AVOID = "avoid"
    CAUTION = "caution"
    IGNORE = "ignore"


class MegramState(StrEnum):
    """The origin of a megram: one of R7's macro-states, or one of memory's own events."""

    ABANDON = "abandon"
    ACCEPT = "accept"
    SUCCESS = "success"
    BREAK_SYMMETRY = "break_symmetry"
    CHANGE_APPROACH = "change_approach"
    CHANGE_PATH = "change_path"
    REFINE = "refine"
    FEEDBACK = "feedback"
    DISSONANCE = "dissonance"
    FOUND = "found"
    SUSPICION = "suspicion"
    CONSOLIDATED = "consolidated"
    HYPOTHESIS = "hypothesis"
    REQUEST = "request"


class Origin(Contract):
    """The origin of a megram. `intent` is the label of the task's kind; `sources` are the ids of the megrams from
    which it was distilled. `hypothesis`: the megram is a guess instead of an experience."""

    task_id: str | None = Field(default=None, max_length=64)
    intent: str | None = Field(default=None, max_length=128)
    sources: tuple[Identifier, ...] = ()
    hypothesis: bool = False


class Megram(Contract):
    """The memory atom (paper, section 6.2): immutable; a correction is another megram of opposite σ.

    f in [0, 1], sigma in [−1, 1], k ≥ 0 per day; C-level entries have k = 0.
    """

    id: Identifier
    level: StoredLevel = Level.MEGRAM
    created_at: Utc
    last_recalled_at: Utc | None = None
    space: Tag
    entity: Tag
    content: str = Field(default="", max_length=8_000)
    state: MegramState
    f: float = Field(ge=0, le=1)
    sigma: float = Field(ge=-1, le=1)
    k: float = Field(ge=0, le=100)
    origin: Origin = Field(default_factory=Origin)

    @property
    def pair(self) -> Pair:
        """Return the tag pair that this megram is about."""
        return Pair(self.space, self.entity)

    @property
    def is_rule(self) -> bool:
        """True for C-level entries: rules, not evidence."""
        return self.level is Level.COMMON_SENSE


class Potentials(Contract):
    """The present values of a pair's two channels, and the advice that follows. Attention ≥ 0, |decision| ≤
    attention."""

    space: str
    entity: str
    attention: float = Field(ge=0)
    decision: float
    action: MemoryAction

    @property
    def pair(self) -> Pair:
        """Return the tag pair."""
        return Pair(self.space, self.entity)


class SOPRecord(Contract):
    """A C-level rule as the planner receives it: a best practice if σ > 0, otherwise a constraint."""

    id: str
    space: str
    entity: str
    content: str
    f: float
    sigma: float
    created_at: Utc
    last_recalled_at: Utc | None = None
    sources: tuple[str, ...] = ()

    @property
    def pair(self) -> Pair:
        """Return the tag pair."""
        return Pair(self.space, self.entity)


class SOPDraft(Contract):
    """A language model's summary of a cluster of megrams: one general sentence, in the evidence's language."""

    rule: str = Field(min_length=1, max_length=600)
    reason: str = Field(default="", max_length=600)


class CalibrationEntry(Contract):
    """One piece of advice for a plan. `rule_id` is set if it comes from a C rule, and None if from live evidence.

    `enforced`: the advice names a tool, and the plan validator may refuse a plan because of it; otherwise it is
    only advice in the prompt."""

    space: str
    entity: str
    attention: float = 0.0
    decision: float = 0.0
    content: str = ""
    rule_id: str | None = None
    enforced: bool = False

    @property
    def pair(self) -> Pair:
        """Return the tag pair."""
        return Pair(self.space, self.entity)


class RuleContradicted(Contract):
    """A C rule that fresh evidence overrules for this task (soft overwrite). R2 → R7, which records the
    dissonance.

    `noted`: an earlier task recorded this contradiction, so it is not recorded again as a second experience."""

    rule_id: str
    space: str
    entity: str
    rule_sigma: float
    decision: float
    reason: str = ""
    noted: bool = False


class Calibration(Contract):
    """The advice of memory for one plan: at most ten entries in the first three lists together, strongest first
    in each list.

    `known` are places where named things were found, to be verified. `hypotheses` are untested guesses of the
    Dreamer, each about a tool; tools that failed for this kind of request are left out."""

    should_prefer: tuple[CalibrationEntry, ...] = ()
    must_not: tuple[CalibrationEntry, ...] = ()
    caution: tuple[CalibrationEntry, ...] = ()
    contradicted: tuple[RuleContradicted, ...] = ()
    known: tuple[str, ...] = ()
    hypotheses: tuple[CalibrationEntry, ...] = ()


class KnownRequest(Contract):
    """The words of an earlier request, and the label of its kind."""

    text: str
    label: str


class MemoryRead(Contract):
    """A record of a look-up by R2 or R7: the requested pairs, the returned rules, and the potentials except Ignore.

    `error` says why memory could not be used; the task then continues without memory."""

    space: str
    entity: str
    pairs: int = 1
    sops: int = 0
    potentials: tuple[Potentials, ...] = ()
    error: str | None = None


class MemoryWritten(Contract):
    """A record by R7 or the Dreamer that a megram was put into memory's queue (not yet on disk)."""

    megram_id: str
    level: Level
    state: MegramState
    space: str
    entity: str
    f: float
    sigma: float
    k: float

    @classmethod
    def of(cls, megram: Megram) -> MemoryWritten:
        """Return the record of a megram for the stream."""
        return cls(
            megram_id=megram.id,
            level=megram.level,
            state=megram.state,
            space=megram.space,
            entity=megram.entity,
            f=megram.f,
            sigma=megram.sigma,
            k=megram.k,
        )


class MemoryChange(Contract):
    """One change of a memory entry by a Dreamer pass, and its reason."""

    megram_id: str
    space: str
    entity: str
    reason: str


class DreamReport(Contract):
    """The report of one pass of the Dreamer. Counts are complete; the lists hold the first few entries of each
    kind.

    `finished` is False if the pass stopped at its limit; the next pass continues. `biases` are intents whose loss
    falls repeatedly although the approach is wrong. `scale` is the factor by which a rule needs more evidence
    than in the paper."""

    dream_id: str
    started_at: Utc
    examined: int = 0
    forgotten: int = 0
    demoted: tuple[MemoryChange, ...] = ()
    promoted: tuple[MemoryChange, ...] = ()
    hypotheses: tuple[MemoryChange, ...] = ()
    proposals: tuple[str, ...] = ()
    forgotten_examples: tuple[MemoryChange, ...] = ()
    biases: tuple[MemoryChange, ...] = ()
    scale: float = 1.0
    drafts_skipped: int = 0
    duration_ms: int = 0
    finished: bool = True
    error: str | None = None


class TLayerProposal(Contract):
    """A sentence that the Dreamer proposes for the T layer. It has no effect unless the operator accepts it."""

    id: str
    proposed_at: Utc
    text: str
    rule_ids: tuple[str, ...] = ()
    status: Literal["open", "accepted", "refused"] = "open"
