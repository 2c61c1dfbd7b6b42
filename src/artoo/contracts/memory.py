"""Megrams (memory entries) with length limits, levels, potentials, rules, and records of shared memory.

The levels are M (megram), K (knowledge), C (common sense) and T (thinking) (paper, section 6.1). Level T is not
stored in this database. It consists of files that only the operator changes.
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
    """The levels of the pyramid, from the bottom to the top."""

    MEGRAM = "M"
    KNOWLEDGE = "K"
    COMMON_SENSE = "C"
    THINKING = "T"


StoredLevel = Literal[Level.MEGRAM, Level.KNOWLEDGE, Level.COMMON_SENSE]


class MemoryAction(StrEnum):
    """The advice that memory gives about a pair (paper, section 6.4)."""

    EXPLOIT = "exploit"
    AVOID = "avoid"
    CAUTION = "caution"
    IGNORE = "ignore"


class MegramState(StrEnum):
    """The event from which a megram comes. It is one of the solver's macro-states (R7), or an event of memory
    itself."""

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
    """Where a megram comes from. `intent` is the label of the task's kind. `sources` are the ids of the megrams
    from which this one was derived. `hypothesis`: true if the megram is a guess and no experience."""

    task_id: str | None = Field(default=None, max_length=64)
    intent: str | None = Field(default=None, max_length=128)
    sources: tuple[Identifier, ...] = ()
    hypothesis: bool = False


class Megram(Contract):
    """The unit of memory (paper, section 6.2). It is never changed. A correction is another megram with the
    opposite σ.

    f is in [0, 1], sigma in [−1, 1], and k ≥ 0 per day. An entry of level C has k = 0.
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
        """True for an entry of level C, which is a rule and no evidence."""
        return self.level is Level.COMMON_SENSE


class Potentials(Contract):
    """The present values of both potentials of a pair, and the advice that follows from them. Attention is at least
    0, and |decision| is at most attention."""

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
    """A rule of level C as the planner receives it. It is a best practice if σ > 0, otherwise a constraint."""

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
    """What a language model derives from a cluster of megrams: one general sentence in the language of the
    evidence."""

    rule: str = Field(min_length=1, max_length=600)
    reason: str = Field(default="", max_length=600)


class CalibrationEntry(Contract):
    """One piece of advice for a plan. `rule_id` is set if the advice comes from a rule of level C. It is None if
    the advice comes from evidence.

    `enforced`: true if the advice names a tool and the plan check may refuse a plan because of it. Otherwise it is
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
    """A rule of level C that new evidence overrules for this task (soft overwrite). R2 → R7, which writes a
    dissonance against the rule.

    `noted`: true if an earlier task has recorded this contradiction. It is then not recorded a second time."""

    rule_id: str
    space: str
    entity: str
    rule_sigma: float
    decision: float
    reason: str = ""
    noted: bool = False


class Calibration(Contract):
    """The advice of memory for one plan. The first three lists have at most ten entries together, and the strongest
    comes first in each.

    `known` are places where named things were found. They must be checked. `hypotheses` are guesses of the Dreamer
    about tools that were not tested. A tool that failed for this kind of request is left out."""

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
    """A record that R2 or R7 asked memory. It has the pairs that were asked about, the rules that were returned,
    and all potentials whose action is not Ignore.

    `error` says why memory could not be used. The task then continues without memory."""

    space: str
    entity: str
    pairs: int = 1
    sops: int = 0
    potentials: tuple[Potentials, ...] = ()
    error: str | None = None


class MemoryWritten(Contract):
    """A record by R7 or the Dreamer that a megram was put into the queue of memory. It is not on disk yet."""

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
        """Return the record of a megram that is published on the stream."""
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
    """A change of one entry of memory by a Dreamer pass, with the reason."""

    megram_id: str
    space: str
    entity: str
    reason: str


class DreamReport(Contract):
    """The report of one pass of the Dreamer. The counts are complete, and the lists contain the first few entries
    of each kind.

    `finished` is False if the pass stopped at its limit. The next pass continues it. `biases` are intents whose
    loss repeatedly falls although the approach is wrong. `scale` is the factor by which a rule needs more evidence
    than the paper requires."""

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
