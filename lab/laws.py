"""Define what R7 decides by: artoo's law, each of its terms taken out, and the baselines, behind the same roles.

A baseline is a Trajectory too: it measures the same gap, and answers with a state; `told` says what R2 is told
then, and `extra` counts the model calls that its paper's method makes beyond those of the roles.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

from artoo.contracts.solution import Directive
from artoo.control.decision import Decision, MacroState
from artoo.control.hyperparameters import Hyperparameters
from artoo.loops.medium.trajectory import WRONG_WAYS, Measurement, Trajectory
from lab.minds import Told
from lab.world import Job, draw

DEFAULTS = Hyperparameters()
PATIENT = 10_000_000
"""Milliseconds: a time budget that never binds."""


class Law(Trajectory):
    """The product's own law."""

    told = Told.DIRECTIVE

    def __init__(self, hyperparameters: Hyperparameters, job: Job) -> None:
        super().__init__(hyperparameters)
        self._job = job
        self.extra = 0
        self.spent: Callable[[], bool] = _never

    def _goes_on(self, may_replan: bool) -> bool:
        return may_replan and self.replans < self._h.max_replans

    def unless_exhausted(self, decision: Decision, *, another_left: bool) -> Decision:
        """See Trajectory. With `exhausted_after` every arm ends where all tools were tried in vain on a part."""
        if not self._h.exhausted_after or decision.state.ends or not self.spent():
            return decision
        return replace(decision, state=MacroState.ABANDON, reason="every tool was tried", cause="exhausted")


def _never() -> bool:
    return False


class ByClass(Law):
    """The failure class alone: another approach where P > ρ, else another path. No D, ∇L, Ω and δ."""

    def decide(self, measured: Measurement, *, may_replan: bool) -> Decision:
        """See Trajectory."""
        if not self._goes_on(may_replan):
            return Decision(MacroState.ABANDON, "no replan left", cause="replans")
        logical = measured.terms.implausibility > self._h.rho
        return Decision(MacroState.CHANGE_APPROACH if logical else MacroState.CHANGE_PATH, "failure class")


class TargetsLate(Law):
    """The law, with what failed for good forbidden only where the approach itself is held to be wrong."""

    def blocks_targets(self, directive: Directive) -> bool:
        """True where the approach itself is held to be wrong."""
        return directive in WRONG_WAYS


class NoTools(Law):
    """The law without forbidding tools."""

    def blocks_tools(self, directive: Directive) -> bool:
        """Return False."""
        return False


class NoTargets(Law):
    """The law without forbidding targets."""

    def blocks_targets(self, directive: Directive) -> bool:
        """Return False."""
        return False


class _Replaced(Law):
    """The law with one of its inputs replaced, in its decision only."""

    def seen(self, measured: Measurement) -> Measurement:
        """Return what the decision is made from."""
        return measured

    def decide(self, measured: Measurement, *, may_replan: bool) -> Decision:
        """See Trajectory."""
        return super().decide(self.seen(measured), may_replan=may_replan)


class NoGradient(_Replaced):
    """A law in which every round is a plateau: P alone decides."""

    def seen(self, measured: Measurement) -> Measurement:
        """Return it without ∇L."""
        return replace(measured, gradient=0.0)


class AllLogical(_Replaced):
    """A law in which every failure is the approach's."""

    def seen(self, measured: Measurement) -> Measurement:
        """Return it with P at 1."""
        return replace(measured, terms=replace(measured.terms, implausibility=1.0))


class AllEnvironmental(_Replaced):
    """A law in which every failure is the world's."""

    def seen(self, measured: Measurement) -> Measurement:
        """Return it with P at 0."""
        return replace(measured, terms=replace(measured.terms, implausibility=0.0))


class Cell6Refines(Law):
    """The paper's cell 6 decided as version 0.7 did: nearer is better, whatever the approach."""

    def decide(self, measured: Measurement, *, may_replan: bool) -> Decision:
        """See Trajectory."""
        decision = super().decide(measured, may_replan=may_replan)
        if decision.state is MacroState.CHANGE_APPROACH and self.suspicious(measured):
            return replace(decision, state=MacroState.REFINE)
        return decision


class Version07(Law):
    """The table of version 0.7: the sign of L_t − L_{t−1} first, success at D = 0 alone, no target forbidden."""

    def blocks_targets(self, directive: Directive) -> bool:
        """Return False, because version 0.7 knows blocked tools only."""
        return False

    def decide(self, measured: Measurement, *, may_replan: bool) -> Decision:
        """See Trajectory."""
        h, terms, gradient = self._h, measured.terms, measured.paper
        logical = terms.implausibility > h.rho
        if terms.cost >= h.theta or not self._goes_on(may_replan):
            return Decision(MacroState.ABANDON, "budget", cause="cost")
        if abs(gradient) < h.epsilon:
            return Decision(MacroState.BREAK_SYMMETRY if logical else MacroState.CHANGE_PATH, "plateau")
        if gradient < 0 or not logical:
            return Decision(MacroState.REFINE, "improving" if gradient < 0 else "worsening, environmental")
        return Decision(MacroState.CHANGE_APPROACH, "worsening, logical")


class _Baseline(Law):
    """Go on until nothing is missing or its rounds are used up; forbid nothing."""

    told = Told.ANEW
    state = MacroState.REFINE

    def blocks_tools(self, directive: Directive) -> bool:
        """Return False."""
        return False

    def blocks_targets(self, directive: Directive) -> bool:
        """Return False."""
        return False

    def decide(self, measured: Measurement, *, may_replan: bool) -> Decision:
        """See Trajectory."""
        if not self._goes_on(may_replan):
            return Decision(MacroState.ABANDON, "no replan left", cause="replans")
        return self.next(measured)

    def next(self, measured: Measurement) -> Decision:
        """Return how it continues."""
        return Decision(self.state, type(self).__name__)


class Retry(_Baseline):
    """A naive retry: the same plan again."""

    told = Told.SAME


class Anew(_Baseline):
    """A replanning from scratch: a fresh plan of what is missing, without a word about what failed."""


class Reflexion(_Baseline):
    """The baseline Reflexion (Shinn et al.

    2023): after each failure a model reflects (a call); the last three notes go with the next try. It has the
    benefit of the carried parts, which the paper's whole retries have not.
    """

    told = Told.NOTES

    def next(self, measured: Measurement) -> Decision:
        """Return one reflection."""
        self.extra += 1
        return super().next(measured)


class ReflexionErrors(_Baseline):
    """A Reflexion that reads what its tools printed as errors, and whose reflection costs nothing."""

    told = Told.ERRORS


class ReAct(_Baseline):
    """The baseline ReAct (Yao et al.

    2023): one conversation that sees each error; no call of a planner after the first.
    """

    told = Told.ERRORS

    def next(self, measured: Measurement) -> Decision:
        """Return the next plan, a thought of the same conversation: its call is not counted."""
        self.extra -= 1
        return super().next(measured)


class TextGrad(_Baseline):
    """A baseline after TextGrad (Yuksekgonul et al.

    2024): each round a critique (a call), which names errors and changes.
    """

    told = Told.ERRORS

    def next(self, measured: Measurement) -> Decision:
        """Return one critique."""
        self.extra += 1
        return super().next(measured)


class Lats(_Baseline):
    """A baseline after LATS (Zhou et al.

    2024): a value (a call) and a reflection (a call) each round; goes back to a tool that met a criterion half of
    the time, and else to one that was not tried.
    """

    told = Told.TREE

    def next(self, measured: Measurement) -> Decision:
        """Return one value and one reflection."""
        self.extra += 2
        return super().next(measured)


class Adapt(_Baseline):
    """The baseline ADaPT (Prasad et al.

    2023): what the executor cannot do is decomposed further, and planned again.
    """

    told = Told.SPLIT


class Magentic(_Baseline):
    """Magentic-One's stall counter (Fourney et al. 2024): a progress ledger after each round (a call); without
    progress the counter rises, with progress it falls; beyond `limit` the facts are updated (a call) and all is
    planned again with them. Between, the plan stands.
    """

    def __init__(self, hyperparameters: Hyperparameters, job: Job, limit: int) -> None:
        super().__init__(hyperparameters, job)
        self._limit = limit
        self._stalls = 0
        self._distance = 1.0

    def next(self, measured: Measurement) -> Decision:
        """Count, and replan when it stalls."""
        self.extra += 1
        nearer = measured.terms.distance < self._distance
        self._distance = measured.terms.distance
        self._stalls = max(0, self._stalls - 1) if nearer else self._stalls + 1
        self.told = Told.SAME
        if self._stalls > self._limit:
            self._stalls, self.told = 0, Told.NOTES
            self.extra += 1
        return super().next(measured)


class Coin(_Baseline):
    """One of the four directives by lot, with what each forbids."""

    told = Told.DIRECTIVE
    _STATES = (
        *(MacroState.BREAK_SYMMETRY, MacroState.CHANGE_APPROACH),
        *(MacroState.CHANGE_PATH, MacroState.REFINE),
    )

    def blocks_tools(self, directive: Directive) -> bool:
        """Return what the law does."""
        return directive in WRONG_WAYS

    def blocks_targets(self, directive: Directive) -> bool:
        """Return what the law does."""
        return directive in WRONG_WAYS

    def next(self, measured: Measurement) -> Decision:
        """Return a throw."""
        return Decision(self._STATES[int(draw(self._job.name, self.round, "coin") * 4)], "a coin")


class AlwaysChange(_Baseline):
    """The simplest rule with memory of the task: always another method, what failed is forbidden."""

    told = Told.DIRECTIVE
    state = MacroState.CHANGE_APPROACH

    def blocks_tools(self, directive: Directive) -> bool:
        """Return True."""
        return True

    def blocks_targets(self, directive: Directive) -> bool:
        """Return True."""
        return True


class Oracle(_Baseline):
    """An oracle that knows what is right, and what cannot be done: the bound for all arms."""

    told = Told.TRUTH

    def next(self, measured: Measurement) -> Decision:
        """Stop at once where nothing can help."""
        if not self._job.solvable:
            return Decision(MacroState.ABANDON, "it cannot be done", cause="replans")
        return super().next(measured)


@dataclass(frozen=True, slots=True)
class Arm:
    """A controller under test: its name, what it is, and how it is made for a job."""

    name: str
    make: Callable[[Hyperparameters, Job], Law]
    hyperparameters: Hyperparameters = DEFAULTS


def rounds(count: int) -> Hyperparameters:
    """Return a baseline's settings: this many replans, and no other bound."""
    return Hyperparameters(max_replans=count, time_budget_ms=PATIENT)


def equal_stops(count: int) -> Hyperparameters:
    """Return equal stops: this many replans, no D ≤ δ, no kill switch, no bound of time.

    The end comes where every tool was tried in vain.
    """
    return replace(rounds(count), delta=0.0, kill_after=99, exhausted_after=1)


def magentic(limit: int) -> Callable[[Hyperparameters, Job], Law]:
    """Return Magentic with this limit of stalls."""
    return lambda h, job: Magentic(h, job, limit)
